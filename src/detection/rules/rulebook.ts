import type { Logger } from "pino";
import { greatestId, idMaker, timeOfId } from "../../lib/id.ts";
import { SerialQueue } from "../../lib/serial-queue.ts";
import type { Severity } from "../../model/event.ts";
import {
  ENDED_EXCEPTIONS_MAX,
  EXCEPTIONS_MAX,
  type EndedException,
  type Rule,
  type RuleException,
  type RuleStats,
} from "../../model/rule.ts";
import { toRuleBody } from "../../model/rule-body.ts";
import type { ExceptionInput, RuleInput, RuleReplacement } from "../../model/rule-schema.ts";
import { RuleConflict, type RuleStore } from "../../store/ports/rule-store.ts";
import { memoryMsOf } from "../windows/rule-tracker.ts";

// The active rules: built-in and user-defined. Changes are serialised, and in force when the call returns.

const RULES_MAX = 10_000;

/** Thrown if a rule cannot be changed as requested. */
export class RuleRefused extends Error {
  readonly kind: "not_found" | "builtin" | "limit";
  constructor(kind: RuleRefused["kind"], message: string) {
    super(message);
    this.name = "RuleRefused";
    this.kind = kind;
  }
}

export interface RuleChange {
  readonly set: readonly Rule[];
  readonly removed: readonly string[];
}

/**
 * Applies a change between two events: earlier events are processed under the old rules, later ones under the new. The work
 * receives the id of the last processed event.
 */
export type ChangeRules = (work: (position: string | null) => Promise<RuleChange>) => Promise<void>;

/** Detection on this node, through which rules change. */
export interface RunningDetection {
  readonly change: ChangeRules;
  /** Applies what other nodes changed. */
  readonly takeOver: (work: () => Promise<RuleChange>) => Promise<void>;
}

const NO_CHANGE: RuleChange = { set: [], removed: [] };
/** How often an edit is tried again after another node changed the same rule at the same moment. */
const CONFLICTS_MAX = 5;

export interface RuleFilter {
  readonly enabled?: boolean | undefined;
  readonly source?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly tag?: string | undefined;
}

export interface RulebookOptions {
  readonly store: RuleStore;
  readonly builtins: readonly Rule[];
  readonly now?: () => number;
  readonly log?: Logger | undefined;
  /** The place after which a change applies while no detection runs on this node. */
  readonly place?: (() => Promise<string | null>) | undefined;
}

export async function openRulebook(options: RulebookOptions): Promise<Rulebook> {
  const version = await options.store.shared?.version();
  const stored = new Map((await options.store.list()).map((rule) => [rule.id, rule]));
  const builtins = options.builtins.map((rule) => withChanges(rule, stored.get(rule.id)));
  // Stored state of built-in rules that this version no longer has is kept.
  const own = [...stored.values()].filter(({ builtin }) => !builtin);
  return new Rulebook(options, [...builtins, ...own], version);
}

export class Rulebook {
  readonly #store: RuleStore;
  readonly #now: () => number;
  readonly #rules: Map<string, Rule>;
  readonly #nextRuleId: () => string;
  readonly #nextExceptionId: () => string;
  readonly #builtins: ReadonlyMap<string, Rule>;
  readonly #place: () => Promise<string | null>;
  readonly #stopListening: (() => void) | undefined;
  #detection: RunningDetection | undefined;
  /** Of the shared rules that were taken over last. */
  #version: number | undefined;
  readonly #turns = new SerialQueue();

