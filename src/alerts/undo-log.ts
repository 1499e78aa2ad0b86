import type { ChangedWork } from "./work-state.ts";

// Recent changes of many alerts, so that whoever made one can take it back. In memory: it is for the minutes after a mistake, and
// the timeline has what happened.

const UNDO_MS = 10 * 60_000;
/** Alerts of all remembered changes; the oldest changes go first. An alert takes some hundred bytes. */
const UNDO_ALERTS_MAX = 50_000;

interface RememberedChange {
  readonly keyId: string;
  readonly at: number;
  readonly alerts: ReadonlyMap<string, ChangedWork>;
}

export class UndoLog {
  readonly #now: () => number;
  readonly #newId: () => string;
  /** Oldest first. */
  readonly #changes = new Map<string, RememberedChange>();
  #alertCount = 0;

  constructor(options: { readonly now: () => number; readonly newId: () => string }) {
    this.#now = options.now;
    this.#newId = options.newId;
  }

  /** Returns the id of the change; null if nothing changed that could be taken back. */
  remember(keyId: string, alerts: readonly ChangedWork[], id = this.#newId()): string | null {
    this.#expire();
    if (alerts.length === 0 || alerts.length > UNDO_ALERTS_MAX) return null;
    this.#changes.set(id, { keyId, at: this.#now(), alerts: new Map(alerts.map((alert) => [alert.id, alert])) });
    this.#alertCount += alerts.length;
    for (const oldest of this.#changes.keys()) {
      if (this.#alertCount <= UNDO_ALERTS_MAX) break;
      this.#forget(oldest);
    }
    return id;
  }

  /** The alerts of a change of this key, once: nobody takes back the same change twice. */
  take(id: string, keyId: string): ReadonlyMap<string, ChangedWork> | undefined {
    this.#expire();
    const change = this.#changes.get(id);
    if (change?.keyId !== keyId) return undefined;
    this.#forget(id);
    return change.alerts;
  }

  #expire(): void {
    const since = this.#now() - UNDO_MS;
    for (const [id, { at }] of this.#changes) {
      if (at >= since) return;
      this.#forget(id);
    }
  }

  #forget(id: string): void {
    this.#alertCount -= this.#changes.get(id)!.alerts.size;
    this.#changes.delete(id);
  }
}
