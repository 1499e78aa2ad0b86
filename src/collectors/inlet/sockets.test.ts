import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, Socket, type AddressInfo } from "node:net";
import { connect as connectTls } from "node:tls";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { parseCidr } from "../../lib/ip.ts";
import { unpackDraft } from "../draft.ts";
import { Places } from "../places.ts";
import { Batches } from "./batches.ts";
import { CA, CLIENT_CERTIFICATE, CLIENT_KEY, SERVER_CERTIFICATE, SERVER_KEY } from "./certificates.fixture.ts";
import { LineReader } from "./reader.ts";
import { Senders, SENDERS_MAX } from "./sender.ts";
import { Sockets, type SocketsOptions } from "./sockets.ts";
import type { SenderStatus } from "./status.ts";

// Real sockets, and what comes out of them; the service around them is left out.

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part.close();
});

interface Limits extends Partial<SocketsOptions> {
  readonly linesPerSecondMax?: number;
  readonly allowed?: readonly string[];
  readonly keepsUnparsed?: boolean;
}

function openSockets({ linesPerSecondMax = 1_000_000, allowed = [], keepsUnparsed = true, ...limits }: Limits = {}) {
  const now = limits.now ?? Date.now;
  const senders = new Senders({ allowed: allowed.map((text) => parseCidr(text)!), linesPerSecondMax, now });
  const batches = new Batches(new LineReader({ platform: "platform", timezone: "UTC", keepsUnparsed }), now);
  const sockets = new Sockets({
    lineBytesMax: 65_536,
    connectionsMax: 100,
    connectionsPerSenderMax: 10,
    receiveBufferBytes: 1_000_000,
    senders,
    wake: (sender) => batches.wake(sender),
    now,
    ...limits,
  });
  open.push(sockets);
  const raws: Record<string, any>[] = [];
  const drain = async () => {
    for (let batch; (batch = await batches.take());) raws.push(...batch.drafts.map((draft) => unpackDraft(draft).raw));
  };
  void drain();
  const place = { name: "syslog", address: "127.0.0.1", port: 0 } as const;
  const portOf = (transport: string) => sockets.status().find((one) => one.transport === transport)!.port!;
  const sender = (address = "127.0.0.1", transport?: string): SenderStatus | undefined =>
    senders
      .status(now())
      .senders.find((one) => one.address === address && (transport === undefined || one.transport === transport));
  const linesWhen = (lines: readonly string[]) =>
    expect.poll(() => raws.map(({ line }) => line as string).sort(), { timeout: 10_000 }).toEqual([...lines].sort());
  const senderWhen = async (holds: (sender: SenderStatus) => boolean, address?: string, transport?: string) => {
    await expect
      .poll(() => ((one) => one !== undefined && holds(one))(sender(address, transport)), { timeout: 10_000 })
      .toBe(true);
    return sender(address, transport)!;
  };
  return { sockets, senders, batches, raws, place, portOf, sender, linesWhen, senderWhen };
}

async function connected(port: number, localAddress = "127.0.0.1"): Promise<Socket & { gone: Promise<unknown> }> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  const gone = once(socket, "close");
  open.push({ close: () => socket.destroy() });
  await once(socket, "connect");
  return Object.assign(socket, { gone });
}

async function sendDatagrams(port: number, payloads: readonly (string | Uint8Array)[], from = "127.0.0.1") {
  const socket = createSocket("udp4");
  socket.bind(0, from);
  await once(socket, "listening");
  for (const payload of payloads)
    await new Promise<void>((resolve, reject) =>
      socket.send(payload, port, "127.0.0.1", (error) => (error ? reject(error) : resolve())),
    );
  socket.close();
}

const linesOf = (count: number, name: string) => Array.from({ length: count }, (_, n) => `<13>host app: ${name} ${n}`);
const LINE = "<13>host app: a line";
const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

