import { afterAll, beforeAll } from "vitest";
import { openTestServer, type Answer, type TestServer } from "./api-server.ts";
import { openAlerts, type Alerts } from "../src/alerts/alerts.ts";
import type { Finding } from "../src/model/finding.ts";

// Alerts on a real server, raised from findings as detection makes them, with a clock that the test sets.

export interface AlertServer {
  readonly clock: { ms: number };
  /** Replaced by a restart. */
  readonly current: { server: TestServer };
  /** Returns the id of the alert. */
  raise(more?: Partial<Finding> & { readonly name?: string }): Promise<string>;
  post(path: string, body?: unknown, key?: string): Promise<Answer>;
  get(id: string): Promise<any>;
}

/** Opens before the first test of a file and closes after the last. */
export function alertServer(): AlertServer {
  const clock = { ms: Date.UTC(2026, 10, 15, 12) };
  const current = {} as { server: TestServer };
  let alerts: Alerts;
  let made = 0;
  beforeAll(async () => {
    current.server = await openTestServer({ now: () => clock.ms });
    // As detection does, on the server's own store.
    alerts = openAlerts({
      store: current.server.store,
      now: () => clock.ms,
      addException: () => Promise.reject(new Error("unasked")),
    });
  });
  afterAll(() => current.server.close());
  return {
    clock,
    current,
    raise: async (more = {}) => {
      const name = more.name ?? `test.rule_${++made}`;
      const finding: Finding = {
        rule: { id: `rule_of_${name}`, name, description: "A rule.", tags: ["attack.t1110"], channels: [] },
        severity: "high",
        dedupKey: `["${++made}"]`,
        dedupMs: 3_600_000,
        group: { field: "raw.src_ip", value: "192.0.2.17" },
        eventId: null,
        source: "custom",
        title: "Failed logins from 192.0.2.17",
        description: "Somebody tries passwords.",
        enrichment: {},
        eventCount: 1,
        firstEventMs: clock.ms,
        lastEventMs: clock.ms,
        events: [],
        ...more,
      };
      await alerts.raise([finding], undefined);
      const found = await current.server.store.alerts.unresolved([
        { ruleId: finding.rule.id, dedupKey: finding.dedupKey, endsAfterMs: 0, beginsBeforeMs: clock.ms * 2 },
      ]);
      return found[0]!.id;
    },
    post: (path, body, key) =>
      current.server.call("POST", `/v1/alerts/${path}`, { body, ...(key !== undefined && { key }) }),
    get: async (id) => (await current.server.call("GET", `/v1/alerts/${id}`)).body.data as unknown,
  };
}

export const faultsOf = (answer: Answer) => answer.body.error.details as { field: string; message: string }[];
export const fieldsOf = (answer: Answer) => faultsOf(answer).map(({ field }) => field);
