import { createSocket } from "node:dgram";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestOptions, type TestServer } from "../../../test/api-server.ts";
import { loadSettings, type Settings } from "../../config/config.ts";
import { StoreUnavailable, type Store } from "../../store/store.ts";
import { CA, CLIENT_CERTIFICATE, CLIENT_KEY, SERVER_CERTIFICATE, SERVER_KEY } from "./certificates.fixture.ts";

// Lines through real sockets into the real service.

let server: TestServer;
let folder: string;
const sockets: Socket[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-inlet-"));
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server?.close();
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
    .poll(async () => (found = (await status()).senders.find(which)) !== undefined && holds(found), { timeout: 20_000 })
    .toBe(true);
  return found;
};
const linesStored = async (): Promise<string[]> => {
  const { body } = await server.call("POST", "/v1/events/search", { body: { query: { bool: { must: [] } }, limit: 1000 } });
  return body.data.results.map((event: any) => event.raw.line as string);
};
const lines = (count: number, name: string) => Array.from({ length: count }, (_, n) => `<13>host app: ${name} ${n}`);
const storedWhen = async (wanted: readonly string[]) => {
  await expect.poll(async () => new Set(await linesStored()), { timeout: 20_000 }).toEqual(new Set(wanted));
  expect((await linesStored()).length, "none twice").toBe(wanted.length);
};

async function connected(port: number, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  sockets.push(socket);
  await once(socket, "connect");
  return socket;
}

function sendDatagrams(port: number, payloads: readonly (string | Uint8Array)[], from = "127.0.0.1"): Promise<void> {
  const socket = createSocket("udp4");
  return new Promise((resolve, reject) => {
    socket.bind(0, from, () => {
      let left = payloads.length;
      for (const payload of payloads) {
        socket.send(payload, port, "127.0.0.1", (error) => {
          if (error) reject(error);
          if (--left === 0) socket.close(() => resolve());
        });
      }
    });
  });
}

describe("each way in", () => {
  test("UDP: a datagram is an event with its line", async () => {
    await open();
    await sendDatagrams(await portOf("syslog", "udp"), lines(3, "udp"));
    await storedWhen(lines(3, "udp"));
    const sender = await senderWhen(({ events }) => events === 3);
    expect(sender).toMatchObject({ address: "127.0.0.1", collector: "syslog", transport: "udp", lines: 3 });
    expect(sender.state).toBe("receiving");
  });

  test("TCP: lines and messages that say their length, in one stream, and a half line at its end", async () => {
    await open();
    const [a, b, c, d] = lines(4, "tcp") as [string, string, string, string];
    const socket = await connected(await portOf("syslog", "tcp"));
    socket.end(`${a}\n${b.length} ${b}${c}\r\n${d}`);
    await storedWhen([a, b, c, d]);
    const { metrics } = { metrics: (await server.call("GET", "/metrics")).text };
    expect(metrics).toMatch(/tocsin_collect_lines_total 4/);
    expect(metrics).toMatch(/tocsin_collect_refused_total\{reason="too_long"\} 0/);
  });

  test("a Unix socket, also where an earlier run left one behind", async () => {
    const path = join(folder, "eve.sock");
    await open({ syslogPort: null, eveSocket: path });
    server = await server.restart();
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    const socket = connect(path);
    sockets.push(socket);
    socket.end(`not json\n`);
    const sender = await senderWhen(({ lines }) => lines === 1);
    expect(sender).toMatchObject({ address: "unix", collector: "eve", transport: "unix" });
    expect(sender.last_refusal).toMatchObject({ reason: "malformed", sample: "not json" });
  });

  test("EVE flow records become flows, with the sender as exporter", async () => {
    await open({ evePort: 0, syslogPort: null });
    const flow = {
      timestamp: new Date().toISOString().replace("Z", "000+0000"),
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
        start: new Date(Date.now() - 5000).toISOString().replace("Z", "000+0000"),
        end: new Date(Date.now() - 1000).toISOString().replace("Z", "000+0000"),
        state: "closed",
      },
      tcp: { tcp_flags: "1b", tcp_flags_ts: "1b", tcp_flags_tc: "1b" },
    };
    (await connected(await portOf("eve", "tcp"))).end(`${JSON.stringify(flow)}\n`);
    await senderWhen(({ flows }) => flows === 2);
    await expect.poll(async () => (await status()).exporters[0]?.records, { timeout: 10_000 }).toBe(2);
    server = await server.restart();
    const { body } = await server.call("GET", "/api/v1/flows?limit=10");
    expect(body.flows).toHaveLength(2);
    expect(body.flows.map((row: any) => row.version)).toEqual([106, 106]);
    expect(body.flows.map((row: any) => row.bytes).sort()).toEqual([1000, 40_000]);
    expect(JSON.stringify(body.flows)).toContain("127.0.0.1");
  });
});

