import type { AlertGroup } from "../../../data/alert-groups.ts";
import { SEVERITIES } from "../../../data/severity.ts";

// The order and the names of groups.

/** The worst first, then by score, then the latest. */
export function inOrder(groups: readonly AlertGroup[]): AlertGroup[] {
  return groups.toSorted(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      (b.score ?? 0) - (a.score ?? 0) ||
      b.lastMs - a.lastMs,
  );
}

/**
 * Groups whose place is known stay there, whatever their numbers have become; others are left out until they are let in. A
 * group that has no more alerts keeps its place too, with what it last showed.
 */
function inFrozenOrder(
  order: readonly string[],
  groups: readonly AlertGroup[],
  before: ReadonlyMap<string, AlertGroup>,
): AlertGroup[] {
  const byRule = new Map(groups.map((group) => [group.rule, group]));
  return order.flatMap((rule) => {
    const group = byRule.get(rule) ?? emptied(before.get(rule));
    return group === undefined ? [] : [group];
  });
}

const emptied = (group: AlertGroup | undefined) => group && { ...group, count: 0 };

export interface Frozen {
  readonly key: string;
  readonly data: readonly AlertGroup[];
  readonly order: readonly string[];
  /** Groups of one: the alert stands in the list itself. One that grows becomes a group; one that shrinks stays one. */
  readonly singles: ReadonlySet<string>;
  readonly groups: readonly AlertGroup[];
}

export const NOT_FROZEN: Frozen = { key: "", data: [], order: [], singles: new Set(), groups: [] };

/** The groups as they are shown: another key orders them anew, other numbers do not. */
export function freeze(frozen: Frozen, key: string, data: readonly AlertGroup[]): Frozen {
  if (frozen.key !== key) {
    const groups = inOrder(data);
    const singles = new Set(data.filter(({ count }) => count === 1).map(({ rule }) => rule));
    return { key, data, order: groups.map(({ rule }) => rule), singles, groups };
  }
  if (frozen.data === data) return frozen;
  const groups = inFrozenOrder(frozen.order, data, new Map(frozen.groups.map((group) => [group.rule, group])));
  const grown = new Set(groups.filter(({ count }) => count > 1).map(({ rule }) => rule));
  return { ...frozen, data, groups, singles: new Set([...frozen.singles].filter((rule) => !grown.has(rule))) };
}

const NAME_CHARACTERS_MIN = 14;

/** The words that the titles share, with an ellipsis for those that differ. */
export function groupTitle({ rule, samples, count }: Pick<AlertGroup, "rule" | "samples" | "count">): string {
  const titles = new Set(samples.map(({ title }) => title));
  if (titles.size === 0) return ruleWords(rule);
  if (titles.size === 1) {
    const [sample] = samples;
    return samples.length === count ? sample!.title : withoutNames(sample!);
  }
  const [first, ...others] = [...titles].map((title) => title.split(" "));
  let head = 0;
  while (head < first!.length && others.every((words) => words[head] === first![head])) head++;
  let tail = 0;
  const tailMax = Math.min(...[first!, ...others].map(({ length }) => length)) - head;
  while (tail < tailMax && others.every((words) => words.at(-1 - tail) === first!.at(-1 - tail))) tail++;
  const text = [...first!.slice(0, head), "…", ...first!.slice(first!.length - tail)].join(" ");
  return text.length >= NAME_CHARACTERS_MIN ? text : ruleWords(rule);
}

/** Of one title it is not known which words differ: probably the names in it. */
function withoutNames({ title, group, entities }: AlertGroup["samples"][number]): string {
  const names = [...(group?.value.split(", ") ?? []), ...entities.map(({ value }) => value)];
  const inTitle = names.filter((name) => name.length > 2).toSorted((a, b) => b.length - a.length);
  return inTitle.reduce((text, name) => text.replaceAll(name, "…"), title);
}

/** `network.ids_high` is "Network: ids high". */
function ruleWords(rule: string): string {
  const text = rule.replace(".", ": ").replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
