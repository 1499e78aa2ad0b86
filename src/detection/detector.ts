import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { timeOfId } from "../lib/id.ts";
import { endingProcess, Thread } from "../lib/thread.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Finding } from "../model/finding.ts";
import { isDecidedByClock, type Rule } from "../model/rule.ts";
import type { DetectionProgress, DetectionStore } from "../store/ports/detection-store.ts";
import type { Arrival, EventEngine, NewEvent } from "../store/ports/event-engine.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { arrivalColumns } from "./arrival-columns.ts";
import { warmUpRules, later, type WarmupRefusal } from "./windows/window-warmup.ts";
import type { Rulebook, RuleChange, RunningDetection } from "./rules/rulebook.ts";
import { UndecidedReports, type Undecided } from "./undecided.ts";
import { SETTLE_MS_MAX } from "./settled-place.ts";
import type { DetectionApi } from "./detection-thread.ts";

// Follows events in order of arrival and runs the rules over them. Findings and the position are committed in one step, so
// that a crash neither loses nor repeats a finding.

const RULES_PER_CALL = 50;
/** Interval of commits without findings. */
const PROGRESS_MS = 250;
const TICK_MS = 1000;
/** How long absences are held back after a start while earlier events are still unprocessed. */
const CATCH_UP_MS_MAX = 600_000;
/** How long an event may take to arrive after it has its id. */
const IN_FLIGHT_MS_MAX = 1000;
/** Interval of commits that record, for absences, until when detection ran. */
const HEARTBEAT_MS = 5000;
const RETRY_MS = [50, 200, 1000, 5000];
/** Attempts between two warnings about a failing store: ten minutes. */
const ATTEMPTS_PER_WARNING = 120;

export interface DetectorOptions {
  readonly events: Pick<
    EventEngine,
    "arrivals" | "lastArrival" | "lastKnownArrival" | "lastArrivalBefore" | "scanLast"
  >;
  readonly progress: DetectionStore;
  readonly rulebook: Rulebook;
  /** Turns findings into alerts and commits the progress with them. */
  readonly raise: (findings: readonly Finding[], detected: DetectionProgress | undefined) => Promise<void>;
  /** Stores events about detection itself. Events with a known idempotency token are ignored. */
  readonly report: (events: readonly NewEvent[]) => Promise<void>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
}

type MatchRecord = DetectionProgress["matches"][number];
type SeenRecord = DetectionProgress["seen"][number];

/** Resolves when the rules are in force. Warm-up and the backlog follow in the background. */
export async function openDetector(options: DetectorOptions): Promise<Detector> {
  const detector = new Detector(options);
  try {
    await detector.start();
  } catch (error) {
    await detector.abandon();
    throw error;
  }
  return detector;
}

