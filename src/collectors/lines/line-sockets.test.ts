import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { CA, CLIENT_CERTIFICATE, CLIENT_KEY, SERVER_CERTIFICATE, SERVER_KEY } from "./certificates.fixture.ts";
import { closeAfter, closeAll, connected, LINE, openSockets, sendDatagrams } from "./line-sockets.fixture.ts";

// Valid and broken input over real sockets.

afterEach(closeAll);

describe("TLS", () => {
  const server = { cert: SERVER_CERTIFICATE, key: SERVER_KEY };
  const client = (port: number, options: object) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: CA, ...options });
    socket.on("error", () => undefined);
    closeAfter({ close: () => socket.destroy() });
    return socket;
  };

  test("lines arrive, and a broken handshake is counted and affects no other sender", async () => {
    const collector = openSockets({ handshakeMsMax: 500 });
    await collector.sockets.listenTls({ ...collector.endpoint, name: "syslog_tls" }, server);
    const port = collector.portOf("tls");
    const hello = Buffer.from("160301020001000001fc0303", "hex");
    (await connected(port)).end(hello);
    await collector.senderWhen(({ refused }) => refused.handshake_failed === 1);
    (await connected(port)).write(randomBytes(500));
    await collector.senderWhen(({ refused }) => refused.handshake_failed === 2);
    client(port, {}).end(`${LINE}\n`);
    await collector.linesWhen([LINE]);
    await collector.senderWhen(({ connections }) => connections === 0);
  });

  test("with a client CA, a sender without a certificate is refused", async () => {
    const collector = openSockets();
    const withCa = { ...server, ca: CA, requestCert: true, rejectUnauthorized: true };
    await collector.sockets.listenTls({ ...collector.endpoint, name: "syslog_tls" }, withCa);
    client(collector.portOf("tls"), {}).write("<13>a stranger's\n");
    await collector.senderWhen(({ refused }) => refused.handshake_failed === 1);
    client(collector.portOf("tls"), { cert: CLIENT_CERTIFICATE, key: CLIENT_KEY }).end(`${LINE}\n`);
    await collector.linesWhen([LINE]);
  });

  test("a partial line is refused, as the stream may have been truncated", async () => {
    const collector = openSockets();
    await collector.sockets.listenTls({ ...collector.endpoint, name: "syslog_tls" }, server);
    const wire = await connected(collector.portOf("tls"));
    const secure = client(0, { socket: wire });
    await once(secure, "secureConnect");
    secure.write(`${LINE}\n<13>only the begin`);
    await collector.linesWhen([LINE]);
    // Ends TCP without TLS's close_notify.
    wire.end();
    const { lastRefusal } = await collector.senderWhen(({ refused }) => refused.cut_off === 1);
    expect(lastRefusal!.sample).toBe("<13>only the begin");
    await collector.linesWhen([LINE]);
  });

  test("messages with a length and without a priority are split", async () => {
    const collector = openSockets();
    await collector.sockets.listenTls({ ...collector.endpoint, name: "syslog_tls" }, server);
    client(collector.portOf("tls"), {}).end("12 0|Vendor|x|15 0|V|x");
    await collector.linesWhen(["0|Vendor|x|1", "0|V|x"]);
  });

  test("TLS on the plain-text port is refused with the remedy", async () => {
    const collector = openSockets();
    await collector.sockets.listenTcp(collector.endpoint);
    client(collector.portOf("tcp"), {});
    const { lastRefusal } = await collector.senderWhen(({ lastRefusal }) => lastRefusal !== null);
    expect(lastRefusal!.message).toContain("syslog_tls_port");
  });
});

