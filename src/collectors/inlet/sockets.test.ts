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
import { closeAfter, closeAll, connected, LINE, openSockets, sendDatagrams } from "./sockets.fixture.ts";

// What comes in over real sockets, whole and broken.

afterEach(closeAll);

describe("TLS", () => {
  const server = { cert: SERVER_CERTIFICATE, key: SERVER_KEY };
  const client = (port: number, options: object) => {
    const socket = connectTls({ port, host: "127.0.0.1", ca: CA, ...options });
    socket.on("error", () => undefined);
    closeAfter({ close: () => socket.destroy() });
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

describe("what cannot be opened", () => {
  test("a port that is taken is named with its setting and a remedy", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    closeAfter(other);
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
    closeAfter({ close: () => rm(folder, { recursive: true, force: true }) });
    const path = join(folder, "eve.sock");
    writeFileSync(path, "precious");
    const inlet = openSockets();
    await expect(inlet.sockets.listenUnix("eve", path)).rejects.toThrow(/something else.*\n.*--eve-socket/);
  });
});
