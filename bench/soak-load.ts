import { createSocket } from "node:dgram";
import { get } from "node:http";
import { connect } from "node:net";
import type { Serving } from "./bench.ts";
import { Connection, requestBytes, type RequestParts } from "./connection.ts";
import { benchEvents } from "./dataset.ts";
import { v5Packet } from "./flow-packets.ts";
import { pause, runExport, startLoad, type SoakLoad, type SoakWork } from "./soak-work.ts";

// A mixed load at a fixed rate: devices, people and tools of one site, all at the same time.

const SINGLES_PER_SECOND = 20;
const BATCH_EVENTS = 50;
const BATCHES_PER_SECOND = 2;
const LINES_PER_SECOND = 60;
const PACKETS_PER_SECOND = 2;
const PACKET_TUPLES = 5000;
const QUERIES_PER_SECOND = 3;
const LARGE_EVENT_BYTES = 512 * 1024;
const LARGE_EVENT_MS = 10_000;
const EXPORT_MS = 30_000;
/** Short, so that the exports of a steady load do not grow from one to the next. */
const EXPORTED_MS = 600_000;
const STREAM_MS = 30_000;
const ALERT_MS = 1000;
const DRAFTS = 5000;
/** A busy server may refuse a request. */
const REFUSALS = [429, 503];
/** Message of a query that was stopped after 30 s, which on a busy machine says nothing about the server. */
const STOPPED = /took longer than \d+ s/;

interface Collectors {
  readonly data: {
    readonly listeners: readonly { readonly name: string; readonly transport: string; readonly port: number }[];
  };
}

export async function startSoakLoad(server: Serving): Promise<SoakLoad> {
  const { data } = await server.get<Collectors>("/v1/collectors");
  const portOf = (name: string, transport: string) =>
    data.listeners.find((listener) => listener.name === name && listener.transport === transport)!.port;
  const drafts = submissions();
  const post = (path: string, body: unknown) => ({ method: "POST" as const, path, body: JSON.stringify(body) });

  return startLoad(REFUSALS, ({ signal, count, repeat }) => {
    /** Repeats requests on a separate connection. */
    const repeatRequests = async (kind: string, everyMs: number, work: (send: Send, turn: number) => Promise<void>) => {
      const connection = await Connection.open(server.port);
      const send: Send = async (parts) => {
        const reply = await connection.send(requestBytes({ ...parts, key: server.key }));
        const isStopped = reply.status === 400 && STOPPED.test(reply.body.toString());
        count(isStopped ? `${kind}, stopped after 30 s` : kind, reply.status, isStopped || undefined);
        return reply;
      };
      await repeat(everyMs, (turn) => work(send, turn));
      connection.close();
    };
    return [
      repeatRequests("submit", 1000 / SINGLES_PER_SECOND, async (send, turn) => {
        await send(post("/v1/events", drafts[turn % DRAFTS]));
      }),
      repeatRequests("batch", 1000 / BATCHES_PER_SECOND, async (send, turn) => {
        const at = (turn * BATCH_EVENTS) % DRAFTS;
        await send(post("/v1/events/batch", drafts.slice(at, at + BATCH_EVENTS)));
      }),
      repeatRequests("large event", LARGE_EVENT_MS, async (send, turn) => {
        const line = `soak ${turn} `;
        const data = { line: line.repeat(LARGE_EVENT_BYTES / line.length), turn };
        await send(post("/v1/events", { type: "soak_large", source: "custom", data }));
      }),
      repeatRequests("query", 1000 / QUERIES_PER_SECOND, async (send, turn) => {
        await send(QUERIES[turn % QUERIES.length]!(turn));
      }),
      repeatRequests("alert", ALERT_MS, handleAlert),
      repeat(EXPORT_MS, (turn) => runExport(server, { turn, lastMs: EXPORTED_MS }, count)),
      sendLines(portOf("syslog", "tcp"), repeat),
      sendPackets(portOf("netflow", "udp"), repeat),
      ...["kinds=events,alerts", "kinds=events&search=login"].map((query) => follow(server, query, signal, count)),
    ];
  });

  async function handleAlert(send: Send, turn: number): Promise<void> {
    const { status: answered, body } = await send({ method: "GET", path: "/v1/alerts?per_page=20" });
    if (answered !== 200) return;
    const { data: alerts } = JSON.parse(body.toString()) as { data: { id: string; status: string }[] };
    const alert = alerts.find(({ status }) => status !== "resolved");
    if (!alert) return;
    await send(post(`/v1/alerts/${alert.id}/comments`, { body: `soak ${turn}` }));
    if (turn % 5 === 0) await send(post(`/v1/alerts/${alert.id}/resolve`, { resolution: "false_positive" }));
  }
}

type Send = (parts: Omit<RequestParts, "key">) => ReturnType<Connection["send"]>;

/** Without timestamps: each event gets its time of arrival. */
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

const QUERIES: readonly ((turn: number) => Omit<RequestParts, "key">)[] = [
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

const address = (n: number) => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

async function sendLines(port: number, repeat: SoakWork["repeat"]): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  let failure: Error | undefined;
  socket.on("error", (error) => (failure = error));
  await repeat(1000 / LINES_PER_SECOND, async (n) => {
    if (failure) throw failure;
    const words = n % 5 === 0 ? "Failed password for root" : "session opened for user backup";
    socket.write(
      `<38>${new Date().toISOString()} host-${n % 40} sshd[${n % 30_000}]: ${words} from ${address(n)} port ${1024 + (n % 60_000)} ssh2\n`,
    );
  });
  socket.destroy();
}

async function sendPackets(port: number, repeat: SoakWork["repeat"]): Promise<void> {
  const socket = createSocket("udp4");
  await repeat(1000 / PACKETS_PER_SECOND, async (n) => {
    socket.send(v5Packet(n * 30, Math.floor(Date.now() / 1000), PACKET_TUPLES), port, "127.0.0.1");
  });
  socket.close();
}

/** Reads a stream and reopens it every STREAM_MS. */
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
