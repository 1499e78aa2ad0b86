import { openAlerts, type Alerts } from "../alerts/alerts.ts";
import { gatherEvidence } from "../analysis/evidence.ts";
import { scoreAlert } from "../analysis/scorer.ts";
import { DetectionEngine } from "../detection/detection-engine.ts";
import { parseExact } from "../lib/exact-json.ts";
import { formatTime } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import { SEVERITIES, type Event, type Severity } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { Rule } from "../model/rule.ts";
import type { StoredEvent } from "../store/ports/event-engine.ts";
import type { Store } from "../store/ports/store.ts";
import { handlingOf } from "./handling.ts";
import { randomFrom, type Random } from "./random.ts";

// Runs the rules over the demo's events as if each had arrived when it happened, and lets people handle the alerts. The
// service would raise all of them at its first start, at the same moment.

/** From an event to its alert. */
const DETECTION_MS = 600;
/** From an alert to its analysis. */
const ANALYSIS_MS = 2400;
const ANALYST = "builtin";
/** How long findings that only add to a known alert may wait for others, so that a flood is a few commits. */
const ADDED_MS_MAX = 60_000;
/** Matches that are committed at once. */
const MATCHES_MAX = 10_000;

export interface DemoReplayOptions {
  readonly store: Store;
  readonly rules: readonly Rule[];
  readonly seed: number;
  /** The end of the demo: nobody acts later. */
  readonly to: number;
  /** The names of the people who handle alerts. */
  readonly team: readonly string[];
  readonly analyseFrom: Severity | "off";
}

interface PlannedStep {
  readonly atMs: number;
  readonly run: () => Promise<unknown>;
}

export async function openDemoReplay(options: DemoReplayOptions): Promise<DemoReplay> {
  return new DemoReplay(options, await options.store.alerts.lastId());
}

export class DemoReplay {
  readonly #options: DemoReplayOptions;
  readonly #engine: DetectionEngine;
  readonly #alerts: Alerts;
  readonly #random: Random;
  readonly #analysed: readonly Severity[];
  readonly #created: Alert[] = [];
  /** In chronological order. */
  readonly #planned: PlannedStep[] = [];
  /** Findings that are not in alerts yet, and the time of the first. */
  #waiting: Finding[] = [];
  #waitingSinceMs = 0;
  /** The last event of each incident, by rule and deduplication key. */
  readonly #lastEventMs = new Map<string, number>();
  #lastId: string | undefined;
  #matches: { ruleId: string; timesMs: readonly number[] }[] = [];
  #clock = 0;
  #raised = 0;

  constructor(options: DemoReplayOptions, lastId: string | null) {
    const { store, rules, seed, analyseFrom } = options;
    const now = () => this.#clock;
    this.#options = options;
    this.#random = randomFrom(seed + 1);
    this.#analysed = analyseFrom === "off" ? [] : SEVERITIES.slice(0, SEVERITIES.indexOf(analyseFrom) + 1);
    this.#engine = new DetectionEngine({ now, seed: { first: seed, second: 1 } });
    for (const rule of rules) this.#engine.setRule(rule);
    const addException = () => Promise.reject(new Error("nobody in the demo adds exceptions"));
    const onCreated = (alert: Alert) => void this.#created.push(alert);
    this.#alerts = openAlerts({ store, now, addException, onCreated, lastId });
  }

  /** The number of alerts so far. */
  get raised(): number {
    return this.#raised;
  }

  /** Processes events in order of arrival. */
  async process(stored: readonly StoredEvent[]): Promise<void> {
    for (const { id, text } of stored) {
      const event = parseExact(text) as Event;
      const atMs = Date.parse(event.timestamp);
      await this.#runSteps(atMs + DETECTION_MS);
      this.#clock = atMs + DETECTION_MS;
      const { findings, matches } = this.#engine.process([event]);
      this.#lastId = id;
      this.#matches.push(...matches);
      if (this.#waiting.length === 0) this.#waitingSinceMs = atMs;
      this.#waiting.push(...findings);
      const hasNew = findings.map((finding) => this.#isNew(finding)).includes(true);
      const isLate = this.#waiting.length > 0 && atMs - this.#waitingSinceMs >= ADDED_MS_MAX;
      if (hasNew || isLate || this.#matches.length >= MATCHES_MAX) await this.#raise();
    }
  }

  /** Takes the remaining steps, and records that detection has seen every event. */
  async finish(): Promise<void> {
    await this.#runSteps(this.#options.to);
    this.#clock = this.#options.to;
    await this.#raise();
  }

  #isNew({ rule, dedupKey, dedupMs, firstEventMs, lastEventMs }: Finding): boolean {
    const key = `${rule.id} ${dedupKey}`;
    const known = this.#lastEventMs.get(key);
    this.#lastEventMs.set(key, lastEventMs);
    return known === undefined || firstEventMs - known >= dedupMs;
  }

  async #raise(): Promise<void> {
    if (this.#lastId === undefined) return;
    const [findings, matches] = [this.#waiting, this.#matches];
    this.#waiting = [];
    this.#matches = [];
    // The last sightings of absence rules are left out: the service would soon report that every device fell silent.
    await this.#alerts.raise(findings, { upTo: this.#lastId, matches, seen: [] });
    for (const alert of this.#created.splice(0)) this.#plan(alert);
  }

  #plan(alert: Alert): void {
    this.#raised++;
    const { id, severity, createdAt } = alert;
    if (this.#analysed.includes(severity)) this.#insert(createdAt + ANALYSIS_MS, () => this.#analyse(id));
    for (const { atMs, actor, transition } of handlingOf(alert, this.#options.team, this.#random))
      this.#insert(Math.floor(atMs), () => this.#alerts.transition(id, transition, actor));
  }

  #insert(atMs: number, run: PlannedStep["run"]): void {
    if (atMs > this.#options.to) return;
    let at = this.#planned.length;
    while (at > 0 && this.#planned[at - 1]!.atMs > atMs) at--;
    this.#planned.splice(at, 0, { atMs, run });
  }

  async #runSteps(untilMs: number): Promise<void> {
    while (this.#planned.length > 0 && this.#planned[0]!.atMs <= untilMs) {
      const { atMs, run } = this.#planned.shift()!;
      if (this.#waiting.length > 0) await this.#raise();
      this.#clock = atMs;
      await run();
    }
  }

  async #analyse(id: string): Promise<void> {
    const { store } = this.#options;
    const alert = await store.alerts.get(id);
    if (!alert) return;
    const judgement = scoreAlert(await gatherEvidence(store, alert));
    const aiAnalysis = { ...judgement, provider: ANALYST, analysed_at: formatTime(this.#clock) };
    await this.#alerts.annotate(id, () => ({ aiAnalysis, entry: { kind: "analysed", provider: ANALYST } }));
  }
}