describe("TLS", () => {
  const server = { cert: SERVER_CERTIFICATE, key: SERVER_KEY };
  const client = (port: number, options: object) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: CA, ...options });
    socket.on("error", () => undefined);
    open.push({ close: () => socket.destroy() });
    return socket;
  };

  test("lines come in, and a handshake that is cut or garbage is counted and harms nobody", async () => {
    const inlet = openSockets({ handshakeMsMax: 500 });
    await inlet.sockets.listenTls({ ...inlet.place, name: "syslog_tls" }, server);
    const port = inlet.portOf("tls");
    const hello = Buffer.from("160301020001000001fc0303", "hex");
    (await connected(port)).end(hello);
    await inlet.senderWhen(({ refused }) => refused.handshake_failed === 1);
    (await connected(port)).write(randomBytes(500));
    await inlet.senderWhen(({ refused }) => refused.handshake_failed === 2);
    client(port, {}).end(`${LINE}\n`);
    await inlet.linesWhen([LINE]);
    await inlet.senderWhen(({ connections }) => connections === 0);
  });

  test("with a CA for senders, one without a certificate is refused", async () => {
    const inlet = openSockets();
    const withCa = { ...server, ca: CA, requestCert: true, rejectUnauthorized: true };
    await inlet.sockets.listenTls({ ...inlet.place, name: "syslog_tls" }, withCa);
    client(inlet.portOf("tls"), {}).write("<13>a stranger's\n");
    await inlet.senderWhen(({ refused }) => refused.handshake_failed === 1);
    client(inlet.portOf("tls"), { cert: CLIENT_CERTIFICATE, key: CLIENT_KEY }).end(`${LINE}\n`);
    await inlet.linesWhen([LINE]);
  });

  test("a half line is no whole one: the wire may have been cut", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenTls({ ...inlet.place, name: "syslog_tls" }, server);
    const wire = await connected(inlet.portOf("tls"));
    const secure = client(0, { socket: wire });
    await once(secure, "secureConnect");
    secure.write(`${LINE}\n<13>only the begin`);
    await inlet.linesWhen([LINE]);
    // The end of TCP without that of TLS.
    wire.end();
    const { lastRefusal } = await inlet.senderWhen(({ refused }) => refused.cut_off === 1);
    expect(lastRefusal!.sample).toBe("<13>only the begin");
    await inlet.linesWhen([LINE]);
  });

  test("messages that say their length without a priority are told apart", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenTls({ ...inlet.place, name: "syslog_tls" }, server);
    client(inlet.portOf("tls"), {}).end("12 0|Vendor|x|15 0|V|x");
    await inlet.linesWhen(["0|Vendor|x|1", "0|V|x"]);
  });

  test("a sender of TLS to the plain port is told so", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenTcp(inlet.place);
    client(inlet.portOf("tcp"), {});
    const { lastRefusal } = await inlet.senderWhen(({ lastRefusal }) => lastRefusal !== null);
    expect(lastRefusal!.message).toContain("syslog_tls_port");
  });
});

