import { Counter, type Registry } from "prom-client";
import { idMaker } from "../lib/id.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import { SYSTEM, type Alert, type AlertSummary, type Comment, type MadeException } from "../model/alert.ts";
import type { JsonObject } from "../model/event.ts";
import type { Finding } from "../model/finding.ts";
import type { NotificationReason } from "../model/notification.ts";
import type { ExceptionInput } from "../model/rule-schema.ts";
import type { AlertStore } from "../store/ports/alert-store.ts";
import type { DetectionProgress } from "../store/ports/detection-store.ts";
import type { EventEngine } from "../store/ports/event-engine.ts";
import type { Fence } from "../store/ports/lease-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { EventEntities } from "./event-entities.ts";
import { deduplicateFindings, unresolvedQueries } from "./finding-dedup.ts";
import {
  TransitionRefused,
  applyTransition,
  type Transition,
  type TransitionResult,
  type TransitionContext,
} from "./alert-transitions.ts";
import { changedWork, type ChangedWork } from "./work-state.ts";
import { UnresolvedLimit } from "./unresolved-limit.ts";
import {
  NO_NOTIFICATIONS,
  notificationsFor,
  type AlertChange,
  type NotificationPolicy,
} from "./alert-notifications.ts";

export { TransitionRefused, type Transition } from "./alert-transitions.ts";

// The lifecycle of an alert: created from findings, then handled by people until it is resolved. All state is in the store.

const ATTEMPTS_MAX = 20;
const QUEUED_MAX = 1000;
/** The limit for one rule. Nobody reads more, and an attacker can cause one alert per address. */
const UNRESOLVED_MAX = 10_000;

/** An alert before and after a transition. */
export interface AlertTransition {
  readonly before: AlertSummary;
  readonly alert: AlertSummary;
}

/** The transition of each alert of a request. */
export type TransitionOf = (id: string) => Transition;

export interface AddedException extends MadeException {
  /** Removes the exception again when the alert could not be resolved. */
  revert(): Promise<void>;
}

export interface AlertsOptions {
  readonly store: Pick<Store, "alerts"> & { readonly events: Pick<EventEngine, "get"> };
  readonly addException: (ruleId: string, exception: ExceptionInput, author: string) => Promise<AddedException>;
  /** Without a policy no notifications are queued. */
  readonly notificationPolicy?: NotificationPolicy;
  readonly now?: () => number;
  /** Called for each new alert once it is durable. */
  readonly onCreated?: (alert: Alert, finding: Finding) => void;
  /** Called for each alert whose severity rose, once the change is durable. */
  readonly onRaised?: (alert: AlertSummary) => void;
  readonly registry?: Registry;
  /** The greatest stored alert id. New ids are greater, even if the clock was set back. */
  readonly lastId?: string | null;
  /** The maximum number of unresolved alerts per rule. */
  readonly unresolvedMax?: number;
}

/** A change that the service itself makes to an existing alert. */
export interface Annotation extends Partial<Pick<AlertSummary, "enrichment" | "aiAnalysis">> {
  readonly entry?: { readonly kind: "analysed"; readonly provider: string; readonly actor?: string } | undefined;
}

export interface BulkOutcome {
  readonly succeeded: readonly string[];
  /** What the alerts were before and are now, of those whose status, assignee, resolution or tags changed. */
  readonly changed: readonly ChangedWork[];
  readonly failed: readonly { readonly id: string; readonly refusal: TransitionRefused }[];
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
  readonly #overflow: Counter;
  readonly #unresolvedLimit: UnresolvedLimit;
  readonly #notificationPolicy: NotificationPolicy;
  readonly eventEntities: EventEntities;
  readonly #queue = new SerialQueue();
  readonly #newAlertId: () => string;
  readonly #newEntryId: () => string;
  readonly #newCommentId: () => string;
  readonly #newNotificationId: () => string;

