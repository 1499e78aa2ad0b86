import { randomBytes } from "node:crypto";
import type { Serving } from "./bench.ts";
import { runExport, startLoad, type SoakLoad } from "./soak-work.ts";

// The worst load for a small memory limit: events and batches of the maximum size, responses with many of them, and exports
// of all of them in each format, all at the same time.

const KIBIBYTE = 1024;
const SUBMIT_BYTES_MAX = 1024 * KIBIBYTE;
const BATCH_BYTES_MAX = 32 * SUBMIT_BYTES_MAX;
/** Bytes of a submission around its text. */
const ENVELOPE_BYTES = 256;
const LARGE_EVENTS = BATCH_BYTES_MAX / SUBMIT_BYTES_MAX - 1;
const SMALL_EVENTS = 10_000;

const LARGE_EVENT_MS = 1000;
const LARGE_BATCH_MS = 20_000;
const SMALL_BATCH_MS = 20_000;
const QUERY_MS = 250;
const READERS = 4;
const EXPORTED_MS = 7_200_000;

const QUERIES: readonly ((turn: number) => readonly [path: string, body?: object])[] = [
  () => ["/v1/events?type=soak_large&per_page=100"],
  () => ["/v1/events?per_page=100"],
  (turn) => [`/v1/events?search=soak-${turn}`],
  (turn) => ["/v1/events/search", { query: { bool: { must: [{ keyword: `soak-${turn}` }] } }, limit: 100 }],
  (turn) => [
    "/v1/events/search",
    { query: { bool: { must: [{ field: "raw.line", regex: `soak-${turn % 50} .*x` }] } } },
  ],
  () => ["/v1/events/search", { query: {}, aggs: { lines: { terms: { field: "raw.line" } } }, limit: 0 }],
  () => ["/v1/events/search", { query: {}, aggs: { types: { terms: { field: "type" } } }, limit: 0 }],
];

/** A query that exceeds its memory limit is refused with 400. */
const REFUSALS = [400, 429, 503];

export function startLargeLoad(server: Serving): SoakLoad {
  return startLoad(REFUSALS, ({ count, repeat }) => {
    const statusOf = async (path: string, body?: string) => {
      const response = await fetch(server.address + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body }),
      });
      // Read and discarded: a hundred events of the maximum size are a hundred megabytes.
      for await (const _ of response.body!);
      return response.status;
    };
    // The reader of the metrics notices a server that is gone.
    const send = async (kind: string, path: string, body?: string) =>
      count(kind, await statusOf(path, body).catch((error: Error) => error.message));
    return [
      repeat(LARGE_EVENT_MS, (turn) => send("large event", "/v1/events", largeEvent(turn))),
      repeat(LARGE_BATCH_MS, (turn) => send("batch of large events", "/v1/events/batch", largeEvents(turn))),
      repeat(SMALL_BATCH_MS, (turn) => send("batch of many events", "/v1/events/batch", manyEvents(turn))),
      ...Array.from({ length: READERS }, (_, reader) =>
        repeat(QUERY_MS, async (turn) => {
          const [path, body] = QUERIES[(turn + reader) % QUERIES.length]!(turn);
          await send("query", path, body && JSON.stringify(body));
        }),
      ),
      repeat(0, (turn) => runExport(server, { turn, lastMs: EXPORTED_MS }, count)),
    ];
  });
}

/** Text that neither index nor compression can shrink, yet cheap enough that memory, not time, is the limit. */
const NOISE = randomBytes(SUBMIT_BYTES_MAX)
  .toString("base64url")
  .replace(/.{200}/g, "$& ");

function textOf(seed: number, bytes: number): string {
  const from = (seed * 7919) % (NOISE.length - bytes);
  return `soak-${seed} x ${NOISE.slice(from, from + bytes)}`.slice(0, bytes);
}

function largeEvent(turn: number): string {
  const line = textOf(turn, SUBMIT_BYTES_MAX - ENVELOPE_BYTES);
  return JSON.stringify({ type: "soak_large", source: "custom", data: { line, turn } });
}

function largeEvents(turn: number): string {
  const events = Array.from({ length: LARGE_EVENTS }, (_, n) => largeEvent(turn * LARGE_EVENTS + n));
  return `[${events.join()}]`;
}

function manyEvents(turn: number): string {
  const bytes = Math.floor(BATCH_BYTES_MAX / SMALL_EVENTS) - ENVELOPE_BYTES;
  const events = Array.from({ length: SMALL_EVENTS }, (_, n) => ({
    type: "soak_many",
    source: "custom",
    data: { line: textOf(turn * SMALL_EVENTS + n, bytes), turn, src_ip: `10.1.${n >> 8}.${n & 255}` },
  }));
  return JSON.stringify(events);
}
