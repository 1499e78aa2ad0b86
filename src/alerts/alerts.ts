import { Counter, type Registry } from "prom-client";
import { idMaker } from "../lib/id.ts";
import { Turns } from "../lib/turns.ts";
import { SYSTEM, type Alert, type AlertSummary, type Comment, type MadeException } from "../model/alert.ts";
import type { JsonObject } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { NotificationReason } from "../model/notification.ts";
import type { ExceptionInput } from "../model/rule.ts";
import { StoreUnavailable, type AlertStore, type Detected, type Store } from "../store/store.ts";
import { foldFindings, questionsOf } from "./folding.ts";
import { AlertRefused, moveAlert, type Move, type Moved, type Mover } from "./moves.ts";
import { Room } from "./room.ts";
import { NOBODY, tell, type Happening, type Telling } from "./telling.ts";

export { AlertRefused, type Move } from "./moves.ts";

// The life of an alert: made of findings, then moved by people until it is closed. Nothing that matters is kept in memory.

const TRIES_MAX = 20;
const WAITING_MAX = 1000;
/** Of one rule: nobody reads more of them, and an attacker may cause one for each address that there is. */
const UNRESOLVED_MAX = 10_000;

/** The moves that people are told of. */
const TOLD_MOVES: Partial<Record<Move["action"], NotificationReason>> = { resolve: "resolved", reopen: "reopened" };

export interface AddedException extends MadeException {
  /** What it was made for has not come about. */
  takeBack(): Promise<void>;
}

export interface AlertsOptions {
  readonly store: Pick<Store, "alerts">;
  readonly addException: (ruleId: string, exception: ExceptionInput, author: string) => Promise<AddedException>;
  /** Left out, nobody is told of anything. */
  readonly telling?: Telling;
  readonly now?: () => number;
  /** Hears of each alert that was made, once it is durable. */
  readonly onCreated?: (alert: Alert, finding: Finding) => void;
  /** Hears of each alert whose severity was raised, once it is durable. */
  readonly onRaised?: (alert: AlertSummary) => void;
  readonly registry?: Registry;
  /** The greatest id of an alert that is stored: new ones are greater, whatever the clock says by now. */
  readonly lastId?: string | null;
  /** Alerts of one rule that may be unresolved. */
  readonly unresolvedMax?: number;
}

/** What is found out about an alert after it was made. */
export interface Annotation extends Partial<Pick<AlertSummary, "enrichment" | "aiAnalysis">> {
  readonly entry?: { readonly kind: "analysed"; readonly provider: string; readonly actor?: string } | undefined;
}

export interface BulkOutcome {
  readonly succeeded: readonly string[];
  readonly failed: readonly { readonly id: string; readonly refusal: AlertRefused }[];
}

export function openAlerts(options: AlertsOptions): Alerts {
  return new Alerts(options);
}

export class Alerts {
  readonly #store: AlertStore;
  readonly #addException: AlertsOptions["addException"];
  readonly #now: () => number;
  readonly #onCreated: (alert: Alert, finding: Finding) => void;
  readonly #onRaised: (alert: AlertSummary) => void;
  readonly #beyond: Counter;
  readonly #room: Room;
  readonly #telling: Telling;
  readonly #turns = new Turns();
  readonly #newAlertId: () => string;
  readonly #newEntryId: () => string;
  readonly #newCommentId: () => string;
  readonly #newNotificationId: () => string;

