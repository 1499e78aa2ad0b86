import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { timeOfId } from "../lib/id.ts";
import { endingProcess, Thread } from "../lib/thread.ts";
import { Turns } from "../lib/turns.ts";
import type { Finding } from "../model/finding.ts";
import { isDecidedByClock, type Rule } from "../model/rule.ts";
import {
  StoreUnavailable,
  type Detected,
  type DetectionStore,
  type EventStore,
  type NewEvent,
  type StoredEvent,
} from "../store/store.ts";
import { fillRules, later, type Refusal } from "./filling.ts";
import type { Rulebook, RuleChange } from "./rulebook.ts";
import { UndecidedReports, type Undecided } from "./undecided.ts";
import type { DetectionApi } from "./worker.ts";

// Follows the events in the order of arrival and runs the rules over them. What was found and how far it has come become
// durable in one step, so that after a crash it goes on as if nothing had happened: nothing missed, nothing twice.

const RULES_PER_CALL = 50;
/** Progress without findings is written this often. */
const PROGRESS_MS = 250;
const TICK_MS = 1000;
/** How long silences are not told after a start, for the sake of events that nobody has looked at yet. */
const CATCH_UP_MS_MAX = 600_000;
/** How long an event that has been given its id may take to arrive. */
const IN_FLIGHT_MS_MAX = 1000;
/** How exactly it is known, after a crash, when detection ended. */
const SIGN_OF_LIFE_MS = 5000;
const RETRY_MS = [50, 200, 1000, 5000];
/** What the store goes on refusing is said again after so many attempts: every ten minutes. */
const ATTEMPTS_PER_WARNING = 120;
/** How long a change of rules waits for the events that came before it; a detection that lags further is not waited for. */
const SETTLE_MS_MAX = 2000;

export interface DetectorOptions {
  readonly events: Pick<EventStore, "arrivals" | "lastArrival" | "lastArrivalBefore" | "scanLast">;
  readonly progress: DetectionStore;
  readonly rulebook: Rulebook;
  /** Makes alerts of findings, and the progress durable with them. */
  readonly raise: (findings: readonly Finding[], detected: Detected | undefined) => Promise<void>;
  /** Stores events that detection has to report about itself; one whose token is known is stored already. */
  readonly report: (events: readonly NewEvent[]) => Promise<void>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
}

type Matches = Detected["matches"][number];
type Seen = Detected["seen"][number];

export class Detector {
  readonly #options: DetectorOptions;
  readonly #now: () => number;
  readonly #thread: Thread<DetectionApi>;
  readonly #stop = new AbortController();
  readonly #counters: Counters;
  /** The last event that was looked at, and the last one whose effects are durable. */
  #position: string | null = null;
  #durable: string | null = null;
  /** What was found and is not durable yet: the engine will not find it again. */
  readonly #findings: Finding[] = [];
  readonly #matches: Matches[] = [];
  readonly #seen = new Map<string, Seen>();
  readonly #undecidedReports = new UndecidedReports();
  #lastCommitAt = 0;
  #lagSince: number | undefined;
  #isReady = false;
  /** Whether events that came before the start are still to be looked at: what a rule waits for may be among them. */
  #isBehind = (): boolean => true;
  readonly #turns = new Turns();
  #arrivals: AsyncIterator<readonly StoredEvent[]> | undefined;
  /** Resolves with the reason while what was found cannot be stored, or what rules had seen cannot be read. */
  #stuck = Promise.withResolvers<StoreUnavailable>();
  #advanced: (() => void)[] = [];
  #running: Promise<void> = Promise.resolve();
  #ticking: Promise<void> = Promise.resolve();

