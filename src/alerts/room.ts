import { formatTime, startOfDay } from "../lib/time.ts";
import { isSameAttack, type Finding } from "../model/finding.ts";
import type { AlertStore } from "../store/store.ts";
import { questionOf } from "./folding.ts";

// A rule whose alerts nobody resolves, or for which somebody makes up one address after the other, gets no more of them than
// can be kept. What is beyond that is one attack, whatever its group and its time, which the sender may have made up as
// well, and its alert says so. On another day people are told anew.

/** What the keys of what is beyond begin with. Keys of groups are lists. */
const BEYOND = "beyond";
/** Longer than any two events can lie apart. */
const ALL_MS = 2 ** 50;
/** Rules come and go; those that are forgotten here are asked about again. */
const RULES_MAX = 10_000;

/** Whether it stands for what is beyond, and so for nobody in particular. */
export function isBeyond({ foldKey }: { readonly foldKey: string }): boolean {
  return foldKey.startsWith(BEYOND);
}

export class Room {
  readonly #store: Pick<AlertStore, "countUnresolved" | "unresolved">;
  readonly #unresolvedMax: number;
  /** At least as many as a rule has unresolved; of one that is not here nothing is known. */
  readonly #unresolved = new Map<string, number>();

  constructor(store: Pick<AlertStore, "countUnresolved" | "unresolved">, unresolvedMax: number) {
    this.#store = store;
    this.#unresolvedMax = unresolvedMax;
  }

  /** The same findings, those for which there is no room in another form, and how many these are. */
  async bound(findings: readonly Finding[], nowMs: number): Promise<{ findings: readonly Finding[]; beyond: number }> {
    if (this.#unresolved.size > RULES_MAX) this.#unresolved.clear();
    const counts = new Map<string, number>();
    for (const { rule } of findings) counts.set(rule.id, (counts.get(rule.id) ?? 0) + 1);
    const isCrowded = (id: string) => (this.#unresolved.get(id) ?? Infinity) + counts.get(id)! > this.#unresolvedMax;
    // As far as is known; some may have been resolved since.
    const unsure = [...counts.keys()].filter(isCrowded);
    if (unsure.length === 0) return { findings, beyond: 0 };
    const unresolved = await this.#store.countUnresolved(unsure, BEYOND, this.#unresolvedMax);
    for (const [i, id] of unsure.entries()) this.#unresolved.set(id, unresolved[i]!);
    const crowded = findings.filter(({ rule }) => isCrowded(rule.id));
    return crowded.length === 0 ? { findings, beyond: 0 } : this.#choose(findings, crowded, nowMs);
  }

  async #choose(findings: readonly Finding[], crowded: readonly Finding[], nowMs: number) {
    const stored = await this.#store.unresolved(crowded.map(questionOf));
    const withoutAlert = new Set(crowded.filter((_, i) => !stored[i]));
    const left = new Map<string, number>();
    /** Those that get an alert, by rule and key. */
    const taken = new Map<string, Finding[]>();
    let beyond = 0;
    const chosen = findings.map((finding) => {
      if (!withoutAlert.has(finding)) return finding;
      const { id } = finding.rule;
      const key = `${id} ${finding.foldKey}`;
      const known = taken.get(key) ?? [];
      taken.set(key, known);
      const room = left.get(id) ?? this.#unresolvedMax - this.#unresolved.get(id)!;
      const isNear = known.some((other) => isSameAttack(other, finding, finding.foldMs));
      if (!isNear && room <= 0) {
        beyond++;
        return beyondOf(finding, this.#unresolvedMax, nowMs);
      }
      known.push(finding);
      left.set(id, isNear ? room : room - 1);
      return finding;
    });
    return { findings: chosen, beyond };
  }

  /** An alert of the rule was made. */
  made(ruleId: string): void {
    const known = this.#unresolved.get(ruleId);
    if (known !== undefined) this.#unresolved.set(ruleId, known + 1);
  }

  /** Alerts that were resolved are so no longer. */
  reopened(): void {
    this.#unresolved.clear();
  }
}

function beyondOf(finding: Finding, unresolvedMax: number, nowMs: number): Finding {
  const { name } = finding.rule;
  return {
    ...finding,
    foldKey: `${BEYOND} ${formatTime(startOfDay(nowMs))}`,
    foldMs: ALL_MS,
    group: null,
    title: `${name}: ${unresolvedMax.toLocaleString("en")} of its alerts are unresolved, more are counted here`,
    description:
      "Further matches of this rule are added here, whatever their group. Resolve its alerts, or have it match less: then it makes alerts again.",
    enrichment: {},
    // An absence has no events, and is counted all the same.
    eventCount: Math.max(1, finding.eventCount),
  };
}