describe("bad input costs its sender and nobody else", () => {
  test("a line of a megabyte is refused, and the connection goes on", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenTcp(inlet.place);
    (await connected(inlet.portOf("tcp"))).write(`<13>${"x".repeat(1024 * 1024)}\n${LINE}\n`);
    await inlet.linesWhen([LINE]);
    const { lastRefusal, lines } = inlet.sender()!;
    expect(lines).toBe(2);
    expect(lastRefusal).toMatchObject({ reason: "too_long", message: "a message is longer than 65536 bytes" });
    expect(lastRefusal!.sample).toHaveLength(200);
  });

  test("binary garbage is not text, over TCP and UDP", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenTcp(inlet.place);
    await inlet.sockets.listenUdp(inlet.place);
    const garbage = Buffer.from(randomBytes(5000).map((byte) => (byte === 0x0a || byte === 0 ? 1 : byte)));
    await sendDatagrams(inlet.portOf("udp"), [garbage, LINE]);
    (await connected(inlet.portOf("tcp"))).end(Buffer.concat([garbage, Buffer.from(`\n${LINE}\n`)]));
    await inlet.linesWhen([LINE, LINE]);
    for (const transport of ["udp", "tcp"]) {
      const { refused, lastRefusal } = inlet.sender("127.0.0.1", transport)!;
      expect(refused.not_text).toBe(1);
      expect(lastRefusal!.sample).not.toMatch(/\p{Cc}/u);
    }
  });

  test("bytes that are not UTF-8 are replaced, and the event says so", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenUdp(inlet.place);
    await sendDatagrams(inlet.portOf("udp"), [Buffer.from("<13>T\u00fcr ge\u00f6ffnet", "latin1")]);
    await inlet.linesWhen(["<13>T\ufffdr ge\ufffdffnet"]);
    expect(inlet.raws[0]!.replaced_bytes).toBe(true);
  });

  test("CEF with ten thousand keys is an event that has its line", async () => {
    const inlet = openSockets({ lineBytesMax: 1_048_576 });
    await inlet.sockets.listenTcp(inlet.place);
    const pairs = Array.from({ length: 10_000 }, (_, n) => `key${n}=value ${n}`).join(" ");
    const line = `<13>Nov 15 08:30:00 gateway CEF:0|Vendor|Product|1|100|Something|5|${pairs}`;
    (await connected(inlet.portOf("tcp"))).end(`${line}\n`);
    await inlet.linesWhen([line]);
  });

  test("a half line at the end is read; a message shorter than it says is cut off, with its beginning", async () => {
    const inlet = openSockets();
    await inlet.sockets.listenTcp(inlet.place);
    (await connected(inlet.portOf("tcp"))).end(LINE);
    await inlet.linesWhen([LINE]);
    (await connected(inlet.portOf("tcp"))).end("500 <13>only the beginning");
    const { lastRefusal } = await inlet.senderWhen(({ refused }) => refused.cut_off === 1);
    expect(lastRefusal!.sample).toBe("<13>only the beginning");
  });

  test("a sender that never finishes its line is cut; one that is only silent is not", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, unfinishedMsMax: 30_000 });
    await inlet.sockets.listenTcp(inlet.place);
    const silent = await connected(inlet.portOf("tcp"), "127.0.0.2");
    silent.write(`${LINE}\n`);
    const slow = await connected(inlet.portOf("tcp"));
    slow.write("<13>slow");
    await inlet.senderWhen(({ lastSeenMs }) => lastSeenMs === 1_000_000);
    await inlet.linesWhen([LINE]);
    // It sends a letter now and then, and never an end.
    nowMs += 20_000;
    slow.write("ly");
    await inlet.senderWhen(({ lastSeenMs }) => lastSeenMs === 1_020_000);
    nowMs += 20_000;
    await slow.gone;
    const { lastRefusal } = await inlet.senderWhen(({ refused }) => refused.cut_off === 1);
    expect(lastRefusal).toMatchObject({ sample: "<13>slowly", message: expect.stringContaining("30 s") });
    silent.write(`${LINE}\n`);
    await inlet.linesWhen([LINE, LINE]);
  });

  test("a message that is as long as it says is not kept waiting for the next one", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, unfinishedMsMax: 30_000 });
    await inlet.sockets.listenTcp(inlet.place);
    const sender = await connected(inlet.portOf("tcp"));
    sender.write("12 0|Vendor|x|1");
    await expect.poll(() => inlet.sockets.status()[0]!.bytes).toBe(15);
    nowMs += 2000;
    await inlet.linesWhen(["0|Vendor|x|1"]);
    nowMs += 60_000;
    sender.write("5 0|V|x5 0|V|y");
    await inlet.linesWhen(["0|Vendor|x|1", "0|V|x"]);
    nowMs += 2000;
    await inlet.linesWhen(["0|Vendor|x|1", "0|V|x", "0|V|y"]);
  });

  test("a sender whose writes end within a line is not cut as long as lines end", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, unfinishedMsMax: 30_000 });
    await inlet.sockets.listenTcp(inlet.place);
    const busy = await connected(inlet.portOf("tcp"));
    busy.write("<13>0\n<13>1");
    const expected = ["<13>0"];
    await inlet.linesWhen(expected);
    for (let n = 1; n <= 4; n++) {
      nowMs += 20_000;
      busy.write(`\n<13>${n + 1}`);
      expected.push(`<13>${n}`);
      await inlet.linesWhen(expected);
    }
    const { refused } = await inlet.senderWhen(({ lastSeenMs }) => lastSeenMs === nowMs);
    expect(refused.cut_off).toBe(0);
  });

  test("with unparsed lines off, one that nobody understands is refused with its sample", async () => {
    const inlet = openSockets({ keepsUnparsed: false });
    await inlet.sockets.listenUdp(inlet.place);
    await sendDatagrams(inlet.portOf("udp"), ["<13>host app: nobody knows this"]);
    const { lastRefusal } = await inlet.senderWhen(({ refused }) => refused.unknown_kind === 1);
    expect(lastRefusal!.sample).toContain("nobody knows this");
  });
});