  constructor(options: AlertsOptions) {
    const { store, addException, telling = NOBODY, now = Date.now } = options;
    const { onCreated = () => undefined, onRaised = () => undefined } = options;
    this.#onRaised = onRaised;
    this.#room = new Room(store.alerts, options.unresolvedMax ?? UNRESOLVED_MAX);
    this.#beyond = new Counter({
      name: "tocsin_alerts_beyond_total",
      help: "Findings that made no alert of their own, since their rule had too many",
      registers: options.registry ? [options.registry] : [],
    });
    this.#telling = telling;
    this.#store = store.alerts;
    this.#addException = addException;
    this.#now = now;
    this.#onCreated = onCreated;
    this.#newAlertId = idMaker("alt_", now, options.lastId);
    this.#newEntryId = idMaker("tln_", now, options.lastId);
    this.#newCommentId = idMaker("cmt_", now, options.lastId);
    this.#newNotificationId = idMaker("ntf_", now, options.lastId);
  }

  /** Folds each finding into the alert that it belongs to, or makes one. All of it and `detected` are durable together. */
  async raise(findings: readonly Finding[], detected: Detected | undefined): Promise<void> {
    if (findings.length === 0 && !detected) return;
    const { created, happenings, beyond } = await this.#untilMade(async () => {
      const bounded = await this.#room.bound(findings, this.#now());
      const questions = questionsOf(bounded.findings);
      const places = [...questions.keys()];
      const answers = places.length === 0 ? [] : await this.#store.unresolved([...questions.values()]);
      const found = new Map<number, Alert>();
      for (const [i, alert] of answers.entries()) if (alert) found.set(places[i]!, alert);
      const at = this.#now();
      const maker = { at, newAlertId: this.#newAlertId, newEntryId: this.#newEntryId };
      const { changes, ...folded } = foldFindings(bounded.findings, found, maker);
      const told = this.#tell(folded.happenings, at);
      const timeline = [...changes.timeline, ...told.timeline];
      const { notifications } = told;
      const conflicts = await this.#store.commit({ alerts: changes.alerts, timeline, notifications, detected });
      if (conflicts.length > 0) return undefined;
      for (const { alert } of folded.created) this.#room.made(alert.rule.id);
      return { ...folded, beyond: bounded.beyond };
    });
    this.#beyond.inc(beyond);
    for (const { alert, finding } of created) this.#onCreated(alert, finding);
    for (const { alert, reason } of happenings) if (reason === "severity_raised") this.#onRaised(alert);
  }

  /** Throws AlertRefused where there is no such alert, or it does not allow the move. */
  async move(id: string, move: Move, actor: string): Promise<{ alert: AlertSummary; comment: Comment | undefined }> {
    const { succeeded, failed } = await this.#moveAll([id], move, actor);
    if (failed[0]) throw failed[0].refusal;
    return succeeded[0]!;
  }

  /**
   * Resolves a false positive and has its rule leave such events out from now on. An alert that cannot be resolved makes no
   * exception; one that somebody else resolves in the same moment takes it back.
   */
  async resolveWithException(
    id: string,
    move: Extract<Move, { action: "resolve" }>,
    exception: Omit<ExceptionInput, "reason"> & { readonly reason?: string | undefined },
    actor: string,
  ): Promise<{ alert: AlertSummary }> {
    const alert = await this.#store.get(id);
    if (!alert) throw noAlert(id);
    const outcome = moveAlert(alert, move, { ...this.#mover(actor), at: this.#now() });
    if (outcome instanceof AlertRefused) throw outcome;
    const reason = exception.reason ?? `false positive: ${id}`;
    const made = await this.#addException(alert.rule.id, { ...exception, reason }, actor);
    try {
      return await this.move(id, { ...move, exception: { id: made.id, reason: made.reason } }, actor);
    } catch (error) {
      await made.takeBack();
      throw error;
    }
  }

  /** Each alert stands for itself: what one of them does not allow is done with the others all the same. */
  async moveMany(ids: readonly string[], move: Move, actor: string): Promise<BulkOutcome> {
    const { succeeded, failed } = await this.#moveAll(ids, move, actor);
    return { succeeded: succeeded.map(({ alert }) => alert.id), failed };
  }

  async #moveAll(ids: readonly string[], move: Move, actor: string) {
    const mover = this.#mover(actor);
    return this.#untilMade(async () => {
      const succeeded: Moved[] = [];
      const failed: { id: string; refusal: AlertRefused }[] = [];
      const alerts = await this.#store.getMany(ids);
      const at = this.#now();
      for (const [i, id] of ids.entries()) {
        const alert = alerts[i];
        const outcome = alert ? moveAlert(alert, move, { ...mover, at }) : noAlert(id);
        if (outcome instanceof AlertRefused) failed.push({ id, refusal: outcome });
        else succeeded.push(outcome);
      }
      const changed = succeeded.filter(({ entries }) => entries.length > 0);
      if (changed.length === 0) return { succeeded, failed };
      if (move.action === "reopen") this.#room.reopened();
      const reason = TOLD_MOVES[move.action];
      const told = this.#tell(reason ? changed.map(({ alert }) => ({ alert, reason })) : [], at);
      const timeline = changed.flatMap(({ alert, entries }) => entries.map((entry) => ({ alertId: alert.id, entry })));
      const conflicts = await this.#store.commit({
        alerts: changed.map(({ alert }) => alert),
        timeline: [...timeline, ...told.timeline],
        notifications: told.notifications,
      });
      return conflicts.length === 0 ? { succeeded, failed } : undefined;
    });
  }

  /**
   * Adds what the service finds out about an alert: not a move, so any status will do. `find` is asked again where somebody
   * else changed the alert meanwhile; undefined from it, or no such alert, changes nothing.
   */
  async annotate(id: string, find: (alert: AlertSummary) => Annotation | undefined): Promise<AlertSummary | undefined> {
    const { alert } = await this.#untilMade(async () => {
      const [before] = await this.#store.getMany([id]);
      const found = before && find(before);
      if (!found) return { alert: undefined };
      const { entry, ...changed } = found;
      const alert: AlertSummary = { ...before, ...changed, version: before.version + 1 };
      const happened = { id: this.#newEntryId(), at: this.#now(), actor: SYSTEM };
      const conflicts = await this.#store.commit({
        alerts: [alert],
        timeline: entry ? [{ alertId: id, entry: { ...happened, ...entry } }] : [],
      });
      return conflicts.length === 0 ? { alert } : undefined;
    });
    return alert;
  }

  /** Adds what others report of an alert's address, where it has no such thing yet. */
  async addReputation(id: string, report: JsonObject): Promise<void> {
    await this.annotate(id, ({ enrichment }) =>
      "abuse_ipdb" in enrichment ? undefined : { enrichment: { ...enrichment, abuse_ipdb: report } },
    );
  }

  #tell(happenings: readonly Happening[], at: number): ReturnType<typeof tell> {
    const ids = { newEntryId: this.#newEntryId, newNotificationId: this.#newNotificationId };
    return tell(happenings, this.#telling, { at, ...ids });
  }

  #mover(actor: string): Omit<Mover, "at"> {
    return { actor, newEntryId: this.#newEntryId, newCommentId: this.#newCommentId };
  }

  /**
   * One after the other, so that many who change one alert at once do not undo each other's work again and again; whoever
   * else may write, another version in the store than was read means to begin anew.
   */
  async #untilMade<Result>(make: () => Promise<Result | undefined>): Promise<Result> {
    if (this.#turns.waiting >= WAITING_MAX)
      throw new StoreUnavailable("queue_full", "too many changes of alerts are waiting");
    return this.#turns.take(async () => {
      for (let i = 0; i < TRIES_MAX; i++) {
        const made = await make();
        if (made !== undefined) return made;
      }
      throw new StoreUnavailable("queue_full", "the alert is being changed by many at once");
    });
  }
}

function noAlert(id: string): AlertRefused {
  return new AlertRefused("not_found", `there is no alert ${id}`);
}
