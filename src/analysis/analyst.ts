import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { createLruCache } from "../lib/lru.ts";
import { DAY_MS, formatTime } from "../lib/time.ts";
import { SYSTEM, type AiAnalysis, type Alert, type AlertSummary } from "../model/alert.ts";
import { STATUSES } from "../model/alert-state.ts";
import { SEVERITIES, type Severity } from "../model/event.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { gatherEvidence, type AlertEvidence } from "./evidence.ts";
import { ProviderBackoff } from "./provider-backoff.ts";
import { Provider, type ProviderOutcome } from "./provider.ts";
import { buildPrompt } from "./prompt.ts";
import { scoreAlert } from "./scorer.ts";

// Analyses alerts, on request and automatically from a severity on: with a model if one is configured, and with the built-in
// scorer as the fallback. An analysis is a text and a score on the alert; it triggers nothing.

const BUILTIN = "builtin";
/** Limit of alerts queued for automatic analysis. Further ones are dropped, counted, and found again once the queue is empty. */
const WAITING_MAX = 1000;
/** Limit of requests to the model in flight; beyond it the built-in scorer is used. */
const REQUESTS_MAX = 4;
/** Attempts for an alert that the store cannot read, such as one with events on a damaged page. */
const ATTEMPTS_MAX = 3;
/** Maximum age of alerts that are caught up at the start. */
const LOOK_BACK_MS = DAY_MS;
/** Time for background lookups to complete before the analysis. */
const DELAY_MS = 2000;
/** Minimum delay between two analyses, which leaves time for other work during a flood. */
const BETWEEN_MS = 100;

export interface AnalystSettings {
  readonly automaticFrom: Severity | "off";
  readonly url: string | null;
  readonly model: string | null;
  readonly key: string | null;
  readonly timeoutSeconds: number;
  readonly monthlyTokensMax: number;
}

/** Adds an analysis to an alert. */
export type Annotate = (
  id: string,
  find: () => {
    readonly aiAnalysis: AiAnalysis;
    readonly entry: { readonly kind: "analysed"; readonly provider: string; readonly actor: string };
  },
) => Promise<AlertSummary | undefined>;