describe("limits", () => {
  test("who is not allowed is refused, by datagram and by connection", async () => {
    const inlet = openSockets({ allowed: ["127.0.0.2/32"] });
    await inlet.sockets.listenTcp(inlet.place);
    await inlet.sockets.listenUdp(inlet.place);
    await sendDatagrams(inlet.portOf("udp"), linesOf(2, "stranger"));
    await sendDatagrams(inlet.portOf("udp"), linesOf(2, "known"), "127.0.0.2");
    await (
      await connected(inlet.portOf("tcp"))
    ).gone;
    await inlet.linesWhen(linesOf(2, "known"));
    expect(inlet.sender("127.0.0.1", "udp")!.refused.not_allowed).toBe(2);
    expect(inlet.sender("127.0.0.1", "udp")!.summary).toContain("allowed_senders");
    expect(inlet.sender("127.0.0.1", "tcp")!.refused.not_allowed).toBe(1);
  });

  test("one sender has so many connections and no more, and so have all together", async () => {
    const inlet = openSockets({ connectionsMax: 3, connectionsPerSenderMax: 2 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    const first = await connected(port);
    const second = await connected(port);
    await (
      await connected(port)
    ).gone;
    expect(inlet.sender()).toMatchObject({ connections: 2, refused: { too_many_connections: 1 } });
    const third = await connected(port, "127.0.0.2");
    for (const socket of [first, second, third]) socket.write(`${LINE}\n`);
    await inlet.linesWhen([LINE, LINE, LINE]);
    await (
      await connected(port, "127.0.0.3")
    ).gone;
    expect(inlet.sender("127.0.0.3")!.lastRefusal!.message).toContain("all 3 connections");
    second.destroy();
    await inlet.senderWhen(({ connections }) => connections === 1);
    (await connected(port)).end(`${LINE}\n`);
    await inlet.linesWhen([LINE, LINE, LINE, LINE]);
  });

  test("when all places are taken, who never sent anything makes room, then who has not for a minute", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, connectionsMax: 4, connectionsPerSenderMax: 2 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    const quiet = await connected(port, "127.0.0.2");
    quiet.write("<13>quiet\n");
    await inlet.linesWhen(["<13>quiet"]);
    const busy = await connected(port, "127.0.0.3");
    const idlers = [await connected(port, "127.0.0.4"), await connected(port, "127.0.0.4")];
    await inlet.senderWhen(({ connections }) => connections === 2, "127.0.0.4");
    nowMs += 30_000;
    busy.write("<13>busy\n");
    await inlet.linesWhen(["<13>busy", "<13>quiet"]);
    const newcomers: Socket[] = [];
    for (const [n, idler] of idlers.entries()) {
      const newcomer = await connected(port, `127.0.0.${5 + n}`);
      newcomer.write(`<13>new ${n}\n`);
      newcomers.push(newcomer);
      await idler.gone;
    }
    await inlet.linesWhen(["<13>busy", "<13>new 0", "<13>new 1", "<13>quiet"]);
    const lost = inlet.sender("127.0.0.4")!;
    expect(lost).toMatchObject({ connections: 0, refused: { too_many_connections: 2, cut_off: 0 } });
    expect(lost.lastRefusal!.message).toContain("to make room, since all 4 are taken: nothing had come by it in 30 s");

    // All have sent something, and none is silent for long enough.
    await (
      await connected(port, "127.0.0.7")
    ).gone;
    expect(inlet.sender("127.0.0.7")!.refused.too_many_connections).toBe(1);
    nowMs += 31_000;
    const last = await connected(port, "127.0.0.8");
    await quiet.gone;
    last.write("<13>last\n");
    busy.write("<13>busy again\n");
    await inlet.linesWhen(["<13>busy", "<13>busy again", "<13>last", "<13>new 0", "<13>new 1", "<13>quiet"]);
    expect(newcomers.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  });

  test("many addresses that say nothing do not keep others out", async () => {
    const inlet = openSockets({ connectionsMax: 20, connectionsPerSenderMax: 5 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    for (let n = 0; n < 20; n++) await connected(port, `127.0.0.${10 + (n % 4)}`);
    const lines = linesOf(10, "heard");
    for (const [n, line] of lines.entries()) (await connected(port, `127.0.0.${50 + n}`)).write(`${line}\n`);
    await inlet.linesWhen(lines);
  });

  test("a Unix socket keeps its place, however silent it is", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tocsin-sockets-"));
    open.push({ close: () => rm(folder, { recursive: true }) });
    const inlet = openSockets({ connectionsMax: 1 });
    await inlet.sockets.listenTcp(inlet.place);
    await inlet.sockets.listenUnix("eve", join(folder, "eve.sock"));
    const local = connect(join(folder, "eve.sock"));
    open.push({ close: () => local.destroy() });
    await inlet.senderWhen(({ connections }) => connections === 1, "unix");
    await (
      await connected(inlet.portOf("tcp"))
    ).gone;
    expect(inlet.sender("unix")!.connections).toBe(1);
  });

  test("datagrams beyond the rate are dropped and counted", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 20 });
    await inlet.sockets.listenUdp(inlet.place);
    await sendDatagrams(inlet.portOf("udp"), linesOf(50, "first"));
    const { summary } = await inlet.senderWhen(({ lines }) => lines === 50);
    expect(summary).toContain("lines_per_second_max");
    expect(inlet.sender()!.refused.too_fast).toBe(30);
    nowMs += 500;
    await sendDatagrams(inlet.portOf("udp"), linesOf(50, "second"));
    await inlet.senderWhen(({ lines }) => lines === 100);
    expect(inlet.sender()).toMatchObject({ refused: { too_fast: 70 } });
    await inlet.linesWhen([...linesOf(20, "first"), ...linesOf(10, "second")]);
  });

  test.skipIf(process.platform !== "linux").each(hasIpv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"])(
    "datagrams that the system drops since nobody reads them are counted, at %s",
    async (address) => {
      const inlet = openSockets({ receiveBufferBytes: 65_536 });
      await inlet.sockets.listenUdp({ ...inlet.place, address });
      const socket = createSocket(address === "::1" ? "udp6" : "udp4");
      open.push(socket);
      // All at once: what would read them has no turn in between.
      for (let n = 0; n < 500; n++) socket.send("x".repeat(1000), inlet.portOf("udp"), address);
      await expect
        .poll(() => inlet.sockets.status().map(({ packets, systemDrops }) => packets + systemDrops!), {
          timeout: 10_000,
        })
        .toEqual([500]);
      expect(inlet.sockets.status()[0]!.systemDrops).toBeGreaterThan(0);
    },
  );

  test("a stream beyond the rate is read more slowly and loses nothing", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 100 });
    await inlet.sockets.listenTcp(inlet.place);
    const all = linesOf(5000, `long ${"x".repeat(100)}`);
    (await connected(inlet.portOf("tcp"))).end(all.join("\n"));
    const first = await inlet.senderWhen(({ lines }) => lines > 100);
    expect(first.lines).toBeLessThan(5000);
    await expect
      .poll(
        () => {
          nowMs += 1_000_000;
          return inlet.sender()!.lines;
        },
        { timeout: 10_000 },
      )
      .toBe(5000);
    await inlet.linesWhen(all);
    expect(inlet.sender()!.refused.too_fast).toBe(0);
  });

  test.each([
    ["no text", "\u0001\u0002\u0003\n", ({ refused }: SenderStatus) => refused.not_text],
    ["too long", `${"x".repeat(1025)}\n`, ({ refused }: SenderStatus) => refused.too_long],
    ["empty", "\n", ({ nothing }: SenderStatus) => nothing],
  ])(
    "lines that are %s cost a stream's sender as much as any, on all its connections together",
    async (_, line, countOf) => {
      let nowMs = 1_000_000;
      const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 100, lineBytesMax: 1024 });
      await inlet.sockets.listenTcp(inlet.place);
      const port = inlet.portOf("tcp");
      const junk = Buffer.from(line.repeat(Math.ceil(1_000_000 / line.length)));
      for (let n = 0; n < 5; n++) (await connected(port, "127.0.0.2")).write(junk);
      await inlet.senderWhen((sender) => countOf(sender) >= 100, "127.0.0.2");
      const quiet = await connected(port, "127.0.0.3");
      for (let n = 1; n <= 20; n++) {
        quiet.write(`${LINE}\n`);
        await inlet.senderWhen(({ lines }) => lines === n, "127.0.0.3");
      }
      const { lines, refused } = inlet.sender("127.0.0.2")!;
      // What it may send in a second, and what is read at a time.
      expect(lines).toBeLessThanOrEqual(100 + Math.ceil(16_384 / line.length));
      expect(countOf(inlet.sender("127.0.0.2")!)).toBe(lines);
      expect(refused.too_fast).toBe(0);
      nowMs += 1000 * Math.ceil(lines / 100);
      await inlet.senderWhen((sender) => countOf(sender) > lines, "127.0.0.2");
    },
  );

  test("the connections of a sender that is too fast are read in turn", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 100 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    for (let n = 0; n < 9; n++) (await connected(port)).write("\n".repeat(1_000_000));
    await inlet.senderWhen(({ lines }) => lines >= 100);
    nowMs++;
    (await connected(port)).write(`${LINE}\n`);
    await inlet.senderWhen(({ lastSeenMs }) => lastSeenMs === nowMs);
    expect(inlet.raws, "it waits like the others").toEqual([]);
    await expect
      .poll(
        () => {
          nowMs += 1_000_000;
          return inlet.raws.length;
        },
        { timeout: 10_000 },
      )
      .toBe(1);
    expect(inlet.sender()!.lines, "each of the others had about one turn before it").toBeLessThan(20 * 16_384);
  });

  test("datagrams that are no text or empty count for the rate, and so does each line of one", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 20 });
    await inlet.sockets.listenUdp(inlet.place);
    const port = inlet.portOf("udp");
    const junk = [...Array<string>(15).fill("\u0001\u0002\u0003"), ...Array<string>(5).fill("\n")];
    await sendDatagrams(port, [...junk, LINE]);
    await inlet.senderWhen(({ lines }) => lines === 21);
    expect(inlet.sender()).toMatchObject({ nothing: 5, refused: { not_text: 15, too_fast: 1 } });

    nowMs += 1000;
    const many = linesOf(50, "of one datagram");
    await sendDatagrams(port, [many.join("\n"), LINE]);
    await inlet.linesWhen(many);
    await inlet.senderWhen(({ refused }) => refused.too_fast === 2);
    nowMs += 1500;
    await sendDatagrams(port, [LINE]);
    await inlet.senderWhen(({ refused }) => refused.too_fast === 3);
    nowMs += 100;
    await sendDatagrams(port, [LINE]);
    await inlet.linesWhen([...many, LINE]);
  });
});

