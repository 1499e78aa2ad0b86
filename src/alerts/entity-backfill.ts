import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Alert } from "../model/alert.ts";
import { addEntities, addGroupEntities, NO_ENTITIES, type AlertEntities } from "../model/alert-entity.ts";
import type { AlertStore } from "../store/ports/alert-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { EventEntities } from "./event-entities.ts";

// Fills in the entities of alerts that an earlier version stored, from the events that are still there. It runs in the
// background, in small steps with pauses: each alert has up to fifty events to read.

const ALERTS_PER_STEP = 20;
const PAUSE_MS = 50;
const RETRY_MS = 5000;

export interface EntityBackfillOptions {
  readonly alerts: Pick<AlertStore, "withoutEntities" | "fillEntities">;
  readonly eventEntities: Pick<EventEntities, "ofAlert">;
  readonly log: Logger;
}

export interface EntityBackfill {
  /** Resolves once every alert has its entities. */
  readonly done: Promise<void>;
  close(): Promise<void>;
}

export function startEntityBackfill({ alerts, eventEntities, log }: EntityBackfillOptions): EntityBackfill {
  const stop = new AbortController();
  const pause = (ms: number) => delay(ms, undefined, { signal: stop.signal }).catch(() => undefined);

  /** Returns the number of alerts that it filled in. */
  const step = async (): Promise<number> => {
    const lacking = await alerts.withoutEntities(ALERTS_PER_STEP);
    const found: ({ id: string } & AlertEntities)[] = [];
    for (const alert of lacking) found.push({ id: alert.id, ...(await entitiesOf(alert)) });
    if (found.length > 0) await alerts.fillEntities(found);
    return found.length;
  };
  const entitiesOf = async (alert: Pick<Alert, "group" | "relatedEvents">): Promise<AlertEntities> => {
    const known = addEntities(NO_ENTITIES, await eventEntities.ofAlert(alert));
    return known.entities.length > 0 ? known : addGroupEntities(known, alert.group);
  };
  const run = async () => {
    let filled = 0;
    while (!stop.signal.aborted) {
      try {
        const count = await step();
        filled += count;
        if (count === 0) break;
        await pause(PAUSE_MS);
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || stop.signal.aborted) throw error;
        log.warn({ err: error }, "entities of older alerts cannot be stored; retrying");
        await pause(RETRY_MS);
      }
    }
    if (filled > 0) log.info({ alerts: filled }, "older alerts have their entities");
  };
  const done = run().catch((error: unknown) => log.error({ err: error }, "entities of older alerts are incomplete"));
  return {
    done,
    close: async () => {
      stop.abort();
      await done;
    },
  };
}
