import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { randomFrom } from "../src/demo/random.ts";
import { makeKey, startServer, type ServerProcess } from "./server-process.ts";

// Searches that would take minutes, on the real server in a separate process: they end in time, stop when their client
// disconnects, and block no other request.

const folder = mkdtempSync(join(tmpdir(), "tocsin-bounds-"));
const dataDir = join(folder, "data");
const TEST_MS_MAX = 60_000;
const LINES = 4096;
const LINE_CHARACTERS = 2000;
/** RE2 simulates some nine hundred states for each character of these lines, and never matches the last one. */
const HOSTILE = { field: "raw.message", regex: ".{0,300}.{0,300}.{0,300}\\x01" };
const hostile = { query: { bool: { must: [HOSTILE] } } };

const LETTERS = "abcdefgh 0123456789 ijklmnop";
/** Matches about half of the lines. */
const FOUND = /a[b-d]{3}[^e]*p.{3}k/;
let found = 0;

let server: ServerProcess;
let key: string;

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

async function call(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
  const answer = await fetch(server.address + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  return { status: answer.status, retryAfter: answer.headers.get("retry-after"), text: await answer.text() };
}

const search = (body: unknown, signal?: AbortSignal) => call("POST", "/v1/events/search", body, signal);

const lately = () => ({ from: new Date(Date.now() - 864e5), to: new Date(Date.now() + 864e5) });

/** Requests an export and returns its id. */
async function order(filter: unknown): Promise<string> {
  const request = { format: "ndjson", time_range: lately(), query: { bool: { must: [filter] } } };
  const { status, text } = await call("POST", "/v1/events/export", request);
  expect(status).toBe(201);
  return JSON.parse(text).data.id as string;
}

/** Abandoned queries fail when their client disconnects. */
function hangUp(stop: AbortController, queries: readonly Promise<unknown>[]): Promise<unknown> {
  stop.abort();
  return Promise.allSettled(queries);
}

beforeAll(async () => {
  key = await makeKey(dataDir);
  server = await startServer({ dataDir });
  const random = randomFrom(1);
  const letter = () => LETTERS[random.below(LETTERS.length)];
  for (let at = 0; at < LINES; at += 256) {
    const messages = Array.from({ length: 256 }, () => Array.from({ length: LINE_CHARACTERS }, letter).join(""));
    found += messages.filter((message) => FOUND.test(message)).length;
    const events = messages.map((message) => ({ type: "line", source: "custom", data: { message } }));
    expect((await call("POST", "/v1/events/batch", events)).status).toBe(200);
  }
}, TEST_MS_MAX);

afterAll(async () => {
  await server.end("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

test(
  "while four such searches run, every other request is answered",
  async () => {
    const stop = new AbortController();
    const ended: Answer[] = [];
    const searches = [1, 2, 3, 4].map(() => search(hostile, stop.signal).then((answer) => void ended.push(answer)));
    const others: readonly [method: string, path: string, body?: unknown][] = [
      ["GET", "/readyz"],
      ["GET", "/healthz"],
      ["GET", "/metrics"],
      ["GET", "/docs"],
      ["GET", "/v1/events?type=line&per_page=1"],
      ["GET", "/v1/events?search=abc&per_page=1"],
      ["GET", "/api/v1/flows"],
      ["GET", "/v1/alerts"],
      ["POST", "/v1/events", { type: "door", source: "custom", data: {} }],
      ["POST", "/v1/events/search", { query: { bool: { must: [{ field: "type", equals: "line" }] } }, limit: 1 }],
    ];
    for (const [method, path, body] of others) {
      const { status } = await call(method, path, body);
      expect([path, status]).toEqual([path, expect.toBeOneOf([200, 201])]);
    }
    const packed = gzipSync(JSON.stringify({ type: "door", source: "custom", data: {} }));
    const submitted = await fetch(`${server.address}/v1/events`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "content-encoding": "gzip" },
      body: packed,
    });
    expect(submitted.status).toBe(201);
    expect(ended).toEqual([]);
    await hangUp(stop, searches);
  },
  TEST_MS_MAX,
);

test(
  "searches stop when their clients disconnect: the next search of the same key runs",
  async () => {
    const stop = new AbortController();
    const searches = [1, 2, 3, 4].map(() => search(hostile, stop.signal));
    // Its response proves that the searches before it have arrived.
    expect((await call("GET", "/v1/events?type=line&per_page=1")).status).toBe(200);
    await hangUp(stop, searches);
    const { status, text } = await search({
      query: { bool: { must: [{ field: "raw.message", regex: FOUND.source }] } },
      limit: 0,
    });
    expect([status, JSON.parse(text).data?.total]).toEqual([200, found]);
  },
  TEST_MS_MAX,
);

test(
  "searches in flight are limited per key; one more is refused with a retry time and counted",
  async () => {
    const stop = new AbortController();
    const refused = Promise.withResolvers<Answer>();
    const searches = Array.from({ length: 17 }, () =>
      search(hostile, stop.signal).then((answer) => refused.resolve(answer)),
    );
    const { status, retryAfter, text } = await refused.promise;
    expect([status, Number(retryAfter) > 0]).toEqual([503, true]);
    expect(text).toContain("16");
    await hangUp(stop, searches);
    const metrics = await call("GET", "/metrics");
    expect(metrics.text).toMatch(/^tocsin_questions_refused_total [1-9]/m);
  },
  TEST_MS_MAX,
);

test(
  "an export with such a pattern stops when it is deleted, and the next one runs",
  async () => {
    const first = await order(HOSTILE);
    const statusOf = async (id: string) => JSON.parse((await call("GET", `/v1/events/exports/${id}`)).text).data.status;
    while ((await statusOf(first)) === "pending") await new Promise(setImmediate);
    expect(await statusOf(first)).toBe("running");
    expect((await call("DELETE", `/v1/events/exports/${first}`)).status).toBeLessThan(300);
    const second = await order({ field: "type", equals: "door" });
    while (["pending", "running"].includes(await statusOf(second))) await new Promise(setImmediate);
    expect(await statusOf(second)).toBe("completed");
  },
  TEST_MS_MAX,
);

test(
  "the service stops on a signal while such searches, a simulation and an export run",
  async () => {
    const rule = {
      name: "site.hostile",
      description: "",
      severity: "low",
      conditions: [HOSTILE],
      actions: [{ alert: { channels: [] } }],
    };
    const queries = [
      ...[1, 2, 3, 4].map(() => search(hostile)),
      call("POST", "/v1/rules/simulate", { rule, time_range: lately() }),
      order(HOSTILE),
    ];
    const settled = Promise.allSettled(queries);
    expect((await call("GET", "/v1/events?type=line&per_page=1")).status).toBe(200);
    expect(await server.end("SIGTERM")).toBe(0);
    await settled;
  },
  TEST_MS_MAX,
);