  constructor(options: RulebookOptions, rules: readonly Rule[], version: number | undefined) {
    const { store, builtins, now = Date.now, log, place = async () => null } = options;
    this.#store = store;
    this.#now = now;
    this.#builtins = new Map(builtins.map((rule) => [rule.id, rule]));
    this.#place = place;
    this.#version = version;
    this.#stopListening = store.shared?.onChange(() => {
      this.refresh().catch((error: unknown) => {
        // Detection asks before each chunk of events, and the next change or connection brings the rest.
        log?.warn({ err: error }, "rules that another node changed cannot be read yet");
      });
    });
    this.#rules = new Map(rules.map((rule) => [rule.id, rule]));
    this.#nextRuleId = idMaker("rule_", now, greatestId(this.#rules.keys()));
    this.#nextExceptionId = idMaker("exc_", now);
  }

  /** Detection begins on this node: `load` receives all rules, and changes go through it from then on. */
  async attach(detection: RunningDetection, load: (rules: readonly Rule[]) => Promise<void>): Promise<void> {
    await this.#turns.take(async () => {
      await this.takeOver();
      await load(this.all());
      this.#detection = detection;
    });
  }

  detach(detection: RunningDetection): void {
    if (this.#detection === detection) this.#detection = undefined;
  }

  close(): void {
    this.#stopListening?.();
  }

  /** True if other nodes change rules, too. */
  get isShared(): boolean {
    return this.#store.shared !== undefined;
  }

  /** Takes over what other nodes have changed. */
  refresh(): Promise<void> {
    return this.#turns.take(() => this.#catchUp());
  }

  /** What other nodes have changed, which is in force here now. Only for detection, in a turn in which it changes nothing else. */
  async takeOver(): Promise<RuleChange> {
    const { shared } = this.#store;
    const version = await shared?.version();
    if (!shared || version === this.#version) return NO_CHANGE;
    const known = new Map(Array.from(this.#rules.values(), ({ id, revision }) => [id, revision]));
    const { changed, removed } = await shared.changedSince(known);
    const set = changed.flatMap((rule) => {
      const builtin = this.#builtins.get(rule.id);
      if (builtin) return [withChanges(builtin, rule)];
      // State of a built-in rule that this version does not have.
      return rule.builtin ? [] : [rule];
    });
    const gone = removed.filter((id) => !this.#builtins.has(id));
    for (const rule of set) this.#rules.set(rule.id, rule);
    for (const id of gone) this.#rules.delete(id);
    this.#version = version;
    return { set, removed: gone };
  }

  async #catchUp(): Promise<void> {
    if (this.#detection) await this.#detection.takeOver(() => this.takeOver());
    else await this.takeOver();
  }

  /** Changes rules as the store has them now. */
  async #change(work: (position: string | null) => Promise<RuleChange>): Promise<void> {
    if (!this.isShared) return this.#apply(work);
    for (let conflicts = 0; ; conflicts++) {
      await this.#catchUp();
      try {
        return await this.#apply(work);
      } catch (error) {
        const isOutdated = error instanceof RuleConflict && (await this.#isOutdated());
        if (!isOutdated || conflicts >= CONFLICTS_MAX) throw error;
      }
    }
  }

  async #isOutdated(): Promise<boolean> {
    return (await this.#store.shared?.version()) !== this.#version;
  }

  async #apply(work: (position: string | null) => Promise<RuleChange>): Promise<void> {
    if (this.#detection) await this.#detection.change(work);
    else await work(await this.#place());
  }

  all(): Rule[] {
    return [...this.#rules.values()];
  }

  get(id: string): Rule {
    const rule = this.#rules.get(id);
    if (!rule) throw new RuleRefused("not_found", `there is no rule ${id}`);
    return rule;
  }

  find(id: string): Rule | undefined {
    return this.#rules.get(id);
  }

  /** Throws if the rule is built in, which forbids the operation. */
  refuseBuiltin(id: string, done: "replaced" | "deleted"): void {
    const rule = this.#rules.get(id);
    if (rule?.builtin) throw builtinRefusal(rule, done);
  }

  /** Filtered rules, sorted by name. */
  list(filter: RuleFilter): Rule[] {
    return this.all()
      .filter(
        (rule) =>
          (filter.enabled === undefined || rule.enabled === filter.enabled) &&
          (filter.source === undefined || rule.source === filter.source) &&
          (filter.severity === undefined || rule.severity === filter.severity) &&
          (filter.tag === undefined || rule.tags.includes(filter.tag)),
      )
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  stats(rules: readonly Rule[]): Promise<RuleStats[]> {
    return this.#store.stats(
      rules.map(({ id }) => id),
      this.#now(),
    );
  }

  async create(input: RuleInput, author: string): Promise<Rule> {
    const [rule] = await this.#edit((position) => {
      this.#refuseTaken(input.name);
      this.#refuseTooMany(1);
      return [this.#newRule(input, author, position)];
    });
    return rule!;
  }

  /** Creates the rules whose names are free, and returns a fault for each of the others. */
  async createMany(
    inputs: readonly RuleInput[],
    author: string,
  ): Promise<({ readonly rule: Rule } | { readonly fault: string })[]> {
    const outcomes: ({ rule: Rule } | { fault: string })[] = [];
    await this.#edit((position) => {
      outcomes.length = 0;
      const reserve = nameReserver(this.all().map(({ name }) => name));
      const made: Rule[] = [];
      for (const input of inputs) {
        const fault = reserve(input.name);
        if (fault !== undefined) {
          outcomes.push({ fault });
          continue;
        }
        const rule = this.#newRule(input, author, position);
        made.push(rule);
        outcomes.push({ rule });
      }
      return made;
    });
    return outcomes;
  }

  createDryRun(): CreateDryRun {
    return dryRunCreate(this.all().map(({ name }) => name));
  }

  /** `revision`: the revision that the client has read, if given. */
  async replace(id: string, input: RuleReplacement, author: string, revision?: number): Promise<Rule> {
    return this.#editOne(id, revision, (rule, position) => {
      this.refuseBuiltin(id, "replaced");
      return {
        ...rule,
        ...toRuleBody(input),
        origin: input.origin ?? rule.origin ?? null,
        // A client that does not know of tests must not delete them.
        ...(input.tests === undefined && { tests: rule.tests }),
        exceptions: input.exceptions.map((exception) => {
          const [made] = this.#newExceptions([exception], author, position);
          const kept = rule.exceptions.find((each) => each.id === exception.id);
          return kept ? { ...made!, id: kept.id, author: kept.author, createdAt: kept.createdAt } : made!;
        }),
        endedExceptions: [],
        activeAfter: position,
      };
    });
  }

  async patch(
    id: string,
    change: { readonly enabled?: boolean | undefined; readonly severity?: Severity | undefined },
    revision?: number,
  ): Promise<Rule> {
    return this.#editOne(id, revision, (rule, position) => {
      if (rule.builtin && change.severity !== undefined) throw builtinRefusal(rule, "given another severity");
      const enabled = change.enabled ?? rule.enabled;
      return {
        ...rule,
        enabled,
        severity: change.severity ?? rule.severity,
        // Only a rule that is enabled again starts with an empty memory.
        activeAfter: enabled && !rule.enabled ? position : rule.activeAfter,
      };
    });
  }

  /** `revision`: the revision that the client has read, if given. */
  async remove(id: string, revision?: number): Promise<void> {
    await this.#turns.take(() =>
      this.#change(async () => {
        this.refuseBuiltin(id, "deleted");
        this.#checkRevision(id, revision);
        await this.#store.remove(id);
        this.#rules.delete(id);
        return { set: [], removed: [id] };
      }),
    );
  }

  /** Adds an exception. Built-in rules may have exceptions too. */
  async addException(id: string, input: ExceptionInput, author: string): Promise<RuleException> {
    const rule = await this.#editOne(id, undefined, (known, position) => {
      if (known.exceptions.length >= EXCEPTIONS_MAX) {
        throw new RuleRefused("limit", `a rule has at most ${EXCEPTIONS_MAX} exceptions`);
      }
      return { ...known, exceptions: [...known.exceptions, ...this.#newExceptions([input], author, position)] };
    });
    return rule.exceptions.at(-1)!;
  }

  /** Adds exceptions, except those that a rule already has with the same reason. Returns faults for those refused. */
  async addExceptions(inputs: readonly RuleExceptionInput[], author: string): Promise<string[]> {
    const faults: string[] = [];
    await this.#edit((position) => {
      faults.length = 0;
      const changed = new Map<string, Rule>();
      for (const { ruleId, input } of inputs) {
        const rule = changed.get(ruleId) ?? this.#rules.get(ruleId);
        if (!rule) continue;
        const spelled = JSON.stringify(input.conditions);
        const isSame = ({ reason, conditions }: RuleException) =>
          reason === input.reason && JSON.stringify(conditions) === spelled;
        if (rule.exceptions.some(isSame)) continue;
        if (rule.exceptions.length >= EXCEPTIONS_MAX) {
          faults.push(`${rule.name} already has the maximum of ${EXCEPTIONS_MAX} exceptions`);
          continue;
        }
        const exceptions = [...rule.exceptions, ...this.#newExceptions([input], author, position)];
        const revision = (this.#rules.get(ruleId)?.revision ?? 0) + 1;
        changed.set(ruleId, { ...rule, exceptions, revision, updatedAt: this.#now() });
      }
      return [...changed.values()];
    });
    return faults;
  }

  async removeException(id: string, exceptionId: string): Promise<void> {
    await this.#editOne(id, undefined, (rule, position) => {
      const exception = rule.exceptions.find((each) => each.id === exceptionId);
      if (!exception) throw new RuleRefused("not_found", `the rule ${id} has no exception ${exceptionId}`);
      const exceptions = rule.exceptions.filter((each) => each !== exception);
      return { ...rule, exceptions, endedExceptions: withEnded(rule, exception, position) };
    });
  }

  /** Removes an exception if it still exists. */
  async revertException(id: string, exceptionId: string): Promise<void> {
    try {
      await this.removeException(id, exceptionId);
    } catch (error) {
      if (!(error instanceof RuleRefused && error.kind === "not_found")) throw error;
    }
  }

  async #editOne(
    id: string,
    revision: number | undefined,
    edit: (rule: Rule, position: string | null) => Rule,
  ): Promise<Rule> {
    const [edited] = await this.#edit((position) => {
      const rule = this.#checkRevision(id, revision);
      return [{ ...edit(rule, position), revision: rule.revision + 1, updatedAt: this.#now() }];
    });
    return edited!;
  }

  #checkRevision(id: string, revision: number | undefined): Rule {
    const rule = this.get(id);
    if (revision === undefined || revision === rule.revision) return rule;
    throw new RuleConflict("changed", `rule ${id} has changed since it was read: read it again`);
  }

  async #edit(edit: (position: string | null) => Rule[]): Promise<Rule[]> {
    let edited: Rule[] = [];
    await this.#turns.take(() =>
      this.#change(async (position) => {
        edited = edit(position);
        if (edited.length > 0) await this.#store.putMany(edited);
        for (const rule of edited) this.#rules.set(rule.id, rule);
        return { set: edited, removed: [] };
      }),
    );
    return edited;
  }

  #newRule(input: RuleInput, author: string, position: string | null): Rule {
    const at = this.#now();
    return {
      ...toRuleBody(input),
      id: this.#nextRuleId(),
      exceptions: this.#newExceptions(input.exceptions, author, position),
      builtin: false,
      createdAt: at,
      updatedAt: at,
      revision: 1,
      activeAfter: position,
    };
  }

  #newExceptions(inputs: readonly ExceptionInput[], author: string, position: string | null): RuleException[] {
    return inputs.map(({ conditions, reason, expires_at }) => ({
      id: this.#nextExceptionId(),
      conditions,
      reason,
      author,
      createdAt: this.#now(),
      expiresAt: expires_at ?? null,
      activeAfter: position,
    }));
  }

  #refuseTaken(name: string): void {
    if (this.all().some((rule) => rule.name === name)) throw new RuleConflict("name_taken", nameTakenMessage(name));
  }

  #refuseTooMany(more: number): void {
    if (this.#rules.size + more > RULES_MAX) throw new RuleRefused("limit", tooManyMessage());
  }
}

