import type { AlertTrends, TrendQuery } from "../ports/alert-store.ts";
import type { AlertColumns } from "./alert-columns.ts";
import { sliceInOrder } from "./slice-in-order.ts";

/** Totals of each interval in the range. Alerts are in the order of creation, so that each interval is one stretch of them. */
export function alertTrends(columns: AlertColumns, { fromMs, toMs, intervalMs, rulesMax }: TrendQuery): AlertTrends {
  const { rule, rules: names } = columns.fields;
  const counts = countRules(columns.createdIn({ fromMs, toMs }), rule, names.end);
  const used = Uint32Array.from(counts.keys()).filter((code) => counts[code]! > 0);
  const nameOf = (code: number) => names.textOf(code)!;
  const top = sliceInOrder(used, 0, rulesMax, (a, b) => {
    const difference = counts[b]! - counts[a]!;
    return difference < 0 || (difference === 0 && nameOf(a) < nameOf(b));
  });
  const intervals: AlertTrends["intervals"][number][] = [];
  for (let start = Math.floor(fromMs / intervalMs) * intervalMs; start < toMs; start += intervalMs) {
    const range = { fromMs: Math.max(start, fromMs), toMs: Math.min(start + intervalMs, toMs) };
    const own = countRules(columns.createdIn(range), rule, names.end);
    const byRule = top.map((code) => own[code]!);
    const totals = columns.totals(range);
    const otherRules = totals.total - byRule.reduce((sum, count) => sum + count, 0);
    intervals.push({ startMs: start, totals, byRule, otherRules });
  }
  return { rules: top.map((code) => ({ name: nameOf(code), count: counts[code]! })), intervals };
}

function countRules(slots: Uint32Array, rule: Uint32Array, end: number): Uint32Array {
  const counts = new Uint32Array(end);
  for (const slot of slots) counts[rule[slot]!]!++;
  return counts;
}
