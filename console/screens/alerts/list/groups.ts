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
export function inFrozenOrder(
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

const NAME_CHARACTERS_MIN = 14;

/** The words that the titles share, with an ellipsis for those that differ. */
export function sharedTitle(titles: readonly string[], rule: string): string {
  const [first, ...others] = titles.map((title) => title.split(" "));
  if (first === undefined) return rule;
  if (others.length === 0) return first.join(" ");
  let head = 0;
  while (head < first.length && others.every((words) => words[head] === first[head])) head++;
  let tail = 0;
  const tailMax = Math.min(first.length, ...others.map(({ length }) => length)) - head;
  while (tail < tailMax && others.every((words) => words.at(-1 - tail) === first.at(-1 - tail))) tail++;
  const text = [...first.slice(0, head), "…", ...first.slice(first.length - tail)].join(" ");
  return text.length >= NAME_CHARACTERS_MIN ? text : words(rule);
}

/** `network.ids_high` is "Network: ids high". */
function words(rule: string): string {
  const text = rule.replace(".", ": ").replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