export interface AnalystOptions {
  readonly settings: AnalystSettings;
  readonly store: Pick<Store, "alerts" | "events" | "analysis">;
  /** Adds the analysis to the alert. */
  readonly annotate: Annotate;
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
  readonly #pause = new ProviderBackoff();
  readonly #severities: readonly Severity[];
  readonly #analyses: Counter<"provider">;
  readonly #failures: Counter;
  readonly #dropped: Counter;
  readonly #stop = new AbortController();
  /** Automatic analysis, while it runs on this node. */
  #automatic: { readonly stop: AbortController; readonly annotate: Annotate } | undefined;
  #waiting: { readonly id: string; readonly from: number }[] = [];
  #leftOut = false;
  /** Failed attempts by alert id. */
  readonly #failed = createLruCache<string, number>(WAITING_MAX);
  #requests = 0;
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
      help: "Analysed alerts by provider: builtin or model",
      labelNames: ["provider"],
      registers: [registry],
    });
    this.#failures = new Counter({
      name: "tocsin_analysis_failures_total",
      help: "Analyses for which the built-in scorer replaced the model",
      registers: [registry],
    });
    const tokensUsed = () => options.store.analysis.tokensUsed(this.#month());
    new Gauge({
      name: "tocsin_analysis_month_tokens",
      help: "Tokens used in this UTC month, capped by analysis.monthly_tokens_max",
      registers: [registry],
      async collect() {
        this.set(await tokensUsed());
      },
    });
    this.#dropped = new Counter({
      name: "tocsin_analysis_dropped_total",
      help: "Alerts dropped because the analysis queue was full; they are caught up later",
      registers: [registry],
    });
  }

  /** Begins automatic analysis, with the alerts that were not analysed before. */
  async begin(annotate: Annotate = this.#options.annotate): Promise<void> {
    this.#automatic = { stop: new AbortController(), annotate };
    if (this.#severities.length === 0) return;
    await this.#lookBack();
    this.#start();
  }

  /** Ends automatic analysis. Alerts still queued are caught up when it begins again, here or elsewhere. */
  async end(): Promise<void> {
    this.#automatic?.stop.abort();
    await this.#running;
    this.#automatic = undefined;
    this.#waiting = [];
  }

  /** Queues a new alert, or one whose severity was raised, if automatic analysis runs on this node. */
  enqueue({ id, severity }: Pick<Alert, "id" | "severity">): void {
    if (!this.#automatic || !this.#severities.includes(severity)) return;
    if (this.#isFull) {
      this.#dropped.inc();
      this.#leftOut = true;
      return;
    }
    this.#waiting.push({ id, from: this.#now() + (this.#options.delayMs ?? DELAY_MS) });
    this.#start();
  }

  /** Takes a request of any node; undefined if some may have been missed, which are found among the stored alerts. */
  hear(request: Pick<Alert, "id" | "severity"> | undefined): void {
    if (request) return this.enqueue(request);
    if (this.#severities.length === 0) return;
    this.#leftOut = true;
    this.#start();
  }

  /**
   * Returns the alert with its analysis; undefined if there is no such alert. A request by a person ignores the backoff: they
   * wait only for their own answer, and see this way that the model works again.
   */
  async analyse(id: string, actor: string): Promise<AlertSummary | undefined> {
    const alert = await this.#options.store.alerts.get(id);
    if (!alert) return undefined;
    const evidence = await gatherEvidence(this.#options.store, alert);
    const aiAnalysis = await this.#judge(evidence, actor !== SYSTEM);
    this.#analyses.inc({ provider: aiAnalysis.provider === BUILTIN ? BUILTIN : "model" });
    const entry = { kind: "analysed", provider: aiAnalysis.provider, actor } as const;
    const annotate = (actor === SYSTEM && this.#automatic?.annotate) || this.#options.annotate;
    return annotate(id, () => ({ aiAnalysis, entry }));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.end();
  }

  async #judge(evidence: AlertEvidence, isRequested: boolean): Promise<AiAnalysis> {
    const outcome = this.#provider ? await this.#request(this.#provider, evidence, isRequested) : undefined;
    const analysed_at = formatTime(this.#now());
    if (this.#provider && outcome && "judgement" in outcome) {
      return { ...outcome.judgement, provider: this.#provider.name, model: this.#provider.model, analysed_at };
    }
    const failure = outcome && "error" in outcome ? { provider_error: outcome.error } : {};
    return { ...scoreAlert(evidence), provider: BUILTIN, analysed_at, ...failure };
  }

  async #request(provider: Provider, evidence: AlertEvidence, isRequested: boolean) {
    const { log } = this.#options;
    const pausedFor = this.#pausedFor(isRequested);
    const outcome =
      pausedFor === undefined ? await this.#requestWithinBudget(provider, evidence) : { error: pausedFor };
    if ("error" in outcome) {
      this.#failures.inc();
      // The cause of a backoff was logged when it began.
      const level = pausedFor === undefined ? "warn" : "debug";
      const about = { alert: evidence.alert.id, reason: outcome.error };
      log[level](about, "model not used; the built-in scorer replaces it");
    }
    return outcome;
  }

  /** Why the model is not used now; undefined if it is. Its own Retry-After holds even for requests by a person. */
  #pausedFor(isRequested: boolean): string | undefined {
    const now = this.#now();
    const paused = this.#pause.at(now);
    if (!paused) return undefined;
    const until = isRequested ? paused.askedForUntil : paused.until;
    return now < until ? `backing off until ${formatTime(until)}: ${paused.reason}` : undefined;
  }

  #learn(outcome: ProviderOutcome): void {
    // Stopping the service is not a failure of the model.
    if (this.#stop.signal.aborted) return;
    if ("failure" in outcome && outcome.failure) this.#pause.failed(outcome.failure, this.#now());
    else this.#pause.succeeded();
  }

  /** Reserves the maximum cost before the request, so that a crash never leaves too much budget. */
  async #requestWithinBudget(provider: Provider, evidence: AlertEvidence) {
    const { store, settings } = this.#options;
    if (this.#requests >= REQUESTS_MAX) return { error: `${REQUESTS_MAX} requests are already in flight` };
    this.#requests++;
    try {
      const prompt = buildPrompt(evidence);
      const most = provider.estimate(prompt);
      const month = this.#month();
      // Atomic: concurrent requests must see each other's reservations.
      const isWithin = await store.analysis.reserveTokens(month, most, settings.monthlyTokensMax);
      if (!isWithin) return { error: "the monthly token budget is used up" };
      const outcome = await provider.analyse(prompt, this.#stop.signal);
      this.#learn(outcome);
      await store.analysis.addTokens(month, outcome.tokens - most);
      return outcome;
    } finally {
      this.#requests--;
    }
  }

  /** As in 2026-11. */
  #month(): string {
    return formatTime(this.#now()).slice(0, 7);
  }

  get #isFull(): boolean {
    return this.#waiting.length >= (this.#options.waitingMax ?? WAITING_MAX);
  }

  get #isStopped(): boolean {
    return this.#automatic?.stop.signal.aborted !== false;
  }

  get #hasWork(): boolean {
    return !this.#isStopped && (this.#waiting.length > 0 || this.#leftOut);
  }

  #start(): void {
    if (this.#hasWork) this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    try {
      while (this.#hasWork) await this.#analyseNext();
    } finally {
      // Synchronous with the last check of the queue: an alert queued later starts a new run.
      this.#running = undefined;
    }
  }

  async #analyseNext(): Promise<void> {
    let id: string | undefined;
    try {
      if (this.#waiting.length === 0) await this.#lookBack();
      const [next] = this.#waiting;
      await this.#rest(Math.max(BETWEEN_MS, (next?.from ?? 0) - this.#now()));
      if (!next || this.#isStopped) return;
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

  /** Retries later. Load is temporary; a damaged alert is skipped after some attempts, until the next start or a request. */
  #putOff(id: string | undefined, error: StoreUnavailable): void {
    const { log } = this.#options;
    if (id !== undefined && error.reason === "failed") {
      const attempts = (this.#failed.get(id) ?? 0) + 1;

      this.#failed.set(id, attempts);
      if (attempts >= ATTEMPTS_MAX) {
        log.error({ err: error, alert: id }, "alert cannot be read; its automatic analysis is skipped");
        return;
      }
    }
    log.warn({ err: error, alert: id }, "store unavailable; the analysis is delayed");
    this.#leftOut = true;
  }

  async #rest(ms: number): Promise<void> {
    const signal = this.#automatic?.stop.signal;
    await sleep(Math.min(ms, DELAY_MS), undefined, { signal }).catch(() => undefined);
  }

  /** Queues unresolved alerts of the last day without an analysis, oldest first, up to the limit of the queue. */
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
    } while (after !== undefined && !this.#leftOut && !this.#isStopped);
  }
}
