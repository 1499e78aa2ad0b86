import type { Rule } from "../data/client.ts";
import { fieldName } from "./conditions.ts";
import { exact } from "./numbers.ts";

// When a rule raises an alert, in words.

type Threshold = NonNullable<Rule["threshold"]>;
type Paths = string | readonly string[] | null | undefined;

const UNIT_WORDS: Readonly<Record<string, string>> = { s: "second", m: "minute", h: "hour", d: "day" };

/** `5m` is `5 minutes`; what is no duration stays as it is. */
export function durationWords(text: string): string {
  const match = /^(\d+)([smhd])$/.exec(text.trim());
  if (match === null) return text;
  return `${match[1]} ${UNIT_WORDS[match[2]!]!}${match[1] === "1" ? "" : "s"}`;
}

const pathList = (paths: Paths): readonly string[] =>
  paths === null || paths === undefined ? [] : typeof paths === "string" ? [paths] : paths;

function joined(paths: Paths): string {
  const names = pathList(paths).map(fieldName);
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)!}`;
}

const perGroup = (paths: Paths) =>
  pathList(paths).length === 0 ? "" : `, counted for each ${joined(paths)} on its own`;

function bounds({ gte, gt, lte, lt }: Threshold): string {
  const words = [
    gte !== undefined && `at least ${exact(gte)}`,
    gt !== undefined && `more than ${exact(gt)}`,
    lte !== undefined && `at most ${exact(lte)}`,
    lt !== undefined && `less than ${exact(lt)}`,
  ].filter((word) => word !== false);
  return words.join(" and ");
}

function thresholdWords(threshold: Threshold, window: string): string {
  const { count, distinct, sum, avg, percentile, group_by: group } = threshold;
  const within = `within ${durationWords(window)}${perGroup(group)}`;
  const limits = bounds(threshold);
  const least = count !== undefined && limits !== "" ? ` (of at least ${exact(count)} events)` : "";
  if (sum !== undefined) return `When the sum of ${fieldName(sum)} is ${limits}${least} ${within}.`;
  if (avg !== undefined) return `When the average of ${fieldName(avg)} is ${limits}${least} ${within}.`;
  if (percentile !== undefined) {
    return `When the ${percentile.rank}th percentile of ${fieldName(percentile.of)} is ${limits}${least} ${within}.`;
  }
  const what = distinct === undefined ? "such events" : `different values of ${joined(distinct)}`;
  if (limits !== "") return `When there are ${limits} ${what} ${within}.`;
  return `When there are ${exact(count ?? 1)} or more ${what} ${within}.`;
}

type Timing = Pick<
  Rule,
  "threshold" | "window" | "absence" | "group_by" | "sequence" | "sequence_order" | "sequence_min"
>;

/** When it raises an alert. */
export function firingWords(rule: Timing): string {
  if (rule.absence !== null) {
    return `When no such event comes for ${durationWords(rule.absence)} after the last one${perGroup(rule.group_by)}.`;
  }
  if (rule.sequence !== null) {
    const shared = pathList(rule.group_by).length === 0 ? "" : `, for the same ${joined(rule.group_by)}`;
    const order =
      rule.sequence_min !== null
        ? `When ${rule.sequence_min} of these happen, in any order,`
        : rule.sequence_order === "any"
          ? "When all of these happen, in any order,"
          : "When these happen in this order";
    return `${order} within ${durationWords(rule.window ?? "")}${shared}.`;
  }
  if (rule.threshold !== null) return thresholdWords(rule.threshold, rule.window ?? "");
  return "On every such event.";
}

export function dedupWords({
  dedup,
  threshold,
  group_by: group,
}: Pick<Rule, "dedup" | "threshold" | "group_by">): string {
  const by = joined(dedup.by ?? threshold?.group_by ?? group);
  return `Findings${by === "" ? "" : ` with the same ${by}`} that lie less than ${durationWords(dedup.period)} apart join one alert.`;
}

/** The first paragraph says what it means, the others what to do. */
export function descriptionParts(description: string): { readonly what: string; readonly todo: readonly string[] } {
  const [what = "", ...todo] = description
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replaceAll(/\s*\n\s*/g, " ").trim());
  return { what, todo: todo.filter((paragraph) => paragraph !== "") };
}
