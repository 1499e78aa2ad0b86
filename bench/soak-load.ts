import { createSocket } from "node:dgram";
import { get } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Serving } from "./bench.ts";
import { Connection, requestBytes, type RequestParts } from "./connection.ts";
import { benchEvents } from "./dataset.ts";
import { v5Packet } from "./flow-packets.ts";

// A mixed load at a fixed rate: what devices, people and their tools send to one site, all at the same time.

const SINGLES_PER_SECOND = 20;
const BATCH_EVENTS = 50;
const BATCHES_PER_SECOND = 2;
const LINES_PER_SECOND = 60;
const PACKETS_PER_SECOND = 2;
const PACKET_TUPLES = 5000;
const QUESTIONS_PER_SECOND = 3;
const LARGE_EVENT_BYTES = 512 * 1024;
const LARGE_EVENT_MS = 10_000;
const EXPORT_MS = 30_000;
const EXPORT_LOOK_MS = 250;
const STREAM_MS = 30_000;
const ALERT_MS = 1000;
const DRAFTS = 5000;

export interface SoakLoad {
  /** Answers by kind of work and status. */
  readonly answers: ReadonlyMap<string, number>;
  /** Never resolves; rejects with the first failure that is not an answer, such as a connection that broke. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

interface Collectors {
  readonly data: {
    readonly listeners: readonly { readonly name: string; readonly transport: string; readonly port: number }[];
  };
}

export async function startSoakLoad(server: Serving): Promise<SoakLoad> {
  const answers = new Map<string, number>();
  const ending = new AbortController();
  const { signal } = ending;
  const count = (kind: string, status: number | string) => {
    const key = `${kind} ${status}`;
    answers.set(key, (answers.get(key) ?? 0) + 1);
  };
  const { data } = await server.get<Collectors>("/v1/collectors");
  const portOf = (name: string, transport: string) =>
    data.listeners.find((listener) => listener.name === name && listener.transport === transport)!.port;
  const drafts = submissions();

  /** `work` on a connection of its own, so often; a slow answer is not made up for. */
  const repeat = async (kind: string, everyMs: number, work: (ask: Ask, turn: number) => Promise<void>) => {
    const connection = await Connection.open(server.port);
    const ask: Ask = async (parts) => {
      const reply = await connection.send(requestBytes({ ...parts, key: server.key }));
      count(kind, reply.status);
      return reply;
    };
    for (let turn = 0; !signal.aborted; turn++) {
      const dueAt = performance.now() + everyMs;
      await work(ask, turn);
      await pause(dueAt - performance.now(), signal);
    }
    connection.close();
  };
  const post = (path: string, body: unknown) => ({ method: "POST" as const, path, body: JSON.stringify(body) });

  const running = [
    repeat("submit", 1000 / SINGLES_PER_SECOND, async (ask, turn) => {
      await ask(post("/v1/events", drafts[turn % DRAFTS]));
    }),
    repeat("batch", 1000 / BATCHES_PER_SECOND, async (ask, turn) => {
      const at = (turn * BATCH_EVENTS) % DRAFTS;
      await ask(post("/v1/events/batch", drafts.slice(at, at + BATCH_EVENTS)));
    }),
    repeat("large event", LARGE_EVENT_MS, async (ask, turn) => {
      const line = `soak ${turn} `;
      const data = { line: line.repeat(LARGE_EVENT_BYTES / line.length), turn };
      await ask(post("/v1/events", { type: "soak_large", source: "custom", data }));
    }),
    repeat("question", 1000 / QUESTIONS_PER_SECOND, async (ask, turn) => {
      await ask(QUESTIONS[turn % QUESTIONS.length]!(turn));
    }),
    repeat("alert", ALERT_MS, async (ask, turn) => {
      const { body } = await ask({ method: "GET", path: "/v1/alerts?per_page=20" });
      const { data: alerts } = JSON.parse(body.toString()) as { data: { id: string; status: string }[] };
      const alert = alerts.find(({ status }) => status !== "resolved");
      if (alert) await ask(post(`/v1/alerts/${alert.id}/comments`, { body: `soak ${turn}` }));
      if (alert && turn % 5 === 0) await ask(post(`/v1/alerts/${alert.id}/resolve`, { resolution: "false_positive" }));
    }),
    repeat("export", EXPORT_MS, async (ask, turn) =>
      runExport(server, ask, turn, (status) => count("download", status)),
    ),
    sendLines(portOf("syslog", "tcp"), signal),
    sendPackets(portOf("netflow", "udp"), signal),
    ...["kinds=events,alerts", "kinds=events&search=login"].map((query) => follow(server, query, signal, count)),
  ];
  const all = Promise.all(running);
  const failed = Promise.withResolvers<never>();
  all.catch((error: Error) => failed.reject(new Error("the load broke off", { cause: error })));
  failed.promise.catch(() => ending.abort());
  return {
    answers,
    failed: failed.promise,
    stop: async () => {
      ending.abort();
      await all;
    },
  };
}

type Ask = (parts: Omit<RequestParts, "key">) => ReturnType<Connection["send"]>;

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, ms), undefined, { signal }).catch(() => undefined);
}

