import { writeFileSync } from "node:fs";
import { knownFormats } from "../formats/known-formats.ts";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestOptions, type TestServer } from "../../../test/api-server.ts";
import { loadSettings } from "../../config/config.ts";
import type { Settings } from "../../config/settings.ts";
import { createLog } from "../../lib/log.ts";
import { StoreUnavailable } from "../../store/ports/store-errors.ts";
import type { Store } from "../../store/ports/store.ts";
import { CLIENT_KEY, SERVER_CERTIFICATE } from "./certificates.fixture.ts";
import { closeAfter, closeAll, connected, linesOf, sendDatagrams } from "./line-sockets.fixture.ts";
import { openLineReceiver, type LineReceiverSettings } from "./line-receiver.ts";

// Lines through real sockets into the real service.

let server: TestServer;
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-lines-"));
});
afterEach(async () => {
  await closeAll();
  await server?.close();
  server = undefined!;
  await rm(folder, { recursive: true, force: true });
});

const defaults = () => {
  const loaded = loadSettings({ environment: {}, workingFolder: "/" });
  if ("faults" in loaded) throw new Error("the defaults have faults");
  return loaded.settings;
};

async function open(
  settings: Partial<Settings> & { limits?: Partial<Settings["collectors"]> } = {},
  options: TestOptions = {},
): Promise<void> {
  const { limits, ...rest } = settings;
  const collectors = { ...defaults().collectors, addresses: ["127.0.0.1"], ...limits };
  server = await openTestServer({ settings: { syslogPort: 0, ...rest, collectors }, ...options });
}

const status = async () => (await server.call("GET", "/v1/collectors")).body.data;
const portOf = async (name: string, transport: string): Promise<number> =>
  (await status()).listeners.find((one: any) => one.name === name && one.transport === transport).port;
