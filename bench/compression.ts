import { mkdtemp, rm } from "node:fs/promises";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { constants, gzip, zstdCompress } from "node:zlib";
import { COMPRESSED_BYTES_MIN } from "../src/api/compression.ts";
import { ENCODINGS, type Encoding } from "../src/api/content-encoding.ts";
import { demoEvents } from "../src/demo/demo.ts";
import { DAY_MS, formatTime } from "../src/lib/time.ts";
import { timed, withServer, type Serving } from "./bench.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// Compressed answers. Two questions: up to which speed of a connection does compressing an answer of a size pay, and what
// does a client on the same machine, for whom it never pays, lose?

const SIZES = [1024, 2048, 4096, 8192, 16_384, 65_536, 262_144];
const ROUNDS = 200;
/** Wireless networks and VPNs are slower; on a wired local network the time does not matter. */
const MEGABITS_MIN = 300;
const SHARE_MAX = 0.35;
/** For a list of 100 events on loopback, against the same list as it is. */
const SLOWDOWN_MAX = 2;
const EVENTS = 5000;

const CODECS: Readonly<Record<Encoding, (content: Buffer) => Promise<Buffer>>> = {
  gzip: (content) => promisify(gzip)(content, { level: 1 }),
  zstd: (content) => promisify(zstdCompress)(content, { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
};

export async function compression(): Promise<readonly Measurement[]> {
  const measurements: Measurement[] = [];
  const content = answerText();
  for (const encoding of ENCODINGS) {
    for (const size of SIZES) measurements.push(await breakEven(encoding, content.subarray(0, size)));
  }
  return [...measurements, ...(await onLoopback())];
}

/** The speed at which the time to compress equals the time that the saved bytes would take. */
async function breakEven(encoding: Encoding, content: Buffer): Promise<Measurement> {
  const took: number[] = [];
  let compressed = content;
  for (let round = 0; round < ROUNDS; round++) {
    const { ms, value } = await timed(() => CODECS[encoding](content));
    took.push(ms);
    compressed = value;
  }
  const { p50 } = spreadOf(took);
  const ratio = compressed.length / content.length;
  const megabits = ((content.length - compressed.length) * 8) / p50 / 1000;
  const isCompressed = content.length >= COMPRESSED_BYTES_MIN;
  return {
    name: `${encoding}, answer of ${content.length.toLocaleString("en")} bytes${isCompressed ? "" : " (sent as it is)"}`,
    result: `${Math.round(p50 * 1000)} µs; pays up to ${Math.round(megabits)} Mbit/s`,
    baseline: `${content.length} bytes`,
    ratio,
    target: isCompressed ? `at most ${SHARE_MAX}; pays up to ${MEGABITS_MIN} Mbit/s` : "none",
    met: !isCompressed || (ratio <= SHARE_MAX && megabits >= MEGABITS_MIN),
    values: { microseconds: p50 * 1000, bytes: compressed.length, megabits },
  };
}

/** The text of a list of events. */
function answerText(): Buffer {
  const to = Date.UTC(2026, 10, 15, 17);
  const drafts = [...demoEvents({ seed: 1, from: to - DAY_MS, to, count: 1000, platform: "platform" })];
  const events = drafts.map(({ timestampMs, ...event }, nth) => {
    const id = `evt_01a1eae707607000${(0x8000_0000_0000_0000n + BigInt(nth) * 0x3_1415_9265n).toString(16)}`;
    return { id, ...event, timestamp: formatTime(timestampMs) };
  });
  return Buffer.from(JSON.stringify({ data: events }));
}

/** The same list as it is, with gzip and with zstd, in turns on one connection. */
async function onLoopback(): Promise<Measurement[]> {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-compression-"));
  try {
    return await withServer(folder, async (server) => {
      await submitEvents(server);
      const kinds = ["identity", ...ENCODINGS] as const;
      const took = new Map<string, number[]>(kinds.map((kind) => [kind, []]));
      const bytes = new Map<string, number>();
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (let round = 0; round < ROUNDS; round++) {
        for (const kind of kinds) {
          const { ms, value } = await timed(() => sizeOfList(server, kind, agent));
          took.get(kind)!.push(ms);
          bytes.set(kind, value);
        }
      }
      agent.destroy();
      const plain = spreadOf(took.get("identity")!);
      return ENCODINGS.map((encoding): Measurement => {
        const spread = spreadOf(took.get(encoding)!);
        const ratio = spread.p50 / plain.p50;
        return {
          name: `list of 100 events with ${encoding}, on loopback`,
          result: `p50 ${ms(spread.p50)}; ${bytes.get(encoding)!.toLocaleString("en")} bytes`,
          baseline: `p50 ${ms(plain.p50)}; ${bytes.get("identity")!.toLocaleString("en")} bytes`,
          ratio,
          target: `at most ${SLOWDOWN_MAX}`,
          met: ratio <= SLOWDOWN_MAX,
          values: { ...spread, bytes: bytes.get(encoding)!, plainP50: plain.p50, plainBytes: bytes.get("identity")! },
        };
      });
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function submitEvents(server: Serving): Promise<void> {
  const to = Date.now();
  const drafts = demoEvents({ seed: 1, from: to - DAY_MS, to, count: EVENTS, platform: "platform" });
  const batch = [...drafts].map(({ type, severity, raw }) => ({ type, source: "custom", severity, data: raw }));
  await server.post("/v1/events/batch", batch);
}

function sizeOfList(server: Serving, encoding: string, agent: Agent): Promise<number> {
  const headers = { authorization: `Bearer ${server.key}`, "accept-encoding": encoding };
  return new Promise((resolve, reject) => {
    get({ port: server.port, path: "/v1/events?per_page=100", headers, agent }, (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => (bytes += chunk.length));
      response.on("end", () => resolve(bytes));
      response.on("error", reject);
    }).on("error", reject);
  });
}
