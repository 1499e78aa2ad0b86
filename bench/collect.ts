import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { withServer, type Serving } from "./bench.ts";
import { prepareRules } from "./detect-ingest.ts";
import { perSecond, type Measurement } from "./figures.ts";
import { BATCH_SIZE, CONNECTIONS } from "./ingest.ts";
import { startLoad } from "./load.ts";

// Lines over TCP to the running service with a hundred active rules, from the first byte until all of them are stored and
// evaluated. The baseline is batches over HTTP in the same run.

const WARM_UP_LINES = 20_000;
const SEND_MS = 8000;
const BATCH_WARM_UP_MS = 2000;
const BATCH_MS = 6000;
const PER_SECOND_MIN = 25_000;
const BLOCK_LINES = 500;
const BLOCKS = 40;
const LOOK_MS = 20;
const WAIT_MS_MAX = 120_000;

export async function collect(): Promise<readonly Measurement[]> {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-collect-"));
  const variables = {
    TOCSIN_SYSLOG_PORT: "0",
    TOCSIN_EVE_PORT: "0",
    TOCSIN_COLLECTORS_ADDRESSES: "127.0.0.1",
    TOCSIN_COLLECTORS_LINES_PER_SECOND_MAX: "10000000",
  };
  try {
    return await withServer(
      folder,
      async (server) => {
        await prepareRules(server);
        const eve = await rateOf(server, "eve", eveLine);
        const cef = await rateOf(server, "syslog", cefLine);
        const batches = await batchRate(server);
        return [answerOf("CEF", cef, batches), answerOf("EVE", eve, batches)];
      },
      variables,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function answerOf(name: string, rate: number, batches: number): Measurement {
  return {
    name: `${name} lines over TCP, stored and evaluated by 100 rules`,
    result: perSecond(rate),
    baseline: `${perSecond(batches)} in batches of ${BATCH_SIZE} over HTTP`,
    ratio: rate / batches,
    target: `at least ${perSecond(PER_SECOND_MIN)}`,
    met: rate >= PER_SECOND_MIN,
    values: { rate, batches },
  };
}

async function rateOf(server: Serving, collector: string, lineOf: (n: number) => string): Promise<number> {
  const { data } = await server.get<Collectors>("/v1/collectors");
  const { port } = data.listeners.find(({ name, transport }) => name === collector && transport === "tcp")!;
  const blocks = Array.from({ length: BLOCKS }, (_, block) =>
    Buffer.from(Array.from({ length: BLOCK_LINES }, (__, line) => `${lineOf(block * BLOCK_LINES + line)}\n`).join("")),
  );
  const before = data.collected.events;
  const warm = await send(port, blocks, (lines) => lines < WARM_UP_LINES);
  await allDone(server, before + warm);
  const startedAt = performance.now();
  const sent = await send(port, blocks, () => performance.now() - startedAt < SEND_MS);
  await allDone(server, before + warm + sent);
  return sent / ((performance.now() - startedAt) / 1000);
}

async function send(port: number, blocks: readonly Buffer[], goesOn: (lines: number) => boolean): Promise<number> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  let lines = 0;
  for (let at = 0; goesOn(lines); at++, lines += BLOCK_LINES) {
    if (!socket.write(blocks[at % blocks.length]!)) await once(socket, "drain");
  }
  socket.end();
  await once(socket, "close");
  return lines;
}

interface Collectors {
  readonly data: {
    readonly listeners: readonly { readonly name: string; readonly transport: string; readonly port: number }[];
    readonly collected: { readonly events: number };
  };
}

/** Waits until this many lines are stored as events and evaluated by the rules. */
async function allDone(server: Serving, events: number): Promise<void> {
  const startedAt = performance.now();
  for (;;) {
    const { data } = await server.get<Collectors>("/v1/collectors");
    const { pagination } = await server.get<{ pagination: { total: number } }>("/v1/events?per_page=1");
    const ready = await server.get<{ data: { detection: { lag_seconds: number } } }>("/readyz");
    const isDetected = ready.data.detection.lag_seconds === 0;
    if (data.collected.events >= events && pagination.total >= events && isDetected) return;
    if (performance.now() - startedAt > WAIT_MS_MAX) {
      throw new Error(
        `${events} lines were sent, ${data.collected.events} became events, ${pagination.total} are stored`,
      );
    }
    await sleep(LOOK_MS);
  }
}

async function batchRate({ port, key }: Serving): Promise<number> {
  const { report } = startLoad({
    port,
    key,
    connections: CONNECTIONS,
    warmUpMs: BATCH_WARM_UP_MS,
    durationMs: BATCH_MS,
    work: { kind: "batch", size: BATCH_SIZE },
  });
  return (await report).eventsPerSecond;
}

const address = (n: number) => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

function cefLine(n: number): string {
  const time = new Date().toISOString();
  return (
    `<13>${time} gateway CEF:0|Ubiquiti|UniFi Network|9.0.0|${400 + (n % 20)}|WiFi Client Connected|1|` +
    `UNIFIcategory=Client Devices UNIFIsubCategory=WiFi UNIFIhost=Gateway UNIFIclientAlias=client ${n % 500} ` +
    `UNIFIclientMac=02:00:00:00:${(n >> 8) % 100 < 10 ? "0" : ""}${(n >> 8) % 100}:${n % 100 < 10 ? "0" : ""}${n % 100} ` +
    `src=${address(n)} dst=198.51.100.${n % 250} spt=${1024 + (n % 60_000)} dpt=443 proto=TCP ` +
    `msg=client ${n % 500} has joined the network number ${n % 7}`
  );
}

function eveLine(n: number): string {
  return JSON.stringify({
    timestamp: new Date().toISOString().replace("Z", "000+0000"),
    flow_id: 1_000_000 + n,
    in_iface: "eth0",
    event_type: n % 3 === 0 ? "alert" : "dns",
    src_ip: address(n),
    src_port: 1024 + (n % 60_000),
    dest_ip: `198.51.100.${n % 250}`,
    dest_port: n % 3 === 0 ? 443 : 53,
    proto: n % 3 === 0 ? "TCP" : "UDP",
    ...(n % 3 === 0
      ? {
          alert: {
            action: "allowed",
            gid: 1,
            signature_id: 2_000_000 + (n % 50),
            rev: 1,
            signature: `made up signature number ${n % 50}`,
            category: "Misc activity",
            severity: 3,
          },
        }
      : { dns: { type: "query", id: n % 65_536, rrname: `host-${n % 1000}.example.net`, rrtype: "A", tx_id: 0 } }),
  });
}
