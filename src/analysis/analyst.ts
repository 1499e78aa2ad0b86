import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { DAY_MS, formatTime } from "../lib/time.ts";
import { SYSTEM, type AiAnalysis, type Alert, type AlertSummary } from "../model/alert.ts";
import { STATUSES } from "../model/alert-state.ts";
import { SEVERITIES, type Severity } from "../model/event.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import { gatherEvidence, type Evidence } from "./evidence.ts";
import { Pause } from "./pause.ts";
import { Provider, type ProviderOutcome } from "./provider.ts";
import { askAbout } from "./question.ts";
import { judge } from "./scorer.ts";

// Judges alerts: when somebody asks, and by itself from a severity on. With a model where there is one, and always with the
// built-in scorer behind it. A judgement is words and a number beside the alert; it moves nothing.

const BUILTIN = "builtin";
/** Alerts that wait to be analysed by themselves; more are left out, counted, and looked for once these are done. */
const WAITING_MAX = 1000;
/** Questions to the model that are under way; beyond it the built-in scorer answers. */
const QUESTIONS_MAX = 4;
/** Attempts at an alert that the store fails to answer about, such as one whose events lie on a damaged page. */
const ATTEMPTS_MAX = 3;
/** So old may an alert be that is looked for at the start. */
const LOOK_BACK_MS = DAY_MS;
/** What is looked up in the background has this long to come; and a flood of alerts leaves time for others. */
const DELAY_MS = 2000;
const BETWEEN_MS = 100;

export interface AnalystSettings {
  readonly automaticFrom: Severity | "off";
  readonly url: string | null;
  readonly model: string | null;
  readonly key: string | null;
  readonly timeoutSeconds: number;
  readonly monthlyTokensMax: number;
}

export interface AnalystOptions {
  readonly settings: AnalystSettings;
  readonly store: Pick<Store, "alerts" | "events" | "analysis">;
  /** Adds what was found to the alert. */
  readonly annotate: (
    id: string,
    find: () => {
      readonly aiAnalysis: AiAnalysis;
      readonly entry: { readonly kind: "analysed"; readonly provider: string; readonly actor: string };
    },
  ) => Promise<AlertSummary | undefined>;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly delayMs?: number;
  readonly waitingMax?: number;
}

export class Analyst {
  readonly #options: AnalystOptions;
  readonly #now: () => number;
  readonly #provider: Provider | undefined;
  readonly #pause = new Pause();
  readonly #severities: readonly Severity[];
  readonly #analyses: Counter<"provider">;
  readonly #failures: Counter;
  readonly #dropped: Counter;
  readonly #stop = new AbortController();
  #waiting: { readonly id: string; readonly from: number }[] = [];
  #leftOut = false;
  /** Alerts that the store failed to answer about, and how often; at most as many as may wait. */
  readonly #failed = new Map<string, number>();
  #questions = 0;
  #running: Promise<void> | undefined;