describe("syslog over TLS", () => {
  const files = (names: Record<string, string>) => {
    for (const [name, text] of Object.entries(names)) writeFileSync(join(folder, name), text);
  };
  const openTls = (withCa: boolean) => {
    files({ "server.pem": SERVER_CERTIFICATE, "server.key": SERVER_KEY, "ca.pem": CA });
    const limits = {
      tlsCertificate: join(folder, "server.pem"),
      tlsKey: join(folder, "server.key"),
      tlsClientCa: withCa ? join(folder, "ca.pem") : null,
    };
    return open({ syslogPort: null, syslogTlsPort: 0, limits });
  };

  test("lines come in, and a handshake that is cut or garbage is counted and harms nobody", async () => {
    await openTls(false);
    const port = await portOf("syslog_tls", "tls");
    const truncated = await connected(port);
    truncated.end(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00]));
    const garbage = await connected(port);
    garbage.write(randomBytes(500));
    await senderWhen(({ refused }) => refused.handshake_failed === 2);

    const socket = connectTls({ port, host: "127.0.0.1", ca: CA });
    sockets.push(socket);
    socket.end(`${lines(1, "tls")[0]}\n`);
    await storedWhen(lines(1, "tls"));
    expect(await senderWhen(({ events }) => events === 1)).toMatchObject({ transport: "tls", connections: 0 });
  });

  test("with a CA for senders, one without a certificate is refused", async () => {
    await openTls(true);
    const port = await portOf("syslog_tls", "tls");
    const stranger = connectTls({ port, host: "127.0.0.1", ca: CA });
    stranger.on("error", () => undefined);
    sockets.push(stranger);
    stranger.write("<13>stranger\n");
    await senderWhen(({ refused }) => refused.handshake_failed === 1);
    const socket = connectTls({ port, host: "127.0.0.1", ca: CA, cert: CLIENT_CERTIFICATE, key: CLIENT_KEY });
    sockets.push(socket);
    socket.end(`${lines(1, "known")[0]}\n`);
    await storedWhen(lines(1, "known"));
  });
});

describe("bad input costs its sender and nobody else", () => {
  test("a line of a megabyte is refused and the connection goes on", async () => {
    await open();
    const socket = await connected(await portOf("syslog", "tcp"));
    socket.write(`<13>${"x".repeat(1024 * 1024)}\n${lines(1, "after")[0]}\n`);
    await storedWhen(lines(1, "after"));
    const { last_refusal, refused } = await senderWhen(({ refused }) => refused.too_long === 1);
    expect(last_refusal.message).toContain("65536 bytes");
    expect(last_refusal.sample).toHaveLength(200);
    expect(Object.values(refused).reduce((sum: number, count) => sum + (count as number), 0)).toBe(1);
  });

  test("binary garbage is not text, over TCP and UDP", async () => {
    await open();
    const garbage = Buffer.from(randomBytes(5000).map((byte) => (byte === 0x0a || byte === 0 ? 1 : byte)));
    await sendDatagrams(await portOf("syslog", "udp"), [garbage, ...lines(1, "udp")]);
    const socket = await connected(await portOf("syslog", "tcp"));
    socket.end(Buffer.concat([garbage, Buffer.from(`\n${lines(1, "tcp")[0]}\n`)]));
    await storedWhen([...lines(1, "udp"), ...lines(1, "tcp")]);
    for (const transport of ["udp", "tcp"]) {
      const sender = await senderWhen(
        ({ refused }) => refused.not_text === 1,
        (one) => one.transport === transport,
      );
      expect(sender.last_refusal.sample).not.toMatch(/\p{Cc}/u);
    }
  });

  test("bytes that are not UTF-8 are replaced, and the event says so", async () => {
    await open();
    await sendDatagrams(await portOf("syslog", "udp"), [Buffer.from("<13>T\u00fcr ge\u00f6ffnet", "latin1")]);
    await storedWhen(["<13>T\ufffdr ge\ufffdffnet"]);
    const { body } = await server.call("GET", "/v1/events");
    expect(body.data[0].raw.replaced_bytes).toBe(true);
  });

  test("CEF with ten thousand keys is an event like any other", async () => {
    await open({ limits: { lineBytesMax: 1_048_576 } });
    const pairs = Array.from({ length: 10_000 }, (_, n) => `key${n}=value ${n}`).join(" ");
    const line = `<13>Nov 15 08:30:00 gateway CEF:0|Vendor|Product|1|100|Something|5|${pairs}`;
    (await connected(await portOf("syslog", "tcp"))).end(`${line}\n`);
    await expect.poll(async () => (await linesStored()).length, { timeout: 20_000 }).toBe(1);
    expect((await linesStored())[0]).toBe(line);
  });

  test("a message shorter than it says is cut off, and told of with its beginning", async () => {
    await open();
    (await connected(await portOf("syslog", "tcp"))).end("500 <13>only the beginning");
    const { last_refusal } = await senderWhen(({ refused }) => refused.cut_off === 1);
    expect(last_refusal).toMatchObject({ reason: "cut_off", sample: "<13>only the beginning" });
    expect(await linesStored()).toEqual([]);
  });

  test("with unparsed lines off, one that nobody understands is refused with its sample", async () => {
    await open({ limits: { unparsed: false } });
    await sendDatagrams(await portOf("syslog", "udp"), ["<13>host app: nobody knows this"]);
    const { last_refusal } = await senderWhen(({ refused }) => refused.unknown_kind === 1);
    expect(last_refusal.sample).toContain("nobody knows this");
  });
});

