import type { Rule, RuleStats } from "../../model/rule.ts";

/** Another rule has the name, or the rule changed since the caller read it. */
export class RuleConflict extends Error {
  readonly kind: "name_taken" | "changed";
  constructor(kind: RuleConflict["kind"], message: string) {
    super(message);
    this.name = "RuleConflict";
    this.kind = kind;
  }
}

/** Rules that several nodes change. */
export interface SharedRules {
  /** Grows with each change by any node. */
  version(): Promise<number>;
  /** What differs from the given revisions by id. */
  changedSince(
    known: ReadonlyMap<string, number>,
  ): Promise<{ readonly changed: readonly Rule[]; readonly removed: readonly string[] }>;
  /** Calls the listener after a change by another node, and when one may have been missed. Returns a function that removes it. */
  onChange(listener: () => void): () => void;
}

export interface RuleStore {
  /** Undefined if no other node changes rules. */
  readonly shared?: SharedRules | undefined;
  /** All of them; built-in ones only if something about them was changed. */
  list(): Promise<Rule[]>;
  /** Rejects with RuleConflict when the name belongs to another rule, or the stored revision is not the one before. */
  put(rule: Rule): Promise<void>;
  /** The same for several at once, all or none. */
  putMany(rules: readonly Rule[]): Promise<void>;
  remove(id: string): Promise<void>;
  stats(ids: readonly string[], nowMs: number): Promise<RuleStats[]>;
}