export class Detector {
  readonly #options: DetectorOptions;
  readonly #now: () => number;
  readonly #thread: Thread<DetectionApi>;
  readonly #stop = new AbortController();
  readonly #metrics: DetectorMetrics;
  /** The places of the last processed event, and of the last one whose effects are durable. */
  #position: string | null = null;
  #durable: string | null = null;
  /** Findings that are not durable yet. The engine does not report them again. */
  readonly #findings: Finding[] = [];
  readonly #matches: MatchRecord[] = [];
  readonly #seen = new Map<string, SeenRecord>();
  readonly #undecidedReports = new UndecidedReports();
  #lastCommitAt = 0;
  #lagSince: number | undefined;
  #isReady = false;
  /** True while events from before the start are unprocessed: an awaited event may be among them. */
  #isBehind = (): boolean => true;
  readonly #turns = new SerialQueue();
  #arrivals: AsyncIterator<readonly Arrival[]> | undefined;
  /** Resolves with the reason while the store refuses commits or warm-up reads. */
  #blocked = Promise.withResolvers<StoreUnavailable>();
  #progressListeners: (() => void)[] = [];
  readonly #throughTurns: RunningDetection = {
    change: (work) => this.#changeRules(work),
    takeOver: (work) => this.#turns.take(async () => this.#applyRules(await work())),
  };
  #running: Promise<void> = Promise.resolve();
  #ticking: Promise<void> = Promise.resolve();

  constructor(options: DetectorOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    // Before the thread, which nobody would end if they are refused.
    this.#metrics = createMetrics(
      options.registry,
      () => this.lagMs,
      () => this.#thread.call("metrics"),
    );
    this.#thread = new Thread<DetectionApi>(
      new URL("./detection-thread.ts", import.meta.url),
      undefined,
      endingProcess("the detection thread"),
    );
  }

  /** Loads the rules and starts processing. */
  async start(): Promise<void> {
    const { progress, rulebook } = this.#options;
    this.#position = this.#durable = await progress.position();
    await rulebook.attach(this.#throughTurns, (rules) => this.#setRules(rules));
    const outages = await progress.begin(this.#now());
    await this.#thread.call("warmAbsence", await progress.seen(), outages);
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    // Requested before warm-up, so that the lag includes events that arrive meanwhile.
    let next = this.#nextArrivals();
    next.catch(() => undefined);
    await this.#turns.take(() => this.#warmUp(this.#options.rulebook.all()));
    if (this.#stop.signal.aborted) return;
    this.#isReady = true;
    const lastBeforeStart = await this.#lastArrival();
    const until = performance.now() + CATCH_UP_MS_MAX;
    this.#isBehind = () => later(this.#position, lastBeforeStart) !== this.#position && performance.now() < until;
    this.#ticking = this.#runTicks();
    for (let chunk = await next; chunk; chunk = await next) {
      const events = chunk;
      await this.#turns.take(async () => {
        if (this.#options.rulebook.isShared) await this.#takeOverRules();
        await this.#process(events);
      });
      const last = events.at(-1)!.place;
      this.#lagSince = (await this.#isLastKnown(last)) ? undefined : timeOfId(last);
      next = this.#nextArrivals();
    }
  }

  /** Retries until events can be read, so that none is skipped. The lag metric shows the delay. */
  async #nextArrivals(): Promise<readonly Arrival[] | undefined> {
    for (let attempt = 0; ; attempt++) {
      this.#arrivals ??= this.#options.events.arrivals(this.#position, this.#stop.signal)[Symbol.asyncIterator]();
      try {
        const { done, value } = await this.#arrivals.next();
        if (done) return undefined;
        this.#lagSince = timeOfId(value[0]!.place);
        return value;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        this.#arrivals = undefined;
        if (this.#position === null || !(await this.#isLastKnown(this.#position)))
          this.#lagSince ??= this.#position === null ? this.#now() : timeOfId(this.#position);
        await this.#backOff(attempt, error, "events cannot be read");
      }
    }
  }

  /** Retries until the store answers. */
  async #lastArrival(): Promise<string | null> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#options.events.lastArrival();
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#stop.signal.aborted) throw error;
        await this.#backOff(attempt, error, "the last event cannot be read");
      }
    }
  }

  /** True if no later event is known. A store that does not answer may have later ones. */
  async #isLastKnown(place: string): Promise<boolean> {
    try {
      return later(place, await this.#options.events.lastKnownArrival()) === place;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      return false;
    }
  }

  /** Waits before the next attempt; returns at once on shutdown. */
  async #backOff(attempt: number, error: unknown, what: string): Promise<void> {
    this.#metrics.retries.inc();
    if (attempt % ATTEMPTS_PER_WARNING === 0) this.#options.log.warn({ err: error }, `${what}; retrying`);
    const ms = RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)];
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  /** Retries until the rules can be read: an event that was stored after a change by another node is subject to it. */
  async #takeOverRules(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#applyRules(await this.#options.rulebook.takeOver());
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#stop.signal.aborted) throw error;
        await this.#backOff(attempt, error, "rules cannot be read");
      }
    }
  }

  async #process(chunk: readonly Arrival[]): Promise<void> {
    const startedAt = performance.now();
    const outcome = await this.#thread.call("process", arrivalColumns(chunk), this.#now());
    this.#metrics.seconds.observe((performance.now() - startedAt) / 1000);
    this.#metrics.events.inc(chunk.length);
    this.#metrics.findings.inc(outcome.findings.length);
    await this.#report(outcome.undecided);
    this.#position = chunk.at(-1)!.place;
    this.#matches.push(...outcome.matches);
    for (const row of outcome.seen) this.#seen.set(`${row.ruleId} ${row.group}`, row);
    const isDue = this.#now() - this.#lastCommitAt >= PROGRESS_MS;
    if (outcome.findings.length > 0 || isDue) await this.#commit(outcome.findings);
    for (const notify of this.#progressListeners.splice(0)) notify();
  }

  /** Runs before the position advances: after a crash the chunk is processed again, so that no report is lost. */
  async #report(undecided: readonly Undecided[]): Promise<void> {
    for (const { events } of undecided) this.#metrics.undecided.inc(events);
    const reports = this.#undecidedReports.reportsOf(undecided, this.#now());
    for (const { draft } of reports) this.#options.log.warn({ ...draft.raw }, "rule undecided on an event");
    for (let attempt = 0; reports.length > 0; attempt++) {
      try {
        return await this.#options.report(reports);
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#stop.signal.aborted) throw error;
        await this.#backOff(attempt, error, "reports of undecided rules cannot be stored");
      }
    }
  }

  /** Retries until the store accepts. After other failures, the findings stay for the next commit. */
  async #commit(found: readonly Finding[], isLast = false): Promise<void> {
    this.#findings.push(...found);
    const isNothingNew = this.#findings.length === 0 && this.#durable === this.#position;
    if (isNothingNew && !this.#isHeartbeatDue(isLast)) return;
    const detected: DetectionProgress | undefined =
      this.#position === null
        ? undefined
        : { upTo: this.#position, matches: [...this.#matches], seen: [...this.#seen.values()] };
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#options.raise(this.#findings, detected);
        break;
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || this.#stop.signal.aborted) throw error;
        this.#blocked.resolve(error);
        await this.#backOff(attempt, error, "findings cannot be stored");
      }
    }
    this.#blocked = Promise.withResolvers();
    this.#durable = this.#position;
    this.#findings.length = 0;
    this.#matches.length = 0;
    this.#seen.clear();
    this.#lastCommitAt = this.#now();
  }

  /** Rules with absences or deadlines need to know until when detection ran. */
  #isHeartbeatDue(isLast: boolean): boolean {
    if (!isLast && this.#now() - this.#lastCommitAt < HEARTBEAT_MS) return false;
    return this.#options.rulebook
      .all()
      .some((rule) => rule.enabled && (rule.absence !== null || isDecidedByClock(rule)));
  }

  /** Ticks the engine at intervals. A failed tick is logged and retried. */
  async #runTicks(): Promise<void> {
    const { signal } = this.#stop;
    for (let failures = 0; !signal.aborted;) {
      await delay(TICK_MS, undefined, { signal }).catch(() => undefined);
      try {
        await this.#turns.take(() => this.#tick());
        failures = 0;
      } catch (error) {
        // After an abort, close() commits the rest or rejects.
        if (!signal.aborted) await this.#backOff(failures++, error, "absences and deadlines cannot be reported");
      }
    }
  }

  async #tick(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    if (this.#isBehind() || this.#findings.length > 0) return this.#commit([]);
    const { findings, seen } = await this.#thread.call("tick", this.#now(), await this.#processedMs());
    for (const row of seen) this.#seen.set(`${row.ruleId} ${row.group}`, row);
    this.#metrics.findings.inc(findings.length);
    await this.#commit(findings);
  }

  /** The time up to which all arrivals have been processed. */
  async #processedMs(): Promise<number> {
    const upToMs = (await this.#isBehindArrivals()) && this.#position !== null ? timeOfId(this.#position) : Infinity;
    return Math.min(upToMs, this.#now() - IN_FLIGHT_MS_MAX);
  }

  async #isBehindArrivals(): Promise<boolean> {
    return later(this.#position, await this.#options.events.lastArrival()) !== this.#position;
  }

  /** Commits everything processed so far, so that reads include it. Returns at once if the store refuses commits. */
  async flush(): Promise<void> {
    if (this.#durable === this.#position) return;
    await Promise.race([this.#turns.take(() => this.#commit([])), this.#blocked.promise]);
  }

  /** Rejects if the store refuses commits. The change is then not applied later. */
  async #changeRules(work: (position: string | null) => Promise<RuleChange>): Promise<void> {
    let isRefused = false;
    const refused = this.#blocked.promise.then((error) => {
      isRefused = true;
      throw error;
    });
    const changed = this.#options.events
      .lastArrival()
      .then((last) => this.#settle(last))
      .then(() => this.#changeInTurn(work, () => isRefused));
    changed.catch(() => undefined);
    await Promise.race([changed, refused]);
  }

  async #changeInTurn(work: (position: string | null) => Promise<RuleChange>, isRefused: () => boolean): Promise<void> {
    await this.#turns.take(async () => {
      await this.#commit([]);
      if (isRefused()) return;
      await this.#applyRules(await work(this.#position));
    });
  }

  async #applyRules({ set, removed }: RuleChange): Promise<void> {
    if (removed.length > 0) await this.#thread.call("removeRules", removed);
    await this.#setRules(set);
  }

  /** Waits until the event at this place has been processed. */
  async #settle(place: string | null): Promise<void> {
    if (place === null) return;
    const until = performance.now() + SETTLE_MS_MAX;
    for (let left = SETTLE_MS_MAX; left > 0; left = until - performance.now()) {
      if (this.#position !== null && this.#position >= place) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#progressListeners.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** Sends rules in slices, so that the thread can process events in between. It has no use for their tests. */
  async #setRules(rules: readonly Rule[]): Promise<void> {
    for (let at = 0; at < rules.length; at += RULES_PER_CALL) {
      const slice = rules.slice(at, at + RULES_PER_CALL).map((rule) => ({ ...rule, tests: undefined }));
      await this.#thread.call("setRules", slice);
    }
  }

  /** Restores the memory of rules that count over time. */
  async #warmUp(rules: readonly Rule[]): Promise<void> {
    if (this.#position === null) return;
    let wasRefused = false;
    const backOff = (attempt: number, refusal: WarmupRefusal) => {
      wasRefused = true;
      const isStore = refusal instanceof StoreUnavailable;
      const message = "earlier matches of rules cannot be read";
      this.#blocked.resolve(isStore ? refusal : new StoreUnavailable("failed", message, 5, { cause: refusal }));
      return this.#backOff(attempt, refusal, message);
    };
    const { events, log } = this.#options;
    const { cut } = this.#metrics;
    const { signal } = this.#stop;
    await warmUpRules(rules, this.#position, {
      events: {
        lastArrival: () => this.#lastArrival(),
        lastArrivalBefore: (ms) => events.lastArrivalBefore(ms),
        scanLast: (query, until) => events.scanLast(query, until),
      },
      thread: this.#thread,
      backOff,
      cut,
      log,
      now: this.#now,
      signal,
    });
    if (wasRefused) this.#blocked = Promise.withResolvers();
  }

  /** Age of the oldest unprocessed event; 0 if there is none. */
  get lagMs(): number {
    return this.#lagSince === undefined ? 0 : Math.max(0, this.#now() - this.#lagSince);
  }

  /** False during warm-up. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Ends what a start that failed has begun. */
  async abandon(): Promise<void> {
    this.#stop.abort();
    this.#options.rulebook.detach(this.#throughTurns);
    await this.#thread.end();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#options.rulebook.detach(this.#throughTurns);
    try {
      await this.#running;
      await this.#ticking;
      await this.#turns.take(() => this.#commit([], true));
    } finally {
      // Events after the durable position are processed again at the next start.
      await this.#thread.end();
    }
  }
}