describe("limits", () => {
  test("who is not allowed is refused, by datagram and by connection", async () => {
    await open({ limits: { allowedSenders: ["127.0.0.2/32"] } });
    await sendDatagrams(await portOf("syslog", "udp"), lines(2, "stranger"));
    await sendDatagrams(await portOf("syslog", "udp"), lines(2, "known"), "127.0.0.2");
    const stranger = await connected(await portOf("syslog", "tcp"));
    await once(stranger, "close");
    await storedWhen(lines(2, "known"));
    const udp = (one: any) => one.transport === "udp" && one.address === "127.0.0.1";
    expect((await senderWhen(({ refused }) => refused.not_allowed === 2, udp)).summary).toContain("allowed_senders");
    await senderWhen(
      ({ refused }) => refused.not_allowed === 1,
      (one) => one.transport === "tcp",
    );
  });

  test("one sender has so many connections and no more; another still gets in", async () => {
    await open({ limits: { connectionsPerSenderMax: 2 } });
    const port = await portOf("syslog", "tcp");
    await connected(port);
    await connected(port);
    await once(await connected(port), "close");
    await senderWhen(({ refused, connections }) => refused.too_many_connections === 1 && connections === 2);
    (await connected(port, "127.0.0.2")).end(`${lines(1, "other")[0]}\n`);
    await storedWhen(lines(1, "other"));
  });

  test("all connections together are bounded", async () => {
    await open({ limits: { connectionsMax: 1 } });
    const port = await portOf("syslog", "tcp");
    await connected(port);
    await once(await connected(port, "127.0.0.2"), "close");
    await senderWhen(
      ({ refused }) => refused.too_many_connections === 1,
      (one) => one.address === "127.0.0.2",
    );
  });

  test("datagrams beyond the rate are dropped and counted; a stream is only read more slowly", async () => {
    await open({ limits: { linesPerSecondMax: 20 } });
    await sendDatagrams(await portOf("syslog", "udp"), lines(200, "udp"));
    const udp = await senderWhen(
      ({ lines }) => lines === 200,
      (one) => one.transport === "udp",
    );
    expect(udp.refused.too_fast).toBeGreaterThan(100);
    expect(udp.refused.too_fast + udp.events).toBe(200);
    expect(udp.summary).toContain("lines_per_second_max");

    const startedAt = performance.now();
    const socket = await connected(await portOf("syslog", "tcp"));
    for (const line of lines(60, "tcp")) {
      socket.write(`${line}\n`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const tcp = await senderWhen(
      ({ lines }) => lines === 60,
      (one) => one.transport === "tcp",
    );
    expect(Object.values(tcp.refused).every((count) => count === 0)).toBe(true);
    expect(performance.now() - startedAt, "twenty a second, and twenty at once").toBeGreaterThan(500);
  });
});

describe("a store that does not take anything", () => {
  /** Refuses every append until it is told otherwise. */
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
    return { around, free: () => (isStuck = false) };
  }

  test("a flood fills its own queue alone: the quiet sender's lines all arrive, and the stream loses nothing", async () => {
    const { around, free } = stuckStore();
    await open({}, { around });
    const udpPort = await portOf("syslog", "udp");
    const quiet = lines(100, "quiet");
    const stream = lines(200, "stream");
    const socket = await connected(await portOf("syslog", "tcp"), "127.0.0.4");
    for (let round = 0; round < 100; round++) {
      await sendDatagrams(udpPort, lines(150, `flood ${round}`), "127.0.0.2");
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
      .poll(async () => (await server.call("GET", "/v1/events?search=quiet&per_page=1")).body.pagination.total, {
        timeout: 30_000,
      })
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
  });

  test("a stream is not read on, and what was read is stored before the service has closed", async () => {
    const { around, free } = stuckStore();
    await open({}, { around });
    const socket = await connected(await portOf("syslog", "tcp"));
    const block = Buffer.from(lines(1000, `stream ${"x".repeat(200)}`).join("\n") + "\n");
    let written = 0;
    while (written < 200 && !socket.writableNeedDrain) {
      socket.write(block);
      written++;
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(socket.writableNeedDrain, "the sender has to wait").toBe(true);
    const { lines: read } = await senderWhen(({ state }) => state === "waiting");
    expect(read).toBeLessThan(written * 1000);
    free();
    const before = (await senderWhen(({ events }) => events > read)).events;
    server = await server.restart();
    const { total } = (await server.call("GET", "/v1/events?per_page=1")).body.pagination;
    expect(total).toBeGreaterThanOrEqual(before);
  });
});