  constructor(options: AnalystOptions) {
    const { settings, registry, now = Date.now } = options;
    const { url, model, key, timeoutSeconds, automaticFrom } = settings;
    this.#options = options;
    this.#now = now;
    if (url !== null && model !== null)
      this.#provider = new Provider({ url, model, key, timeoutMs: timeoutSeconds * 1000, now });
    this.#severities = automaticFrom === "off" ? [] : SEVERITIES.slice(0, SEVERITIES.indexOf(automaticFrom) + 1);
    this.#analyses = new Counter({
      name: "tocsin_analyses_total",
      help: "Alerts that were analysed, by who judged them: builtin or model",
      labelNames: ["provider"],
      registers: [registry],
    });
    this.#failures = new Counter({
      name: "tocsin_analysis_failures_total",
      help: "Questions to the model that the built-in scorer answered instead",
      registers: [registry],
    });
    const tokensUsed = () => options.store.analysis.tokensUsed(this.#month());
    new Gauge({
      name: "tocsin_analysis_month_tokens",
      help: "Tokens that were used in this UTC month, of those that analysis.monthly_tokens_max allows",
      registers: [registry],
      async collect() {
        this.set(await tokensUsed());
      },
    });
    this.#dropped = new Counter({
      name: "tocsin_analysis_dropped_total",
      help: "Alerts that were left out because too many waited to be analysed; they are looked for afterwards",
      registers: [registry],
    });
  }

  /** Looks for alerts that should have been analysed before the service ended. */
  static async open(options: AnalystOptions): Promise<Analyst> {
    const analyst = new Analyst(options);
    if (analyst.#severities.length > 0) {
      await analyst.#lookBack();
      analyst.#start();
    }
    return analyst;
  }

  /** An alert was made, or has become worse. */
  hear({ id, severity }: Pick<Alert, "id" | "severity">): void {
    if (!this.#severities.includes(severity)) return;
    if (this.#isFull) {
      this.#dropped.inc();
      this.#leftOut = true;
      return;
    }
    this.#waiting.push({ id, from: this.#now() + (this.#options.delayMs ?? DELAY_MS) });
    this.#start();
  }

  /**
   * The alert with its analysis; undefined where there is no such alert. A model that is left alone is asked all the same when a
   * person wants it: they wait for their own answer only, and it is how they see that what was wrong is right again.
   */
  async analyse(id: string, actor: string): Promise<AlertSummary | undefined> {
    const alert = await this.#options.store.alerts.get(id);
    if (!alert) return undefined;
    const evidence = await gatherEvidence(this.#options.store, alert);
    const aiAnalysis = await this.#judge(evidence, actor !== SYSTEM);
    this.#analyses.inc({ provider: aiAnalysis.provider === BUILTIN ? BUILTIN : "model" });
    const entry = { kind: "analysed", provider: aiAnalysis.provider, actor } as const;
    return this.#options.annotate(id, () => ({ aiAnalysis, entry }));
  }

  /** What waits is looked for at the next start. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #judge(evidence: Evidence, isWanted: boolean): Promise<AiAnalysis> {
    const asked = this.#provider ? await this.#ask(this.#provider, evidence, isWanted) : undefined;
    const analysed_at = formatTime(this.#now());
    if (this.#provider && asked && "judgement" in asked) {
      return { ...asked.judgement, provider: this.#provider.name, model: this.#provider.model, analysed_at };
    }
    const failure = asked && "error" in asked ? { provider_error: asked.error } : {};
    return { ...judge(evidence), provider: BUILTIN, analysed_at, ...failure };
  }

  async #ask(provider: Provider, evidence: Evidence, isWanted: boolean) {
    const { log } = this.#options;
    const pausedFor = this.#pausedFor(isWanted);
    const outcome = pausedFor === undefined ? await this.#askWithinBudget(provider, evidence) : { error: pausedFor };
    if ("error" in outcome) {
      this.#failures.inc();
      // What led to a pause was said when it began; a flood of alerts during it says nothing new.
      const level = pausedFor === undefined ? "warn" : "debug";
      const about = { alert: evidence.alert.id, reason: outcome.error };
      log[level](about, "the built-in scorer answers instead of the model");
    }
    return outcome;
  }

  /** Why the model is not asked now; undefined where it is. How long it asked to be left alone counts for everybody. */
  #pausedFor(isWanted: boolean): string | undefined {
    const now = this.#now();
    const paused = this.#pause.at(now);
    if (!paused) return undefined;
    const until = isWanted ? paused.askedForUntil : paused.until;
    return now < until ? `not asked: ${paused.reason}; it is asked again from ${formatTime(until)} on` : undefined;
  }

  #learn(outcome: ProviderOutcome): void {
    // An end of the service is no failure of the model.
    if (this.#stop.signal.aborted) return;
    if ("failure" in outcome && outcome.failure) this.#pause.failed(outcome.failure, this.#now());
    else this.#pause.succeeded();
  }

  /** The most that it may cost is written down before, so that a crash never leaves the budget larger than it is. */
  async #askWithinBudget(provider: Provider, evidence: Evidence) {
    const { store, settings } = this.#options;
    if (this.#questions >= QUESTIONS_MAX) return { error: `${QUESTIONS_MAX} questions are under way already` };
    this.#questions++;
    try {
      const question = askAbout(evidence);
      const most = provider.estimate(question);
      const month = this.#month();
      // In one step: of several who ask at once, each must see what the others may cost.
      const isWithin = await store.analysis.reserveTokens(month, most, settings.monthlyTokensMax);
      if (!isWithin) return { error: "the tokens of this month are used up" };
      const outcome = await provider.ask(question, this.#stop.signal);
      this.#learn(outcome);
      await store.analysis.addTokens(month, outcome.tokens - most);
      return outcome;
    } finally {
      this.#questions--;
    }
  }

  /** As in 2026-11. */
  #month(): string {
    return formatTime(this.#now()).slice(0, 7);
  }

  get #isFull(): boolean {
    return this.#waiting.length >= (this.#options.waitingMax ?? WAITING_MAX);
  }

  get #hasWork(): boolean {
    return !this.#stop.signal.aborted && (this.#waiting.length > 0 || this.#leftOut);
  }

  #start(): void {
    if (this.#hasWork) this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    try {
      while (this.#hasWork) await this.#analyseNext();
    } finally {
      // In the same breath as the last look at what waits: whatever comes after it starts anew.
      this.#running = undefined;
    }
  }

  async #analyseNext(): Promise<void> {
    let id: string | undefined;
    try {
      if (this.#waiting.length === 0) await this.#lookBack();
      const [next] = this.#waiting;
      await this.#rest(Math.max(BETWEEN_MS, (next?.from ?? 0) - this.#now()));
      if (!next || this.#stop.signal.aborted) return;
      this.#waiting.shift();
      id = next.id;
      await this.analyse(id, SYSTEM);
      this.#failed.delete(id);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#putOff(id, error);
      await this.#rest(error.retryAfterSeconds * 1000);
    }
  }

  /** Load passes; what is damaged does not, and is left to the next start, or to a person who asks. */
  #putOff(id: string | undefined, error: StoreUnavailable): void {
    const { log } = this.#options;
    if (id !== undefined && error.reason === "failed") {
      const attempts = (this.#failed.get(id) ?? 0) + 1;
      if (this.#failed.size >= WAITING_MAX) this.#failed.clear();
      this.#failed.set(id, attempts);
      if (attempts >= ATTEMPTS_MAX) {
        log.error(
          { err: error, alert: id },
          "the store cannot say what an alert is about; it is not analysed by itself",
        );
        return;
      }
    }
    log.warn({ err: error, alert: id }, "the store does not answer; an alert is analysed later");
    this.#leftOut = true;
  }

  async #rest(ms: number): Promise<void> {
    await sleep(Math.min(ms, DELAY_MS), undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }

  /** Unresolved alerts of the last day that have no analysis, oldest first; those beyond the maximum are looked for after these. */
  async #lookBack(): Promise<void> {
    const { alerts } = this.#options.store;
    const filter = {
      severity: this.#severities,
      status: STATUSES.filter((status) => status !== "resolved"),
      fromMs: this.#now() - LOOK_BACK_MS,
    };
    this.#leftOut = false;
    let after: string | undefined;
    do {
      const page = await alerts.list(filter, { mode: "cursor", after, size: 100 }, "created_at", false);
      for (const { id, aiAnalysis } of page.items) {
        if (aiAnalysis !== null || (this.#failed.get(id) ?? 0) >= ATTEMPTS_MAX) continue;
        if (this.#isFull) this.#leftOut = true;
        else this.#waiting.push({ id, from: 0 });
      }
      after = page.nextCursor ?? undefined;
    } while (after !== undefined && !this.#leftOut && !this.#stop.signal.aborted);
  }
}