/** Without a time of their own: each happens when it arrives. */
function submissions(): object[] {
  const toMs = Date.now();
  const drafts = benchEvents({ seed: 11, fromMs: toMs - 3_600_000, toMs, count: DRAFTS });
  return Array.from(drafts, ({ type, severity, class: eventClass, raw }) => ({
    type,
    source: "custom",
    severity,
    class: eventClass,
    data: raw,
  }));
}

const search = (body: object): Omit<RequestParts, "key"> => ({
  method: "POST",
  path: "/v1/events/search",
  body: JSON.stringify(body),
});
const list = (path: string): Omit<RequestParts, "key"> => ({ method: "GET", path });
const lastHour = () => `from=${Date.now() - 3_600_000}&to=${Date.now() + 60_000}`;

const QUESTIONS: readonly ((turn: number) => Omit<RequestParts, "key">)[] = [
  () => list("/v1/events?per_page=50"),
  () => list("/v1/events?severity=high&per_page=100"),
  () => list("/v1/events?type=soak_large&per_page=20"),
  (turn) => list(`/v1/events?search=${["login", "failed", "10.0", "camera", "admin"][turn % 5]}`),
  () => search({ query: {}, aggs: { types: { terms: { field: "type" } } }, limit: 0 }),
  (turn) => search({ query: { bool: { must: [{ field: "raw.message", regex: `login_\\w+ .*=${turn % 97}` }] } } }),
  (turn) => search({ query: { bool: { must: [{ field: "raw.src_ip", cidr: `10.${turn % 250}.0.0/16` }] } } }),
  () =>
    search({
      query: {},
      aggs: {
        minutes: {
          histogram: { field: "timestamp", interval: "1h" },
          aggs: { users: { cardinality: { field: "raw.user" } } },
        },
        sources: { terms: { field: "raw.src_ip", size: 100 } },
      },
      limit: 0,
    }),
  (turn) =>
    search({ query: { bool: { must: [{ keyword: `attempt-${turn}` }] } }, sort: { severity: "asc" }, limit: 200 }),
  () => list(`/api/v1/flows?${lastHour()}`),
  () => list(`/api/v1/flows/top-talkers?${lastHour()}`),
  () => list(`/api/v1/flows/timeseries?${lastHour()}&interval=1m`),
  () => list("/v1/alerts/stats"),
  () => list("/v1/collectors"),
];

const FORMATS = ["csv", "json", "ndjson", "parquet"];

async function runExport(
  { address, key }: Serving,
  ask: Ask,
  turn: number,
  downloaded: (status: number) => void,
): Promise<void> {
  const time_range = { from: new Date(Date.now() - 7_200_000).toISOString(), to: new Date().toISOString() };
  const body = JSON.stringify({ format: FORMATS[turn % FORMATS.length], time_range });
  const jobOf = (reply: { body: Buffer }) =>
    (JSON.parse(reply.body.toString()) as { data: { id: string; status: string; download_url: string } }).data;
  const asked = await ask({ method: "POST", path: "/v1/events/export", body });
  if (asked.status !== 201) return;
  let job = jobOf(asked);
  while (job.status !== "completed" && job.status !== "failed") {
    await sleep(EXPORT_LOOK_MS);
    job = jobOf(await ask({ method: "GET", path: `/v1/events/exports/${job.id}` }));
  }
  if (job.status === "failed") downloaded(0);
  else {
    const response = await fetch(address + job.download_url, { headers: { authorization: `Bearer ${key}` } });
    for await (const _ of response.body!);
    downloaded(response.status);
  }
  await ask({ method: "DELETE", path: `/v1/events/exports/${job.id}` });
}

const address = (n: number) => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

async function sendLines(port: number, signal: AbortSignal): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  let failure: Error | undefined;
  socket.on("error", (error) => (failure = error));
  for (let n = 0; !signal.aborted; n++) {
    if (failure) throw failure;
    const words = n % 5 === 0 ? "Failed password for root" : "session opened for user backup";
    socket.write(
      `<38>${new Date().toISOString()} host-${n % 40} sshd[${n % 30_000}]: ${words} from ${address(n)} port ${1024 + (n % 60_000)} ssh2\n`,
    );
    await pause(1000 / LINES_PER_SECOND, signal);
  }
  socket.destroy();
}

async function sendPackets(port: number, signal: AbortSignal): Promise<void> {
  const socket = createSocket("udp4");
  for (let n = 0; !signal.aborted; n++) {
    socket.send(v5Packet(n * 30, Math.floor(Date.now() / 1000), PACKET_TUPLES), port, "127.0.0.1");
    await pause(1000 / PACKETS_PER_SECOND, signal);
  }
  socket.close();
}

/** A stream that is read to the full, and opened anew now and then. */
async function follow(
  { port, key }: Serving,
  query: string,
  signal: AbortSignal,
  count: (kind: string, status: number) => void,
): Promise<void> {
  while (!signal.aborted) {
    const request = get(
      { port, path: `/v1/stream?${query}`, headers: { authorization: `Bearer ${key}` } },
      (response) => {
        count("stream", response.statusCode!);
        response.on("error", () => undefined).resume();
      },
    );
    request.on("error", () => undefined);
    await pause(STREAM_MS, signal);
    request.destroy();
  }
}