/** The same as `lagMs` for nodes on which detection does not run, as far as can be told from what is stored. */
export async function detectionLagMs(
  { events, detection }: Pick<Store, "events" | "detection">,
  nowMs: number,
): Promise<number> {
  const [position, last] = await Promise.all([detection.position(), events.lastKnownArrival()]);
  return position === null || later(position, last) === position ? 0 : Math.max(0, nowMs - timeOfId(position));
}

interface DetectorMetrics {
  readonly events: Counter;
  readonly findings: Counter;
  readonly retries: Counter;
  readonly cut: Counter;
  readonly undecided: Counter;
  readonly seconds: Histogram;
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

function createMetrics(
  registry: Registry,
  lagMs: () => number,
  engine: () => Promise<Record<string, number>>,
): DetectorMetrics {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name: `tocsin_detection_${name}`, help, registers });
  new Gauge({
    name: "tocsin_detection_lag_seconds",
    help: "Age of the oldest event that the rules have not processed",
    registers,
    collect() {
      this.set(lagMs() / 1000);
    },
  });
  new Gauge({
    name: "tocsin_detection_engine",
    help: "State of the engine: rules, groups and entries held, and counts of evictions and refusals",
    labelNames: ["what"],
    registers,
    async collect() {
      for (const [what, value] of Object.entries(await engine())) this.set({ what }, value);
    },
  });
  return {
    events: counter("events_total", "Events processed by the rules"),
    findings: counter("findings_total", "Findings that raised an alert or joined one"),
    retries: counter("retries_total", "Retries: reading events, reporting absences, storing findings"),
    cut: counter(
      "memory_cut_total",
      "Rules whose warm-up was incomplete: too many matches, or matches that cannot be read",
    ),
    undecided: counter(
      "undecided_total",
      "Undecided rules: a pattern was aborted or saw a part of a value, and all other conditions held",
    ),
    seconds: new Histogram({
      name: "tocsin_detection_chunk_seconds",
      help: "Time to run the rules over a chunk of events",
      buckets: SECONDS,
      registers,
    }),
  };
}