test("senders beyond those that are told apart still get in, and those that sent events are not forgotten for them", () => {
  const now = () => 1_000_000;
  const senders = new Senders({ allowed: [parseCidr("10.0.0.0/8")!], linesPerSecondMax: 10, now });
  for (let n = 0; n < SENDERS_MAX; n++) senders.find("syslog", "udp", `10.0.${n >> 8}.${n & 255}`).events = 1;
  const other = senders.find("syslog", "udp", "10.1.0.1");
  expect(other.address).toBe("others");
  expect(senders.admits(other, "10.1.0.1")).toBe(true);
  expect(senders.admits(other, "192.0.2.1")).toBe(false);
  expect(senders.status(now()).total.events).toBe(SENDERS_MAX);
});

test("a sender that never sent an event makes room for the next, and its counts stay in the total", () => {
  let nowMs = 1_000_000;
  const senders = new Senders({ allowed: [], linesPerSecondMax: 10, now: () => nowMs++ });
  for (let n = 0; n < 5000; n++) senders.find("syslog", "udp", `10.0.${n >> 8}.${n & 255}`).lines++;
  const { senders: known, total } = senders.status(nowMs);
  expect(known).toHaveLength(SENDERS_MAX);
  expect(total.lines).toBe(5000);
});

describe("the queues of all senders together", () => {
  const MEBI = 1024 * 1024;
  const longText = "x".repeat(MEBI / 4);
  const line = (text: string) => ({ text, isReplaced: false, atMs: 1_000_000, from: "192.0.2.1" });
  /** Sixteen senders that hold 64 Mi characters, one line short of more than there may be. */
  const crowd = () => {
    const senders = new Senders({ allowed: [], linesPerSecondMax: 1_000_000, now: () => 1_000_000 });
    const find = (address: string) => senders.find("syslog", "udp", address);
    const full = Array.from({ length: 16 }, (_, n) => find(`10.0.0.${n}`));
    for (const sender of full) for (let n = 0; n < 16; n++) expect(sender.offer(line(longText))).toBe(true);
    return { find, full };
  };

  test("hold 64 Mi characters of datagrams; beyond it each sender still has room for a little", () => {
    const { find, full } = crowd();
    expect(full[0]!.offer(line("y")), "one sender has 4 Mi").toBe(false);
    const [last, other] = [find("10.0.1.1"), find("10.0.1.2")];
    expect(last.offer(line(longText)), "all are just full").toBe(true);
    for (const sender of [last, other]) expect(sender.offer(line(longText))).toBe(false);
    expect(other.offer(line("x".repeat(16 * 1024)))).toBe(true);
    expect(other.offer(line("y"))).toBe(false);
    full[0]!.take();
    full[0]!.take();
    expect(other.offer(line(longText)), "there is room again").toBe(true);
  });

  test("make streams wait when they hold more, but for those that hold little", () => {
    const { find, full } = crowd();
    const [stream, quiet] = [find("10.0.1.1"), find("10.0.1.2")];
    stream.put(line(longText));
    quiet.put(line("y"));
    expect(stream.mustWait(1_000_000)).toBe(true);
    expect(quiet.mustWait(1_000_000)).toBe(false);
    full[0]!.take();
    full[0]!.take();
    expect(stream.mustWait(1_000_000), "there is room again").toBe(false);
  });
});