export interface RuleExceptionInput {
  readonly ruleId: string;
  readonly input: ExceptionInput;
}

/** Returns what `createMany` would return for consecutive calls, without creating rules. */
export type CreateDryRun = (
  inputs: readonly RuleInput[],
) => Promise<({ readonly rule: { readonly id: null; readonly name: string } } | { readonly fault: string })[]>;

export function dryRunCreate(taken: Iterable<string>): CreateDryRun {
  const reserve = nameReserver(taken);
  return async (inputs) =>
    inputs.map(({ name }) => {
      const fault = reserve(name);
      return fault === undefined ? { rule: { id: null, name } } : { fault };
    });
}

/** Reserves names one by one; returns the fault if a name is not available. */
function nameReserver(taken: Iterable<string>): (name: string) => string | undefined {
  const names = new Set(taken);
  return (name) => {
    if (names.has(name)) return nameTakenMessage(name);
    if (names.size >= RULES_MAX) return tooManyMessage();
    names.add(name);
    return undefined;
  };
}

function nameTakenMessage(name: string): string {
  return `a rule named ${name} already exists: change it with PUT /v1/rules/:id, delete it, or choose another name`;
}

function tooManyMessage(): string {
  return `the maximum of ${RULES_MAX} rules is reached: delete rules first`;
}

function builtinRefusal({ name }: Rule, done: string): RuleRefused {
  return new RuleRefused(
    "builtin",
    `${name} is built in: it can be enabled, disabled and given exceptions, but not ${done}`,
  );
}

/** Remembers an ended exception if the rule counts over time. The oldest are dropped beyond the limit. */
function withEnded(rule: Rule, exception: RuleException, position: string | null): readonly EndedException[] {
  const { conditions, expiresAt, activeAfter } = exception;
  if (rule.window === null || position === null) return [];
  const oldestMs = timeOfId(position) - memoryMsOf(rule);
  const remembered = (rule.endedExceptions ?? []).filter(({ upTo }) => timeOfId(upTo) >= oldestMs);
  return [...remembered, { conditions, expiresAt, activeAfter, upTo: position }].slice(-ENDED_EXCEPTIONS_MAX);
}

/** Applies stored user changes to a built-in rule of this version. */
function withChanges(rule: Rule, stored: Rule | undefined): Rule {
  if (!stored) return rule;
  const { enabled, exceptions, endedExceptions, updatedAt, revision, activeAfter } = stored;
  return { ...rule, enabled, exceptions, endedExceptions, updatedAt, revision, activeAfter };
}