  constructor(options: AlertsOptions) {
    const { store, addException, notificationPolicy = NO_NOTIFICATIONS, now = Date.now } = options;
    const { onCreated = () => undefined, onRaised = () => undefined } = options;
    this.#onRaised = onRaised;
    this.#unresolvedLimit = new UnresolvedLimit(store.alerts, options.unresolvedMax ?? UNRESOLVED_MAX);
    this.#overflow = new Counter({
      name: "tocsin_alerts_beyond_total",
      help: "Findings counted in an overflow alert because their rule had too many unresolved alerts",
      registers: options.registry ? [options.registry] : [],
    });
    this.#notificationPolicy = notificationPolicy;
    this.#store = store.alerts;
    this.eventEntities = new EventEntities(store.events, options.registry);
    this.#addException = addException;
    this.#now = now;
    this.#onCreated = onCreated;
    this.#newAlertId = idMaker("alt_", now, options.lastId);
    this.#newEntryId = idMaker("tln_", now, options.lastId);
    this.#newCommentId = idMaker("cmt_", now, options.lastId);
    this.#newNotificationId = idMaker("ntf_", now, options.lastId);
  }

  /**
   * Adds each finding to the alert it belongs to, or creates one. The alerts and `detected` are committed in one transaction,
   * if there is a fence under that lease.
   */
  async raise(findings: readonly Finding[], detected: DetectionProgress | undefined, fence?: Fence): Promise<void> {
    if (findings.length === 0 && !detected) return;
    const entitiesOf = await this.eventEntities.of(findings);
    const { created, changes, overflowed } = await this.#retryOnConflict(async () => {
      const limited = await this.#unresolvedLimit.apply(findings, this.#now());
      const queries = unresolvedQueries(limited.findings);
      const indexes = [...queries.keys()];
      const stored = indexes.length === 0 ? [] : await this.#store.unresolved([...queries.values()]);
      const unresolved = new Map<number, Alert>();
      for (const [i, alert] of stored.entries()) if (alert) unresolved.set(indexes[i]!, alert);
      const at = this.#now();
      const context = { at, newAlertId: this.#newAlertId, newEntryId: this.#newEntryId, entitiesOf };
      const { writes, ...deduplicated } = deduplicateFindings(limited.findings, unresolved, context);
      const queued = this.#notificationsFor(deduplicated.changes, at);
      const timeline = [...writes.timeline, ...queued.timeline];
      const { notifications } = queued;
      const conflicts = await this.#store.commit({ ...writes, timeline, notifications, detected, fence });
      if (conflicts.length > 0) return undefined;
      for (const { alert } of deduplicated.created) this.#unresolvedLimit.alertCreated(alert.rule.id);
      return { ...deduplicated, overflowed: limited.overflowed };
    });
    this.#overflow.inc(overflowed);
    for (const { alert, finding } of created) this.#onCreated(alert, finding);
    for (const { alert, reason } of changes) if (reason === "severity_raised") this.#onRaised(alert);
  }

  /** Throws TransitionRefused if the alert does not exist or its status does not allow the transition. */
  async transition(
    id: string,
    transition: Transition,
    actor: string,
  ): Promise<AlertTransition & { readonly comment: Comment | undefined }> {
    const { succeeded, failed } = await this.#transitionAll([id], transition, actor);
    if (failed[0]) throw failed[0].refusal;
    return succeeded[0]!;
  }

  /**
   * Resolves a false positive and adds an exception to its rule. An alert that cannot be resolved adds no exception; if
   * somebody else resolves the alert at the same moment, the exception is reverted.
   */
  async resolveWithException(
    id: string,
    transition: Extract<Transition, { action: "resolve" }>,
    exception: Omit<ExceptionInput, "reason"> & { readonly reason?: string | undefined },
    actor: string,
  ): Promise<AlertTransition> {
    const alert = await this.#store.get(id);
    if (!alert) throw alertNotFound(id);
    const outcome = applyTransition(alert, transition, { ...this.#transitionContext(actor), at: this.#now() });
    if (outcome instanceof TransitionRefused) throw outcome;
    const reason = exception.reason ?? `false positive: ${id}`;
    const added = await this.#addException(alert.rule.id, { ...exception, reason }, actor);
    try {
      return await this.transition(id, { ...transition, exception: { id: added.id, reason: added.reason } }, actor);
    } catch (error) {
      await added.revert();
      throw error;
    }
  }

  /** Applies the transition to each alert independently: one refusal does not affect the others. A dry run stores nothing. */
  async transitionMany(
    ids: readonly string[],
    transition: Transition | TransitionOf,
    actor: string,
    isDryRun = false,
  ): Promise<BulkOutcome> {
    const { succeeded, failed } = await this.#transitionAll(ids, transition, actor, isDryRun);
    const changed = succeeded.flatMap(({ before, alert }) => changedWork(before, alert));
    return { succeeded: succeeded.map(({ alert }) => alert.id), changed, failed };
  }

  async #transitionAll(ids: readonly string[], transition: Transition | TransitionOf, actor: string, isDryRun = false) {
    const transitionOf = typeof transition === "function" ? transition : () => transition;
    const context = this.#transitionContext(actor);
    return this.#retryOnConflict(async () => {
      const succeeded: (TransitionResult & { readonly before: AlertSummary })[] = [];
      const failed: { id: string; refusal: TransitionRefused }[] = [];
      const alerts = await this.#store.getMany(ids);
      const at = this.#now();
      for (const [i, id] of ids.entries()) {
        const alert = alerts[i];
        const outcome = alert ? applyTransition(alert, transitionOf(id), { ...context, at }) : alertNotFound(id);
        if (outcome instanceof TransitionRefused) failed.push({ id, refusal: outcome });
        else succeeded.push({ ...outcome, before: alert! });
      }
      const changed = succeeded.filter(({ entries }) => entries.length > 0);
      if (isDryRun || changed.length === 0) return { succeeded, failed };
      const changes = changed.flatMap(({ before, alert }) => {
        const reason = notificationReason(transitionOf(alert.id), before, alert);
        return reason === undefined ? [] : [{ alert, reason }];
      });
      if (changes.some(({ reason }) => reason === "reopened")) this.#unresolvedLimit.alertsReopened();
      const queued = this.#notificationsFor(changes, at);
      const timeline = changed.flatMap(({ alert, entries }) => entries.map((entry) => ({ alertId: alert.id, entry })));
      const conflicts = await this.#store.commit({
        alerts: changed.map(({ alert }) => alert),
        timeline: [...timeline, ...queued.timeline],
        notifications: queued.notifications,
      });
      return conflicts.length === 0 ? { succeeded, failed } : undefined;
    });
  }

  /**
   * Adds the service's own results to an alert in any status. `find` runs again after a version conflict. Nothing changes
   * if it returns undefined or the alert does not exist.
   */
  async annotate(
    id: string,
    find: (alert: AlertSummary) => Annotation | undefined,
    fence?: Fence,
  ): Promise<AlertSummary | undefined> {
    const { alert } = await this.#retryOnConflict(async () => {
      const [before] = await this.#store.getMany([id]);
      const found = before && find(before);
      if (!found) return { alert: undefined };
      const { entry, ...changed } = found;
      const alert: AlertSummary = { ...before, ...changed, version: before.version + 1 };
      const happened = { id: this.#newEntryId(), at: this.#now(), actor: SYSTEM };
      const conflicts = await this.#store.commit({
        alerts: [alert],
        timeline: entry ? [{ alertId: id, entry: { ...happened, ...entry } }] : [],
        fence,
      });
      return conflicts.length === 0 ? { alert } : undefined;
    });
    return alert;
  }

  /** Adds the reputation of an alert's address unless the alert already has one. */
  async addReputation(id: string, report: JsonObject): Promise<void> {
    await this.annotate(id, ({ enrichment }) =>
      "abuse_ipdb" in enrichment ? undefined : { enrichment: { ...enrichment, abuse_ipdb: report } },
    );
  }

  #notificationsFor(changes: readonly AlertChange[], at: number): ReturnType<typeof notificationsFor> {
    const ids = { newEntryId: this.#newEntryId, newNotificationId: this.#newNotificationId };
    return notificationsFor(changes, this.#notificationPolicy, { at, ...ids });
  }

  #transitionContext(actor: string): Omit<TransitionContext, "at"> {
    return { actor, newEntryId: this.#newEntryId, newCommentId: this.#newCommentId };
  }

  /**
   * Runs changes one after the other, so that concurrent changes to one alert do not invalidate each other repeatedly.
   * A change that still finds another version in the store than it read is attempted again.
   */
  async #retryOnConflict<Result>(change: () => Promise<Result | undefined>): Promise<Result> {
    if (this.#queue.waiting >= QUEUED_MAX)
      throw new StoreUnavailable("queue_full", "too many changes to alerts are queued");
    return this.#queue.take(async () => {
      for (let i = 0; i < ATTEMPTS_MAX; i++) {
        const result = await change();
        if (result !== undefined) return result;
      }
      throw new StoreUnavailable("queue_full", "the alert is being changed by too many clients at once");
    });
  }
}

/** Why the rule's channels are notified of a transition; undefined: they are not. */
function notificationReason(
  { action }: Transition,
  before: AlertSummary,
  after: AlertSummary,
): NotificationReason | undefined {
  if (action === "resolve") return "resolved";
  if (action === "reopen") return "reopened";
  if (action === "acknowledge") return before.status === "open" ? "acknowledged" : undefined;
  if (action !== "restore" || before.status === after.status) return undefined;
  if (after.status === "resolved") return "resolved";
  if (before.status === "resolved") return "reopened";
  return after.status === "acknowledged" ? "acknowledged" : undefined;
}

function alertNotFound(id: string): TransitionRefused {
  return new TransitionRefused("not_found", `alert ${id} does not exist`);
}
