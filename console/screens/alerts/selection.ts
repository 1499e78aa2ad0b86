// The rows that an action is for: some alerts and whole groups, or all that match, however many those are.

export type Selection =
  | { readonly kind: "some"; readonly ids: ReadonlySet<string>; readonly rules: ReadonlySet<string> }
  | { readonly kind: "all" };

export const NOTHING: Selection = { kind: "some", ids: new Set(), rules: new Set() };

export const isNothing = (selection: Selection) =>
  selection.kind === "some" && selection.ids.size === 0 && selection.rules.size === 0;

export interface Selectable {
  readonly kind: "alert" | "group";
  /** The id of the alert, or of the alert that stands for a group. */
  readonly id: string;
  readonly rule: string;
}

export function isSelected(selection: Selection, row: Selectable): boolean {
  if (selection.kind === "all") return true;
  return selection.rules.has(row.rule) || (row.kind === "alert" && selection.ids.has(row.id));
}

/**
 * Adds or removes a row. A group takes its alerts with it. Whoever leaves one out of all, or of a group, keeps the others that
 * are loaded: the service cannot be told "all but this one".
 */
export function withRow(
  selection: Selection,
  row: Selectable,
  on: boolean,
  loaded: () => readonly Selectable[],
): Selection {
  if (selection.kind === "all") {
    if (on) return selection;
    const others = loaded().filter((each) => each.kind === "alert" && each.id !== row.id && !isInGroup(each, row));
    return { kind: "some", ids: new Set(others.map(({ id }) => id)), rules: new Set() };
  }
  const ids = new Set(selection.ids);
  const rules = new Set(selection.rules);
  if (row.kind === "group") {
    if (on) rules.add(row.rule);
    else rules.delete(row.rule);
    for (const each of loaded()) if (each.kind === "alert" && each.rule === row.rule) ids.delete(each.id);
  } else if (on) {
    ids.add(row.id);
  } else if (rules.delete(row.rule)) {
    for (const each of loaded())
      if (each.kind === "alert" && each.rule === row.rule && each.id !== row.id) ids.add(each.id);
  } else {
    ids.delete(row.id);
  }
  return { kind: "some", ids, rules };
}

const isInGroup = (row: Selectable, group: Selectable) => group.kind === "group" && row.rule === group.rule;

/** How many that are; `groupSizes` are the numbers of alerts of each rule that match. */
export function selectedCount(selection: Selection, total: number, groupSizes: ReadonlyMap<string, number>): number {
  if (selection.kind === "all") return total;
  return [...selection.rules].reduce((sum, rule) => sum + (groupSizes.get(rule) ?? 0), selection.ids.size);
}
