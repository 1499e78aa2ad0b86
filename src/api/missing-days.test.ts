import { rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { DAY_MS, formatDay, formatTime, startOfDay } from "../lib/time.ts";
import { flowRowsOf } from "../model/flow-rows.ts";

// Days whose files were lost or damaged: missing rows are reported at once, and incomplete responses are marked.

const NOW = Date.now();
const TODAY = startOfDay(NOW);
const YESTERDAY = TODAY - DAY_MS;

let server: TestServer;
beforeEach(async () => {
  server = await openTestServer();
});
afterEach(() => server.close());

const dayName = (day: number) => formatTime(day).slice(0, 10);
const eventsPath = (day: number) => join(server.dataDir, "events", `tocsin-events-${formatDay(day)}.db`);
const flowsPath = (day: number) => join(server.dataDir, "flows", `tocsin-flows-${formatDay(day)}.duckdb`);
const submit = (day: number, count: number) =>
  server.call("POST", "/v1/events/batch", {
    body: Array.from({ length: count }, (_, n) => ({
      type: "login_failure",
      source: "custom",
      data: { n },
      timestamp: formatTime(day + n),
    })),
  });
const addFlows = (day: number, count: number) =>
  server.store.flows.append(
    flowRowsOf(
      Array.from({ length: count }, (_, n) => ({
        windowStartMs: day + 60_000,
        src: "10.0.0.1",
        dst: "192.0.2.9",
        srcPort: n,
        dstPort: 443,
        protocol: 6,
        tcpFlags: 27,
        bytes: 1000n,
        packets: 10n,
        firstSeenMs: day + 60_000,
        lastSeenMs: day + 60_005,
        exporter: "192.0.2.1",
        version: 9,
      })),
    ),
    `batch-${day}`,
  );
const INCOMPLETE = "x-tocsin-incomplete";
const ready = async () => (await server.call("GET", "/readyz")).body.data.storage;
const metric = async (kind: string) => {
  const { text } = await server.call("GET", "/metrics");
  return Number(new RegExp(`^tocsin_store_missing_rows\\{kind="${kind}"\\} (\\d+)`, "m").exec(text)?.[1]);
};

test("nothing is missing from an untouched data folder", async () => {
  await submit(YESTERDAY, 5);
  await addFlows(YESTERDAY, 5);
  server = await server.restart();
  expect(await ready()).toEqual({ status: "complete", messages: [] });
  const list = await server.call("GET", "/v1/events");
  expect([list.headers[INCOMPLETE], list.body.meta.incomplete]).toEqual([undefined, undefined]);
});

for (const [name, harm] of [
  ["removed", (path: string) => rmSync(path)],
  ["emptied", (path: string) => truncateSync(path)],
] as const) {
  test(`a past day of events that was ${name} while the service was stopped is reported at this start and at every later one`, async () => {
    await submit(YESTERDAY, 983);
    await submit(TODAY, 10);
    const path = eventsPath(YESTERDAY);
    for (let start = 0; start < 2; start++) {
      server = await server.restart(start === 0 ? () => harm(path) : undefined);
      const told = server.log.find((line) => line["kind"] === "events" && line["level"] === "error");
      expect(told).toMatchObject({ rows: 983, days: { [dayName(YESTERDAY)]: 983 } });
      expect(await ready()).toEqual({
        status: "incomplete",
        messages: [expect.stringContaining(`983 events of ${dayName(YESTERDAY)}`)],
      });
      expect(await metric("events")).toBe(983);
    }
    const list = await server.call("GET", "/v1/events");
    expect(list.body.pagination.total).toBe(10);
    expect(list.headers[INCOMPLETE]).toBe(`${dayName(YESTERDAY)} (983)`);
    expect(list.body.meta.incomplete).toEqual([{ day: dayName(YESTERDAY), missing: 983 }]);
    const search = await server.call("POST", "/v1/events/search", { body: { query: {}, limit: 0 } });
    expect(search.body.meta.incomplete).toHaveLength(1);
    const today = await server.call("GET", `/v1/events?from=${formatTime(TODAY)}`);
    expect([today.status, today.headers[INCOMPLETE]]).toEqual([200, undefined]);
  });
}

test("events that arrive after the loss are counted, and a restored file counts again", async () => {
  await submit(YESTERDAY, 20);
  let copy: DatabaseSync | undefined;
  const path = eventsPath(YESTERDAY);
  server = await server.restart(() => {
    copy = new DatabaseSync(path);
    copy.exec(`VACUUM INTO '${path}.copy'`);
    copy.close();
    rmSync(path);
  });
  await submit(YESTERDAY, 5);
  expect(await metric("events")).toBe(20);
  const { renameSync } = await import("node:fs");
  server = await server.restart(() => renameSync(`${path}.copy`, path));
  // The copy has the first twenty events, not the five that came later.
  expect(await metric("events")).toBe(5);
});

test("columns with events of a lost day are evidence in a folder without counts", async () => {
  await submit(YESTERDAY, 30);
  await server.call("POST", "/v1/events/search", { body: { query: {}, limit: 0 } });
  server = await server.restart(() => {
    rmSync(eventsPath(YESTERDAY));
    const state = new DatabaseSync(join(server.dataDir, "state.db"));
    state.exec("DELETE FROM days");
    state.close();
  });
  expect(await metric("events")).toBe(30);
});

test("days removed by retention are not missing", async () => {
  await submit(YESTERDAY, 5);
  await addFlows(YESTERDAY, 5);
  await server.store.events.removeBefore(TODAY);
  await server.store.flows.removeBefore(TODAY);
  server = await server.restart();
  expect(await ready()).toEqual({ status: "complete", messages: [] });
});

test("a day that retention removes while its events arrive is complete afterwards, and after a restart", async () => {
  const search = () =>
    server.call("POST", "/v1/events/search", {
      body: { query: {}, limit: 0, aggs: { n: { terms: { field: "raw.n" } } } },
    });
  for (let round = 0; round < 20; round++) {
    const arriving = [submit(YESTERDAY, 3), search(), submit(YESTERDAY, 2), submit(YESTERDAY, 300), search()];
    await arriving[round % arriving.length];
    await Promise.all([server.store.events.removeBefore(TODAY), submit(YESTERDAY, 4), ...arriving]);
  }
  const [listed, counted] = [await server.call("GET", "/v1/events"), await search()];
  expect(counted.body.data.total).toBe(listed.body.pagination.total);
  server = await server.restart();
  expect(await ready()).toEqual({ status: "complete", messages: [] });
});

test("a damaged flow file is reported by the first response that lacks its rows", async () => {
  await addFlows(YESTERDAY, 848);
  await addFlows(TODAY, 7);
  server = await server.restart(() => writeFileSync(flowsPath(YESTERDAY), Buffer.alloc(20_000, 0x5a)));
  const range = `from=${YESTERDAY}&to=${TODAY + DAY_MS}`;
  for (const path of ["", "/top-talkers", "/protocols", "/timeseries"]) {
    const answer = await server.call("GET", `/api/v1/flows${path}?${range}`);
    expect(answer.status).toBe(200);
    expect([path, answer.headers[INCOMPLETE]]).toEqual([path, `${dayName(YESTERDAY)} (848)`]);
  }
  expect((await server.call("GET", `/api/v1/flows?${range}`)).body.total).toBe(7);
  expect(server.log.filter((line) => line["kind"] === "flows" && line["level"] === "error")).toMatchObject([
    { rows: 848 },
  ]);
  expect(await metric("flows")).toBe(848);
  expect((await ready()).status).toBe("incomplete");
  const today = await server.call("GET", `/api/v1/flows?from=${TODAY}`);
  expect([today.body.total, today.headers[INCOMPLETE]]).toEqual([7, undefined]);
  // Quarantined under another name, it is still missing after the next start.
  server = await server.restart();
  expect(await metric("flows")).toBe(848);
});

test("a lost flow file is reported at start, before a query for its day", async () => {
  await addFlows(YESTERDAY, 9);
  server = await server.restart(() => rmSync(flowsPath(YESTERDAY)));
  expect(await metric("flows")).toBe(9);
  expect((await ready()).messages).toEqual([expect.stringContaining("9 flows")]);
});