  private constructor(options: DetectorOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#thread = new Thread<DetectionApi>(
      new URL("./worker.ts", import.meta.url),
      undefined,
      endingProcess("the thread of detection"),
    );
    this.#counters = countersOf(options.registry, () => this.lagMs, this.#thread);
  }

  /** Resolves when rules are in force; what came in before is worked off behind that. */
  static async open(options: DetectorOptions): Promise<Detector> {
    const detector = new Detector(options);
    await detector.#start();
    return detector;
  }

  async #start(): Promise<void> {
    const { progress, rulebook } = this.#options;
    this.#position = this.#durable = await progress.position();
    await this.#setRules(rulebook.all());
    const outages = await progress.begin(this.#now());
    await this.#thread.call("warmAbsence", await progress.seen(), outages);
    rulebook.changeThrough((work) => this.#changeRules(work));
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    // Asked for before rules are filled again: how long what comes meanwhile has been waiting must be known.
    let next = this.#nextArrivals();
    next.catch(() => undefined);
    await this.#turns.take(() => this.#fill(this.#options.rulebook.all()));
    if (this.#stop.signal.aborted) return;
    this.#isReady = true;
    const waiting = this.#options.events.lastArrival();
    const until = performance.now() + CATCH_UP_MS_MAX;
    this.#isBehind = () => later(this.#position, waiting) !== this.#position && performance.now() < until;
    this.#ticking = this.#tickOn();
    for (let chunk = await next; chunk; chunk = await next) {
      const events = chunk;
      await this.#turns.take(() => this.#process(events));
      const last = events.at(-1)!.id;
      this.#lagSince = this.#options.events.lastArrival() === last ? undefined : timeOfId(last);
      next = this.#nextArrivals();
    }
  }

  /** Nothing is passed over: what cannot be read now is asked for again, and the lag says for how long. */
  async #nextArrivals(): Promise<readonly StoredEvent[] | undefined> {
    for (let attempt = 0; ; attempt++) {
      this.#arrivals ??= this.#options.events.arrivals(this.#position, this.#stop.signal)[Symbol.asyncIterator]();
      try {
        const { done, value } = await this.#arrivals.next();
        if (done) return undefined;
        this.#lagSince = timeOfId(value[0]!.id);
        return value;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        this.#arrivals = undefined;
        const isBehind = later(this.#position, this.#options.events.lastArrival()) !== this.#position;
        if (isBehind) this.#lagSince ??= this.#position === null ? this.#now() : timeOfId(this.#position);
        await this.#rest(attempt, error, "events cannot be read");
      }
    }
  }

  /** Before the next attempt; ends at once when the service does. */
  async #rest(attempt: number, error: unknown, what: string): Promise<void> {
    this.#counters.retries.inc();
    if (attempt % ATTEMPTS_PER_WARNING === 0) this.#options.log.warn({ err: error }, `${what}; trying again`);
    const ms = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  async #process(chunk: readonly StoredEvent[]): Promise<void> {
    const startedAt = performance.now();
    const outcome = await this.#thread.call(
      "process",
      chunk.map(({ text }) => text),
      this.#now(),
    );
    this.#counters.seconds.observe((performance.now() - startedAt) / 1000);
    this.#counters.events.inc(chunk.length);
    this.#counters.findings.inc(outcome.findings.length);
    await this.#report(outcome.undecided);
    this.#position = chunk.at(-1)!.id;
    this.#matches.push(...outcome.matches);
    for (const row of outcome.seen) this.#seen.set(`${row.ruleId} ${row.group}`, row);
    const isDue = this.#now() - this.#lastCommitAt >= PROGRESS_MS;
    if (outcome.findings.length > 0 || isDue) await this.#commit(outcome.findings);
    for (const told of this.#advanced.splice(0)) told();
  }

  /** Before the chunk counts as looked at: after a crash it is looked at again, and what was reported is not lost. */
  async #report(undecided: readonly Undecided[]): Promise<void> {
    for (const { events } of undecided) this.#counters.undecided.inc(events);
    const reports = this.#undecidedReports.reportsOf(undecided, this.#now());
    for (const { draft } of reports)
      this.#options.log.warn({ ...draft.raw }, "a rule could not be decided on an event");
    for (let attempt = 0; reports.length > 0; attempt++) {
      try {
        return await this.#options.report(reports);
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#stop.signal.aborted) throw error;
        await this.#rest(attempt, error, "reports of rules that could not be decided cannot be stored");
      }
    }
  }

  /** Tries until it is done. What fails for another reason than the store's stays to be committed with what comes next. */
  async #commit(found: readonly Finding[], isLast = false): Promise<void> {
    this.#findings.push(...found);
    const isNothingNew = this.#findings.length === 0 && this.#durable === this.#position;
    if (isNothingNew && !this.#isSignDue(isLast)) return;
    const detected: Detected | undefined =
      this.#position === null
        ? undefined
        : { upTo: this.#position, matches: [...this.#matches], seen: [...this.#seen.values()] };
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#options.raise(this.#findings, detected);
        break;
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#stop.signal.aborted) throw error;
        this.#stuck.resolve(error);
        await this.#rest(attempt, error, "findings cannot be stored");
      }
    }
    this.#stuck = Promise.withResolvers();
    this.#durable = this.#position;
    this.#findings.length = 0;
    this.#matches.length = 0;
    this.#seen.clear();
    this.#lastCommitAt = this.#now();
  }

  /** While silences are measured it must be known until when that was so. */
  #isSignDue(isLast: boolean): boolean {
    if (!isLast && this.#now() - this.#lastCommitAt < SIGN_OF_LIFE_MS) return false;
    return this.#options.rulebook
      .all()
      .some((rule) => rule.enabled && (rule.absence !== null || isDecidedByClock(rule)));
  }

  /** Looks for silences from time to time. A look that fails is told of, and followed by another. */
  async #tickOn(): Promise<void> {
    const { signal } = this.#stop;
    for (let failures = 0; !signal.aborted;) {
      await delay(TICK_MS, undefined, { signal }).catch(() => undefined);
      try {
        await this.#turns.take(() => this.#tick());
        failures = 0;
      } catch (error) {
        // What a stop leaves undone, closing does or tells of.
        if (!signal.aborted) await this.#rest(failures++, error, "silences cannot be told of");
      }
    }
  }

  async #tick(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    if (this.#isBehind() || this.#findings.length > 0) return this.#commit([]);
    const { findings, seen } = await this.#thread.call("tick", this.#now(), this.#seenMs());
    for (const row of seen) this.#seen.set(`${row.ruleId} ${row.group}`, row);
    this.#counters.findings.inc(findings.length);
    await this.#commit(findings);
  }

  /** The time up to which everything that arrived has been looked at. */
  #seenMs(): number {
    const isBehind = later(this.#position, this.#options.events.lastArrival()) !== this.#position;
    const upToMs = isBehind && this.#position !== null ? timeOfId(this.#position) : Infinity;
    return Math.min(upToMs, this.#now() - IN_FLIGHT_MS_MAX);
  }

  /** What has been looked at is in every answer from now on, unless the store takes nothing: reads go on. */
  async flush(): Promise<void> {
    if (this.#durable === this.#position) return;
    await Promise.race([this.#turns.take(() => this.#commit([])), this.#stuck.promise]);
  }

  /** Rejects where the store takes nothing: whoever wants a change is told, and the change is not made behind their back. */
  async #changeRules(work: (position: string | null) => Promise<RuleChange>): Promise<void> {
    let isRefused = false;
    const refused = this.#stuck.promise.then((error) => {
      isRefused = true;
      throw error;
    });
    const changed = this.#settle(this.#options.events.lastArrival()).then(() =>
      this.#changeInTurn(work, () => isRefused),
    );
    changed.catch(() => undefined);
    await Promise.race([changed, refused]);
  }

  async #changeInTurn(work: (position: string | null) => Promise<RuleChange>, isRefused: () => boolean): Promise<void> {
    await this.#turns.take(async () => {
      await this.#commit([]);
      if (isRefused()) return;
      const { set, removed } = await work(this.#position);
      await this.#thread.call("removeRules", removed);
      await this.#setRules(set);
    });
  }

  /** Waits until this event has been looked at. */
  async #settle(id: string | null): Promise<void> {
    if (id === null) return;
    const until = performance.now() + SETTLE_MS_MAX;
    for (let left = SETTLE_MS_MAX; left > 0; left = until - performance.now()) {
      if (this.#position !== null && this.#position >= id) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#advanced.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** In slices: the thread goes on with events in between. */
  async #setRules(rules: readonly Rule[]): Promise<void> {
    for (let at = 0; at < rules.length; at += RULES_PER_CALL) {
      await this.#thread.call("setRules", rules.slice(at, at + RULES_PER_CALL));
    }
  }

  /** Gives rules that count over time the matches that they had seen before the start. */
  async #fill(rules: readonly Rule[]): Promise<void> {
    if (this.#position === null) return;
    let wasRefused = false;
    const rest = (attempt: number, refusal: Refusal) => {
      wasRefused = true;
      const isStore = refusal instanceof StoreUnavailable;
      const refused = "what rules have seen cannot be read";
      this.#stuck.resolve(isStore ? refusal : new StoreUnavailable("failed", refused, 5, { cause: refusal }));
      return this.#rest(attempt, refusal, refused);
    };
    const { events, log } = this.#options;
    const { cut } = this.#counters;
    const { signal } = this.#stop;
    await fillRules(rules, this.#position, { events, thread: this.#thread, rest, cut, log, now: this.#now, signal });
    if (wasRefused) this.#stuck = Promise.withResolvers();
  }

  /** How long the oldest event that waits has been waiting; 0 when none does. */
  get lagMs(): number {
    return this.#lagSince === undefined ? 0 : Math.max(0, this.#now() - this.#lagSince);
  }

  /** False while the memory of rules is being filled after a start. */
  get isReady(): boolean {
    return this.#isReady;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    try {
      await this.#running;
      await this.#ticking;
      await this.#turns.take(() => this.#commit([], true));
    } finally {
      // What is not durable is looked at again at the next start.
      await this.#thread.end();
    }
  }
}

