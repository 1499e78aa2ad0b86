import { formatTime, startOfDay } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import { isSameIncident, type Finding } from "../model/finding.ts";
import type { AlertStore } from "../store/ports/alert-store.ts";
import { unresolvedQueryFor } from "./finding-dedup.ts";

// Each rule has a limit on its unresolved alerts, because nobody may ever resolve them, or an attacker may forge one address
// after another. Findings past the limit share one overflow alert, regardless of group and event time, both of which a sender
// can forge. Each UTC day starts a new overflow alert, so that it notifies again.

/** The prefix of an overflow alert's key. Keys of groups are JSON lists and never start with it. */
const OVERFLOW_KEY_PREFIX = "beyond";
/** Longer than the time between any two events. */
const ANY_DISTANCE_MS = 2 ** 50;
/** Size limit of the cache; evicted rules are counted in the store again. */
const RULES_MAX = 10_000;

/** True for an overflow alert, which represents no particular group. */
export function isOverflow({ foldKey }: Pick<Alert, "foldKey">): boolean {
  return foldKey.startsWith(OVERFLOW_KEY_PREFIX);
}

export class UnresolvedLimit {
  readonly #store: Pick<AlertStore, "countUnresolved" | "unresolved">;
  readonly #unresolvedMax: number;
  /** An upper bound of each rule's unresolved alerts. Rules that are missing here must be counted in the store. */
  readonly #unresolved = new Map<string, number>();

  constructor(store: Pick<AlertStore, "countUnresolved" | "unresolved">, unresolvedMax: number) {
    this.#store = store;
    this.#unresolvedMax = unresolvedMax;
  }

  /** Replaces findings past the limit by findings of the overflow alert, and counts them. */
  async apply(
    findings: readonly Finding[],
    nowMs: number,
  ): Promise<{ findings: readonly Finding[]; overflowed: number }> {
    if (this.#unresolved.size > RULES_MAX) this.#unresolved.clear();
    const counts = new Map<string, number>();
    for (const { rule } of findings) counts.set(rule.id, (counts.get(rule.id) ?? 0) + 1);
    const isFull = (id: string) => (this.#unresolved.get(id) ?? Infinity) + counts.get(id)! > this.#unresolvedMax;
    // By the upper bound; alerts may have been resolved since.
    const recount = [...counts.keys()].filter(isFull);
    if (recount.length === 0) return { findings, overflowed: 0 };
    const unresolved = await this.#store.countUnresolved(recount, OVERFLOW_KEY_PREFIX, this.#unresolvedMax);
    for (const [i, id] of recount.entries()) this.#unresolved.set(id, unresolved[i]!);
    const ofFullRules = findings.filter(({ rule }) => isFull(rule.id));
    return ofFullRules.length === 0 ? { findings, overflowed: 0 } : this.#replaceExcess(findings, ofFullRules, nowMs);
  }

  async #replaceExcess(findings: readonly Finding[], ofFullRules: readonly Finding[], nowMs: number) {
    const stored = await this.#store.unresolved(ofFullRules.map(unresolvedQueryFor));
    const withoutAlert = new Set(ofFullRules.filter((_, i) => !stored[i]));
    const remaining = new Map<string, number>();
    /** Findings that get a new alert, by rule and key. */
    const accepted = new Map<string, Finding[]>();
    let overflowed = 0;
    const limited = findings.map((finding) => {
      if (!withoutAlert.has(finding)) return finding;
      const { id } = finding.rule;
      const key = `${id} ${finding.dedupKey}`;
      const known = accepted.get(key) ?? [];
      accepted.set(key, known);
      const available = remaining.get(id) ?? this.#unresolvedMax - this.#unresolved.get(id)!;
      const isNear = known.some((other) => isSameIncident(other, finding, finding.dedupMs));
      if (!isNear && available <= 0) {
        overflowed++;
        return overflowFinding(finding, this.#unresolvedMax, nowMs);
      }
      known.push(finding);
      remaining.set(id, isNear ? available : available - 1);
      return finding;
    });
    return { findings: limited, overflowed };
  }

  alertCreated(ruleId: string): void {
    const known = this.#unresolved.get(ruleId);
    if (known !== undefined) this.#unresolved.set(ruleId, known + 1);
  }

  /** Reopening raises the counts of rules by an unknown number, so all are counted again. */
  alertsReopened(): void {
    this.#unresolved.clear();
  }
}

function overflowFinding(finding: Finding, unresolvedMax: number, nowMs: number): Finding {
  const { name } = finding.rule;
  return {
    ...finding,
    dedupKey: `${OVERFLOW_KEY_PREFIX} ${formatTime(startOfDay(nowMs))}`,
    dedupMs: ANY_DISTANCE_MS,
    group: null,
    title: `${name}: ${unresolvedMax.toLocaleString("en")} unresolved alerts; further matches are counted here`,
    description:
      "This rule has reached its limit of unresolved alerts. Further matches are added to this alert, regardless of their group. Resolve the rule's alerts or narrow its conditions so that it creates alerts again.",
    enrichment: {},
    // An absence has no events but counts as one.
    eventCount: Math.max(1, finding.eventCount),
  };
}