describe("bad input affects its sender only", () => {
  test("a line of a megabyte is refused, and the connection stays open", async () => {
    const collector = openSockets();
    await collector.sockets.listenTcp(collector.endpoint);
    (await connected(collector.portOf("tcp"))).write(`<13>${"x".repeat(1024 * 1024)}\n${LINE}\n`);
    await collector.linesWhen([LINE]);
    const { lastRefusal, lines } = collector.sender()!;
    expect(lines).toBe(2);
    expect(lastRefusal).toMatchObject({ reason: "too_long", message: "a message is longer than 65536 bytes" });
    expect(lastRefusal!.sample).toHaveLength(200);
  });

  test("binary garbage is not text, over TCP and UDP", async () => {
    const collector = openSockets();
    await collector.sockets.listenTcp(collector.endpoint);
    await collector.sockets.listenUdp(collector.endpoint);
    const garbage = Buffer.from(randomBytes(5000).map((byte) => (byte === 0x0a || byte === 0 ? 1 : byte)));
    await sendDatagrams(collector.portOf("udp"), [garbage, LINE]);
    (await connected(collector.portOf("tcp"))).end(Buffer.concat([garbage, Buffer.from(`\n${LINE}\n`)]));
    await collector.linesWhen([LINE, LINE]);
    for (const transport of ["udp", "tcp"]) {
      const { refused, lastRefusal } = collector.sender("127.0.0.1", transport)!;
      expect(refused.not_text).toBe(1);
      expect(lastRefusal!.sample).not.toMatch(/\p{Cc}/u);
    }
  });

  test("bytes that are not UTF-8 are replaced, and the event is marked", async () => {
    const collector = openSockets();
    await collector.sockets.listenUdp(collector.endpoint);
    await sendDatagrams(collector.portOf("udp"), [Buffer.from("<13>T\u00fcr ge\u00f6ffnet", "latin1")]);
    await collector.linesWhen(["<13>T\ufffdr ge\ufffdffnet"]);
    expect(collector.raws[0]!.replaced_bytes).toBe(true);
  });

  test("CEF with ten thousand keys becomes an event with its line", async () => {
    const collector = openSockets({ lineBytesMax: 1_048_576 });
    await collector.sockets.listenTcp(collector.endpoint);
    const pairs = Array.from({ length: 10_000 }, (_, n) => `key${n}=value ${n}`).join(" ");
    const line = `<13>Nov 15 08:30:00 gateway CEF:0|Vendor|Product|1|100|Something|5|${pairs}`;
    (await connected(collector.portOf("tcp"))).end(`${line}\n`);
    await collector.linesWhen([line]);
  });

  test("a partial line at the end is read; a message shorter than its stated length is cut off", async () => {
    const collector = openSockets();
    await collector.sockets.listenTcp(collector.endpoint);
    (await connected(collector.portOf("tcp"))).end(LINE);
    await collector.linesWhen([LINE]);
    (await connected(collector.portOf("tcp"))).end("500 <13>only the beginning");
    const { lastRefusal } = await collector.senderWhen(({ refused }) => refused.cut_off === 1);
    expect(lastRefusal!.sample).toBe("<13>only the beginning");
  });

  test("a connection whose line never ends is cut; a silent one is not", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, incompleteMsMax: 30_000 });
    await collector.sockets.listenTcp(collector.endpoint);
    const silent = await connected(collector.portOf("tcp"), "127.0.0.2");
    silent.write(`${LINE}\n`);
    const slow = await connected(collector.portOf("tcp"));
    slow.write("<13>slow");
    await collector.senderWhen(({ lastSeenMs }) => lastSeenMs === 1_000_000);
    await collector.linesWhen([LINE]);
    // Sends a few characters now and then, and never a line end.
    nowMs += 20_000;
    slow.write("ly");
    await collector.senderWhen(({ lastSeenMs }) => lastSeenMs === 1_020_000);
    nowMs += 20_000;
    await slow.gone;
    const { lastRefusal } = await collector.senderWhen(({ refused }) => refused.cut_off === 1);
    expect(lastRefusal).toMatchObject({ sample: "<13>slowly", message: expect.stringContaining("30 s") });
    silent.write(`${LINE}\n`);
    await collector.linesWhen([LINE, LINE]);
  });

  test("a message of its stated length does not wait for the next one", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, incompleteMsMax: 30_000 });
    await collector.sockets.listenTcp(collector.endpoint);
    const sender = await connected(collector.portOf("tcp"));
    sender.write("12 0|Vendor|x|1");
    await expect.poll(() => collector.sockets.status()[0]!.bytes).toBe(15);
    nowMs += 2000;
    await collector.linesWhen(["0|Vendor|x|1"]);
    nowMs += 60_000;
    sender.write("5 0|V|x5 0|V|y");
    await collector.linesWhen(["0|Vendor|x|1", "0|V|x"]);
    nowMs += 2000;
    await collector.linesWhen(["0|Vendor|x|1", "0|V|x", "0|V|y"]);
  });

  test("a sender whose writes end within a line is not cut while lines end", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, incompleteMsMax: 30_000 });
    await collector.sockets.listenTcp(collector.endpoint);
    const busy = await connected(collector.portOf("tcp"));
    busy.write("<13>0\n<13>1");
    const expected = ["<13>0"];
    await collector.linesWhen(expected);
    for (let n = 1; n <= 4; n++) {
      nowMs += 20_000;
      busy.write(`\n<13>${n + 1}`);
      expected.push(`<13>${n}`);
      await collector.linesWhen(expected);
    }
    const { refused } = await collector.senderWhen(({ lastSeenMs }) => lastSeenMs === nowMs);
    expect(refused.cut_off).toBe(0);
  });

  test("without unparsed events, a line that no format understands is refused with a sample", async () => {
    const collector = openSockets({ keepsUnparsed: false });
    await collector.sockets.listenUdp(collector.endpoint);
    await sendDatagrams(collector.portOf("udp"), ["<13>host app: nobody knows this"]);
    const { lastRefusal } = await collector.senderWhen(({ refused }) => refused.unknown_kind === 1);
    expect(lastRefusal!.sample).toContain("nobody knows this");
  });
});

describe("listening fails", () => {
  test("with the port, its setting and a remedy if the port is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    closeAfter(other);
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const collector = openSockets();
    const listening = collector.sockets.listenTls({ ...collector.endpoint, name: "syslog_tls", port }, {});
    await expect(listening).rejects.toThrow(
      new RegExp(
        `TCP port ${port} on 127.0.0.1, for syslog_tls \\(setting syslog_tls_port\\), is already in use.*\n.*--syslog-tls-port off`,
      ),
    );
  });

  test("and leaves a file at the path of the socket alone", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tocsin-sockets-"));
    closeAfter({ close: () => rm(folder, { recursive: true, force: true }) });
    const path = join(folder, "eve.sock");
    writeFileSync(path, "precious");
    const collector = openSockets();
    await expect(collector.sockets.listenUnix("eve", path)).rejects.toThrow(/not a socket.*\n.*--eve-socket/);
  });
});