interface Counters {
  readonly events: Counter;
  readonly findings: Counter;
  readonly retries: Counter;
  readonly cut: Counter;
  readonly undecided: Counter;
  readonly seconds: Histogram;
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

function countersOf(registry: Registry, lagMs: () => number, thread: Thread<DetectionApi>): Counters {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name: `tocsin_detection_${name}`, help, registers });
  new Gauge({
    name: "tocsin_detection_lag_seconds",
    help: "How long the oldest event that no rule has looked at yet has been waiting",
    registers,
    collect() {
      this.set(lagMs() / 1000);
    },
  });
  new Gauge({
    name: "tocsin_detection_engine",
    help: "What the engine holds and what it had to give up",
    labelNames: ["what"],
    registers,
    async collect() {
      for (const [what, value] of Object.entries(await thread.call("metrics"))) this.set({ what }, value);
    },
  });
  return {
    events: counter("events_total", "Events that the rules have looked at"),
    findings: counter("findings_total", "Matches of rules that were made into alerts or added to one"),
    retries: counter(
      "retries_total",
      "Times that something had to be tried again: giving events to rules, looking for silences, storing findings",
    ),
    cut: counter(
      "memory_cut_total",
      "Rules that do not remember all their matches from before a start: too many, or not to be read",
    ),
    undecided: counter(
      "undecided_total",
      "Times that a rule could not be decided on an event: a pattern was given up or saw a part of a value, and all else held",
    ),
    seconds: new Histogram({
      name: "tocsin_detection_chunk_seconds",
      help: "What running the rules over a chunk of events took",
      buckets: SECONDS,
      registers,
    }),
  };
}
