import type { AlertTransition } from "../alerts/alerts.ts";
import { explainMatch } from "../alerts/match-explanation.ts";
import type { UndoLog } from "../alerts/undo-log.ts";
import { changedWork } from "../alerts/work-state.ts";
import { alertDetailText, type Alert, type AlertSummary, type TimelineEntry } from "../model/alert.ts";
import type { AlertMatch } from "../model/alert-match.ts";
import type { ApiKey } from "../model/key.ts";
import type { Rule } from "../model/rule.ts";
import type { StoredEvent } from "../store/ports/event-engine.ts";
import type { Store } from "../store/ports/store.ts";
import { Problem } from "./problems.ts";
import { dataText, withUndo, type ApiResponse } from "./response.ts";

// One alert in full, which most calls on an alert return.

export interface AlertDetailsOptions {
  readonly store: Pick<Store, "alerts" | "events">;
  readonly findRule: (id: string) => Rule | undefined;
  readonly undoLog: UndoLog;
}

export class AlertDetails {
  readonly #store: AlertDetailsOptions["store"];
  readonly #findRule: AlertDetailsOptions["findRule"];
  readonly #undoLog: UndoLog;

  constructor({ store, findRule, undoLog }: AlertDetailsOptions) {
    this.#store = store;
    this.#findRule = findRule;
    this.#undoLog = undoLog;
  }

  async of(id: string): Promise<ApiResponse> {
    const found = await this.#store.alerts.withTimeline(id);
    if (!found) throw new Problem("not_found", `alert ${id} does not exist`);
    return this.#response(found.alert, found.timeline);
  }

  /** The response of a call that has changed the alert. The key can take the change back. */
  async ofTransition({ before, alert }: AlertTransition, key: ApiKey): Promise<ApiResponse> {
    const undoId = this.#undoLog.remember(key.id, changedWork(before, alert));
    return withUndo(await this.ofChanged(alert), undoId);
  }

  /** The response of a call that has changed what people do not. */
  async ofChanged(alert: AlertSummary): Promise<ApiResponse> {
    const { alert: stored, timeline } = (await this.#store.alerts.withTimeline(alert.id))!;
    return this.#response({ ...alert, relatedEvents: stored.relatedEvents }, timeline);
  }

  async #response(alert: Alert, timeline: readonly TimelineEntry[]): Promise<ApiResponse> {
    const texts = await Promise.all(alert.relatedEvents.map(({ id }) => this.#store.events.get(id)));
    // Retention may have removed some of the events.
    const events = alert.relatedEvents.flatMap(({ id }, i) => (texts[i] === undefined ? [] : [{ id, text: texts[i] }]));
    const match = await this.#matchOf(alert, events);
    return dataText(
      alertDetailText(
        alert,
        timeline,
        events.map(({ text }) => text),
        match,
      ),
    );
  }

  async #matchOf(alert: Alert, events: readonly StoredEvent[]): Promise<AlertMatch | null> {
    const found = await this.#definitionOf(alert);
    return found ? { ...found, events: await explainMatch(found.definition, events) } : null;
  }

  async #definitionOf({ definitionId, rule, createdAt }: Alert): Promise<Omit<AlertMatch, "events"> | undefined> {
    const stored = definitionId === undefined ? undefined : await this.#store.alerts.definition(definitionId);
    if (stored) return { origin: "stored", definition: stored };
    const current = this.#findRule(rule.id);
    return current && current.updatedAt <= createdAt ? { origin: "current", definition: current } : undefined;
  }
}
