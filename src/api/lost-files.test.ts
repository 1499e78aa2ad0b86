import { copyFileSync, linkSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { DAY_MS, formatDay, startOfDay } from "../lib/time.ts";

// Files of the data folder that are removed, renamed or replaced while the service runs: it must not acknowledge anything
// that the next start would not find.

let server: TestServer;

const event = (more: object = {}) => ({ type: "login_failure", source: "custom", data: {}, ...more });
const submit = (more: object = {}, headers: Record<string, string> = {}) =>
  server.call("POST", "/v1/events", { body: event(more), headers });
const total = async () => (await server.call("GET", "/v1/events?per_page=1")).body.pagination.total as number;
const dayPath = (ms = Date.now()) => join(server.dataDir, "events", `tocsin-events-${formatDay(startOfDay(ms))}.db`);
const RANGE = { from: "2026-01-01T00:00:00Z", to: "2026-01-02T00:00:00Z" };
const remove = (path: string) => rmSync(path);
const move = (path: string) => renameSync(path, `${path}.away`);
const replace = (path: string) => {
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
};
const HARM: [string, (path: string) => void][] = [
  ["removed", remove],
  ["renamed", move],
  ["replaced by a copy", replace],
];

async function expectAlarm(path: string) {
  const ready = await server.call("GET", "/readyz");
  expect(ready.status).toBe(503);
  expect(ready.body.error.message).toMatch(/removed or replaced/);
  // Paths of the machine belong in the log only.
  expect(ready.text).not.toContain(server.dataDir);
  const told = server.log.filter((line) => line["path"] === path && line["level"] === "error");
  expect(told).toHaveLength(1);
  expect(told[0]!["msg"]).toMatch(/restart/);
  expect((await server.call("GET", "/metrics")).text).toMatch(/^tocsin_store_files_gone [1-9]/m);
}

describe("on a server that they share,", () => {
  beforeAll(async () => {
    server = await openTestServer();
  });
  afterAll(() => server.close());

  describe.each(HARM)("a file that is %s while the service runs", (_, harmFile) => {
    /** A second link keeps the file, which is put back after the test: all of these share one server. */
    let harmed: string;
    const harm = (path: string) => {
      harmed = path;
      linkSync(path, `${path}.kept`);
      harmFile(path);
    };
    afterEach(async () => {
      rmSync(`${harmed}.away`, { force: true });
      renameSync(`${harmed}.kept`, harmed);
      expect((await server.call("GET", "/readyz")).status).toBe(200);
      server.log.length = 0;
    });

    test("the day file: submissions are refused from then on, and nothing acknowledged is missing after a restart", async () => {
      expect((await submit()).status).toBe(201);
      harm(dayPath());
      for (let i = 0; i < 3; i++) {
        const refused = await submit();
        expect(refused.status).toBe(503);
        expect(refused.body.error.code).toBe("unavailable");
      }
      const batch = await server.call("POST", "/v1/events/batch", { body: { events: [event(), event()] } });
      expect(batch.status).toBeGreaterThanOrEqual(400);
      await expectAlarm(dayPath());
    });

    test("the file of the keys: no key is created, and readiness reports it", async () => {
      const path = join(server.dataDir, "keys.db");
      harm(path);
      const made = await server.call("POST", "/v1/keys", {
        body: { name: "new", scopes: ["events:read"], plan: "starter" },
      });
      expect(made.status).toBe(503);
      await expectAlarm(path);
    });

    test("the file of the cases: no rule is created, and readiness reports it", async () => {
      const path = join(server.dataDir, "cases.db");
      harm(path);
      const made = await server.call("POST", "/v1/rules", {
        body: {
          name: "test.rule",
          description: "x",
          severity: "high",
          conditions: [{ field: "type", equals: "x" }],
          actions: [{ alert: { channels: [] } }],
        },
      });
      expect(made.status).toBe(503);
      await expectAlarm(path);
    });

    test("the file of the state: no export is accepted, and readiness reports it", async () => {
      const path = join(server.dataDir, "state.db");
      harm(path);
      const asked = await server.call("POST", "/v1/events/export", { body: { format: "csv", time_range: RANGE } });
      expect(asked.status).toBe(503);
      await expectAlarm(path);
    });
  });
});

describe("on a server of its own,", () => {
  beforeEach(async () => {
    server = await openTestServer();
  });
  afterEach(() => server.close());

  test("the write-ahead log of a day counts as the day file, because it alone holds the newest commits", async () => {
    expect((await submit()).status).toBe(201);
    rmSync(`${dayPath()}-wal`);
    expect((await submit()).status).toBe(503);
    await expectAlarm(`${dayPath()}-wal`);
  });

  test("a day file that is truncated in place is noticed as well", async () => {
    expect((await submit()).status).toBe(201);
    truncateSync(dayPath());
    expect((await submit()).status).toBe(503);
    await expectAlarm(dayPath());
  });

  test("a file that is moved away and back is the same file, and submissions are accepted again", async () => {
    expect((await submit()).status).toBe(201);
    move(dayPath());
    expect((await submit()).status).toBe(503);
    renameSync(`${dayPath()}.away`, dayPath());
    expect((await submit()).status).toBe(201);
    expect((await server.call("GET", "/readyz")).status).toBe(200);
    server = await server.restart();
    expect(await total()).toBe(2);
  });

  test("a replay does not stand in for an event whose file is gone", async () => {
    const headers = { "Idempotency-Key": "once" };
    expect((await submit({}, headers)).status).toBe(201);
    remove(dayPath());
    expect((await submit({}, headers)).status).toBe(503);
  });

  test("the removal of an old day is noticed without a write to it, and submissions to other days continue", async () => {
    const yesterday = Date.now() - DAY_MS;
    expect((await submit({ timestamp: new Date(yesterday).toISOString() })).status).toBe(201);
    expect((await submit()).status).toBe(201);
    server = await server.restart();
    remove(dayPath(yesterday));
    await expectAlarm(dayPath(yesterday));
    expect((await submit()).status).toBe(201);
    // No new file is created in place of the missing one.
    expect((await submit({ timestamp: new Date(yesterday).toISOString() })).status).toBe(503);
  });

  test("the lock file is watched too, because without it a second service could open the folder", async () => {
    const path = join(server.dataDir, "lock.db");
    writeFileSync(`${path}.new`, "");
    renameSync(`${path}.new`, path);
    await expectAlarm(path);
  });
});
