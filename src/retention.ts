import type { Logger } from "pino";
import type { Settings } from "./config/config.ts";
import { DAY_MS, startOfDay } from "./lib/time.ts";
import { Turns } from "./lib/turns.ts";
import type { Store } from "./store/store.ts";

// Removes what is older than it may be: at the start, and every hour.

const EVERY_MS = 3_600_000;
/** How long it can be seen what has become of a notification. */
const NOTIFICATIONS_KEPT_MS = 30 * DAY_MS;

export interface RetentionOptions {
  readonly store: Pick<Store, "events" | "flows" | "notifications" | "alerts">;
  readonly settings: Settings["retention"];
  readonly log: Logger;
  readonly now: () => number;
  /** For tests that cannot wait. */
  readonly everyMs?: number;
}

/** Resolves once the old days are gone; alerts go one by one, and the service does not wait for that. */
export async function startRetention(options: RetentionOptions): Promise<{ close(): Promise<void> }> {
  const { store, settings, log, now, everyMs = EVERY_MS } = options;
  const { eventsDays, flowsDays, alertsDays } = settings;
  const stop = new AbortController();
  /** What fails for one kind must not keep the others. */
  const attempt = async (what: string, remove: () => Promise<void>) => {
    try {
      await remove();
    } catch (error) {
      log.error({ err: error }, `old ${what} not removed; the next hour tries again`);
    }
  };
  const removeDays = async () => {
    const today = startOfDay(now());
    await attempt("days of events", async () => {
      const events = await store.events.removeBefore(today - eventsDays * DAY_MS);
      if (events.days > 0) log.info(events, "old days of events removed");
    });
    await attempt("days of flows", async () => {
      const flows = await store.flows.removeBefore(today - flowsDays * DAY_MS);
      if (flows.days > 0) log.info(flows, "old days of flows removed");
    });
    await attempt("notifications", async () => {
      const notifications = await store.notifications.removeBefore(now() - NOTIFICATIONS_KEPT_MS);
      if (notifications > 0) log.info({ notifications }, "old notifications removed");
    });
  };
  const removeAlerts = () =>
    attempt("alerts", async () => {
      const alerts = await store.alerts.removeResolvedBefore(now() - alertsDays * DAY_MS, stop.signal);
      if (alerts > 0) log.info({ alerts }, "old alerts removed");
    });
  const run = async () => {
    await removeDays();
    await removeAlerts();
  };
  await removeDays();
  const turns = new Turns();
  void turns.take(removeAlerts);
  const timer = setInterval(() => void turns.take(run), everyMs);
  return {
    close: async () => {
      clearInterval(timer);
      stop.abort();
      await turns.settled();
    },
  };
}