describe("IPv6 senders", () => {
  const line = (atMs: number, from: string) => ({ text: LINE, isReplaced: false, atMs, from });

  test("have the lines of one sender for each network of 64 bits, and are shown by their addresses", () => {
    let nowMs = 1_000_000;
    const senders = new Senders({ allowed: [], linesPerSecondMax: 10, now: () => nowMs });
    const offer = (address: string) => {
      const sender = senders.find("syslog", "udp", address);
      if (!sender.mayCome(nowMs)) return false;
      sender.count();
      return sender.offer(line(nowMs, address));
    };
    const near = Array.from({ length: 20 }, (_, n) => `2001:db8:0:1::${n + 1}`);
    expect(near.map(offer).filter(Boolean)).toHaveLength(10);
    for (const other of ["2001:db8:0:2::1", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3"])
      expect(offer(other), other).toBe(true);
    nowMs += 500;
    expect(near.map(offer).filter(Boolean)).toHaveLength(5);
    const shown = senders.status(nowMs).senders.map(({ address }) => address);
    expect(shown).toEqual([...near, "2001:db8:0:2::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]);
  });

  test("have the connections of one sender, for each network too", () => {
    const now = () => 1_000_000;
    const senders = new Senders({ allowed: [], linesPerSecondMax: 10, now });
    const places = new Places({ connectionsMax: 100, connectionsPerSenderMax: 3, now });
    const take = (address: string) => places.take(new Socket(), senders.find("syslog", "tcp", address));
    const taken = [1, 2, 3].map((n) => take(`2001:db8::${n}`));
    expect(take("2001:db8::4")).toContain("has 3 open already");
    expect(typeof take("2001:db8:0:1::4")).toBe("object");
    for (const n of [1, 2, 3, 4]) expect(typeof take(`192.0.2.${n}`)).toBe("object");
    const [first] = taken;
    if (typeof first !== "object") throw new Error(first);
    first.socket.emit("close");
    expect(typeof take("2001:db8::4")).toBe("object");
    expect(senders.find("syslog", "tcp", "2001:db8::4").connections).toBe(1);
  });
});

describe("what cannot be opened", () => {
  test("a port that is taken is named with its setting and a remedy", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    open.push(other);
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const inlet = openSockets();
    const listening = inlet.sockets.listenTls({ ...inlet.place, name: "syslog_tls", port }, {});
    await expect(listening).rejects.toThrow(
      new RegExp(
        `TCP port ${port} on 127.0.0.1, for syslog_tls \\(setting syslog_tls_port\\), is taken.*\n.*--syslog-tls-port off`,
      ),
    );
  });

  test("a path that holds something else is left alone", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tocsin-sockets-"));
    open.push({ close: () => rm(folder, { recursive: true, force: true }) });
    const path = join(folder, "eve.sock");
    writeFileSync(path, "precious");
    const inlet = openSockets();
    await expect(inlet.sockets.listenUnix("eve", path)).rejects.toThrow(/something else.*\n.*--eve-socket/);
  });
});