const senderWhen = async (holds: (sender: any) => boolean, which: (sender: any) => boolean = () => true) => {
  let found: any;
  await expect
    .poll(async () => (found = (await status()).senders.find(which)) !== undefined && holds(found))
    .toBe(true);
  return found;
};
/** Resolves once no more lines of a sender arrive. */
const hasBeenRead = async (address: string) => {
  for (let before = -1; ;) {
    const sender = (await status()).senders.find((one: any) => one.address === address);
    const received = sender ? sender.lines + Object.values<number>(sender.refused).reduce((a, b) => a + b, 0) : 0;
    if (received > 0 && received === before) return;
    before = received;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
const linesStored = async (): Promise<string[]> => {
  const { body } = await server.call("POST", "/v1/events/search", {
    body: { query: { bool: { must: [] } }, limit: 1000 },
  });
  return body.data.results.map((event: any) => event.raw.line as string);
};
const storedWhen = async (expected: readonly string[]) => {
  await expect.poll(async () => new Set(await linesStored())).toEqual(new Set(expected));
  expect((await linesStored()).length, "none twice").toBe(expected.length);
};

test("lines arrive by UDP, TCP, a Unix socket and EVE; each sender has a status, and flow records become flows", async () => {
  const path = join(folder, "eve.sock");
  await open({ evePort: 0, eveSocket: path });
  await sendDatagrams(await portOf("syslog", "udp"), linesOf(3, "udp"));
  const [a, b, c, d] = linesOf(4, "tcp") as [string, string, string, string];
  (await connected(await portOf("syslog", "tcp"))).end(`${a}\n${b.length} ${b}${c}\r\n${d}`);
  await storedWhen([...linesOf(3, "udp"), a, b, c, d]);
  const udp = await senderWhen(
    ({ events }) => events === 3,
    (one) => one.transport === "udp",
  );
  expect(udp).toMatchObject({ address: "127.0.0.1", collector: "syslog", lines: 3, state: "receiving" });

  (await connected(await portOf("eve", "tcp"))).end(`${JSON.stringify(flowRecord())}\n`);
  await senderWhen(
    ({ flows }) => flows === 2,
    (one) => one.collector === "eve",
  );
  await expect.poll(async () => (await status()).exporters[0]?.records).toBe(2);

  expect((await stat(path)).mode & 0o777).toBe(0o660);
  const socket = connect(path);
  closeAfter({ close: () => socket.destroy() });
  socket.end(`not json\n${JSON.stringify(flowRecord())}\n`);
  const unix = await senderWhen(
    ({ refused }) => refused.malformed === 1,
    (one) => one.transport === "unix",
  );
  expect(unix).toMatchObject({ address: "unix", collector: "eve", state: "refused" });
  expect(unix.last_refusal).toMatchObject({ reason: "malformed", sample: "not json" });

  const metrics = (await server.call("GET", "/metrics")).text;
  expect(metrics).toMatch(/tocsin_collect_lines_total 10/);
  await expect.poll(async () => (await status()).exporters[0]?.records).toBe(4);
  expect(metrics).toMatch(/tocsin_collect_refused_total\{reason="malformed"\} 1/);

  server = await server.restart();
  const { body } = await server.call("GET", "/api/v1/flows?limit=10");
  // If a minute ended in between, the flows have two rows.
  const bytes: Record<string, number> = {};
  for (const row of body.flows) bytes[row.src_ip] = (bytes[row.src_ip] ?? 0) + row.bytes;
  expect(bytes).toEqual({ "192.0.2.10": 2000, "198.51.100.7": 80_000 });
  expect(new Set(body.flows.map((row: any) => row.version))).toEqual(new Set([106]));
  expect(new Set(body.flows.map((row: any) => row.exporter_ip))).toEqual(new Set(["127.0.0.1"]));
});

function flowRecord(): object {
  const timeOf = (ms: number) => new Date(ms).toISOString().replace("Z", "000+0000");
  return {
    timestamp: timeOf(Date.now()),
    flow_id: 1,
    event_type: "flow",
    src_ip: "192.0.2.10",
    src_port: 50_000,
    dest_ip: "198.51.100.7",
    dest_port: 443,
    proto: "TCP",
    flow: {
      pkts_toserver: 10,
      pkts_toclient: 20,
      bytes_toserver: 1000,
      bytes_toclient: 40_000,
      start: timeOf(Date.now() - 5000),
      end: timeOf(Date.now() - 1000),
      state: "closed",
    },
    tcp: { tcp_flags: "1b", tcp_flags_ts: "1b", tcp_flags_tc: "1b" },
  };
}

describe("a store that accepts nothing", () => {
  /** Refuses every append until it is freed. */
  function stuckStore() {
    let isStuck = true;
    const around = (store: Store) =>
      changed(store, {
        events: changed(store.events, {
          append: (events) =>
            isStuck
              ? Promise.reject(new StoreUnavailable("disk_full", "the disk is full"))
              : store.events.append(events),
        }),
      });
    return { around, free: () => (isStuck = false), stick: () => (isStuck = true) };
  }

  test("a flood fills only its own queue, the quiet sender's lines all arrive, and a stream is paused and loses nothing", async () => {
    const { around, free, stick } = stuckStore();
    await open({}, { around });
    const udpPort = await portOf("syslog", "udp");
    const quiet = linesOf(100, "quiet");
    const stream = linesOf(200, "stream");
    const socket = await connected(await portOf("syslog", "tcp"), "127.0.0.4");
    for (let round = 0; round < 100; round++) {
      await sendDatagrams(udpPort, linesOf(150, `flood ${round}`), "127.0.0.2");
      // Avoids drops in the kernel, which are not the subject here.
      await hasBeenRead("127.0.0.2");
      await sendDatagrams(udpPort, [quiet[round]!], "127.0.0.3");
      socket.write(`${stream[2 * round]}\n${stream[2 * round + 1]}\n`);
    }
    const noisy = await senderWhen(
      ({ refused }) => refused.queue_full > 0,
      (one) => one.address === "127.0.0.2",
    );
    expect(noisy.state).toBe("waiting");
    free();
    await expect
      .poll(async () => (await server.call("GET", "/v1/events?search=quiet&per_page=1")).body.pagination.total)
      .toBe(100);
    await expect
      .poll(async () => (await server.call("GET", "/v1/events?search=stream&per_page=1")).body.pagination.total)
      .toBe(200);
    for (const address of ["127.0.0.3", "127.0.0.4"]) {
      const sender = await senderWhen(
        () => true,
        (one) => one.address === address,
      );
      expect(Object.values(sender.refused).every((count) => count === 0)).toBe(true);
    }

    stick();
    const block = Buffer.from(`${linesOf(1000, `block ${"x".repeat(200)}`).join("\n")}\n`);
    let written = 0;
    while (written < 200 && !socket.writableNeedDrain) {
      socket.write(block);
      written++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(socket.writableNeedDrain, "the sender has to wait").toBe(true);
    const waiting = await senderWhen(
      ({ state }) => state === "waiting",
      (one) => one.address === "127.0.0.4",
    );
    expect(waiting.lines).toBeLessThan(written * 1000);
    free();
    const { lines: read } = await senderWhen(
      ({ lines }) => lines > waiting.lines,
      (one) => one.address === "127.0.0.4",
    );
    server = await server.restart();
    const { total } = (await server.call("GET", "/v1/events?search=block&per_page=1")).body.pagination;
    expect(total, "all lines read are stored before the service has closed").toBeGreaterThanOrEqual(read - 200);
  });
});

test("a flood of binary or empty lines over many connections does not affect a quiet sender", async () => {
  await open({ limits: { linesPerSecondMax: 1000 } });
  const tcpPort = await portOf("syslog", "tcp");
  const udpPort = await portOf("syslog", "udp");
  const startMs = Date.now();
  for (const [n, junk] of ["\u0001\u0002\u0003\n", "\n"].entries()) {
    const block = Buffer.from(junk.repeat(500_000 / junk.length));
    for (let connection = 0; connection < 20; connection++) (await connected(tcpPort, `127.0.0.${2 + n}`)).write(block);
  }
  for (let round = 0; round < 50; round++) {
    await sendDatagrams(udpPort, linesOf(10, `quiet ${round}`), "127.0.0.4");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const quiet = await senderWhen(
    ({ events }) => events === 500,
    (one) => one.address === "127.0.0.4",
  );
  expect(Object.values(quiet.refused).every((count) => count === 0)).toBe(true);
  const { senders } = await status();
  const linesMax = 1000 + Date.now() - startMs;
  for (const [address, turnLines] of Object.entries({ "127.0.0.2": 16_384 / 4, "127.0.0.3": 16_384 })) {
    const noisy = senders.find((one: any) => one.address === address);
    expect(noisy.lines, address).toBeGreaterThan(0);
    expect(noisy.lines, address).toBeLessThanOrEqual(linesMax + turnLines);
    expect(noisy.nothing + noisy.refused.not_text).toBe(noisy.lines);
  }
});

test("unusable TLS files are refused with the setting and a remedy, before anything is opened", async () => {
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const start = (tls: Partial<LineReceiverSettings>) => {
    const { collectors } = defaults();
    const ports = { syslog: null, syslog_tls: 0, eve: null };
    const settings = { ...collectors, eveFile: null, eveSocket: null, ports, ...tls };
    const never = () => Promise.reject(new Error("nothing can arrive"));
    const log = createLog({ level: "fatal" });
    const site = { dataDir: folder, platform: "platform", timezone: "UTC", formats: knownFormats().descriptions };
    return openLineReceiver({ settings, ...site, registry: new Registry(), log, collect: never, addFlows: never });
  };
  const tlsCertificate = file("certificate.pem", SERVER_CERTIFICATE);
  await expect(start({})).rejects.toThrow(/needs collectors.tls_certificate.*\n.*--collectors-tls-certificate/);
  await expect(start({ tlsCertificate, tlsKey: join(folder, "none") })).rejects.toThrow(
    /tls_key cannot be read.*ENOENT/,
  );
  await expect(start({ tlsCertificate, tlsKey: "/dev/zero" })).rejects.toThrow(/tls_key cannot be read.*is not a file/);
  await expect(start({ tlsCertificate, tlsKey: file("key.pem", "no key") })).rejects.toThrow(/TLS cannot use.*\n.*PEM/);
  await expect(start({ tlsCertificate, tlsKey: file("other.pem", CLIENT_KEY) })).rejects.toThrow(/TLS cannot use/);
});
