import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import * as fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { makeCertificate } from "../certificate.fixture.ts";
import type { Message } from "../message.ts";
import { openChannels } from "../open-channels.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert } from "../peers.fixture.ts";

const { key, certificate } = makeCertificate();
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A server of streams, which reads frames by octet counting: RFC 6587, section 3.4.1. */
async function startStream(isTls = false, greet: (socket: Socket) => void = () => undefined) {
  const received: string[] = [];
  const ends: Promise<unknown>[] = [];
  const onSocket = (socket: Socket) => {
    greet(socket);
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => undefined);
    ends.push(once(socket, "close"));
    socket.on("end", () => received.push(...framesOf(Buffer.concat(chunks))));
  };
  const server: Server = isTls ? createTlsServer({ key, cert: certificate }, onSocket) : createServer(onSocket);
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => server.close());
  return { port: (server.address() as AddressInfo).port, received, settled: () => Promise.all(ends) };
}

function framesOf(bytes: Buffer): string[] {
  const frames: string[] = [];
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(" ", at);
    const length = Number(bytes.toString("latin1", at, space));
    if (!/^[1-9]\d{0,8}$/.test(bytes.toString("latin1", at, space))) throw new Error("no octet count");
    frames.push(bytes.toString("utf8", space + 1, space + 1 + length));
    at = space + 1 + length;
  }
  return frames;
}

async function startDatagrams() {
  const received: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (bytes) => received.push(bytes.toString()));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  closers.push(() => socket.close());
  const until = async (count: number) => {
    while (received.length < count) await once(socket, "message");
  };
  return { port: socket.address().port, received, until };
}

/** The header and the structured data of a line, by the grammar of RFC 5424. */
function parse5424(line: string) {
  const [, priority, time, host, app, process, kind, data = "", text] =
    /^<(\d{1,3})>1 (\S+) (\S{1,255}) (\S{1,48}) (\S{1,128}) (\S{1,32}) (\[(?:[^"\]]|"(?:\\.|[^"\\\]])*")*\]) (.*)$/.exec(
      line,
    ) ?? [];
  if (data === "") throw new Error(`not RFC 5424: ${line}`);
  const fields = Object.fromEntries(
    Array.from(data.matchAll(/ ([\x21-\x3c\x3e-\x5c\x5e-\x7e]{1,32})="((?:\\.|[^"\\\]])*)"/g), ([, name, value]) => [
      name!,
      value!.replace(/\\(["\\\]])/g, "$1"),
    ]),
  );
  return { priority: Number(priority), time, host, app, process, kind, fields, text };
}

/** The header and the extension of a line, by the rules of CEF. */
function parseCef(line: string) {
  const [, priority, time, rest = ""] =
    /^<(\d{1,3})>([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ CEF:0\|(.*)$/.exec(line) ?? [];
  const parts = rest.match(/(?:\\[\\|]|[^|\\])*\||.+$/g) ?? [];
  if (parts.length < 7 && !rest.endsWith("|")) throw new Error(`not CEF: ${line}`);
  const head = parts.slice(0, 6).map((part) => part.slice(0, -1).replace(/\\([\\|])/g, "$1"));
  const extension = parts.slice(6).join("");
  const fields = Object.fromEntries(
    Array.from(
      extension.matchAll(/(?:^| )(\w+)=((?:\\[\\=]|[^=\\])*?)(?= \w+=|$)/g),
      ([, name, value]) => [name!, value!.replace(/\\([\\=])/g, "$1")] as const,
    ),
  );
  return { priority: Number(priority), time, head, fields };
}

type Settings = Partial<typeof NO_CHANNELS>;
const send = (message: Message, more: Settings, certificates = certificate) =>
  openChannels({ ...NO_CHANNELS, syslogHost: "127.0.0.1", ...more }, { certificates })
    .get("syslog")!
    .send(message, new AbortController().signal);

test("a line of RFC 5424 has the facts of the alert as structured data", async () => {
  const peer = await startStream();
  const alert = someAlert();
  expect(await send(messageOf([alert]), { syslogPort: peer.port })).toEqual({ kind: "sent" });
  await peer.settled();
  expect(peer.received.map(parse5424)).toEqual([
    {
      priority: 16 * 8 + 3,
      time: "2023-11-14T22:14:22.000Z",
      host: expect.any(String),
      app: "tocsin",
      process: "-",
      kind: "alert",
      fields: {
        alert_id: alert.id,
        reason: "created",
        severity: "high",
        status: "open",
        rule: "site.failed_logins",
        source: "custom",
        title: "Failed logins from 192.0.2.17",
        group_field: "raw.src_ip",
        group_value: "192.0.2.17",
        event_count: "5",
        first_event_at: "2023-11-14T22:13:20.000Z",
        last_event_at: "2023-11-14T22:14:20.000Z",
        url: `https://tocsin.example/alerts?alert=${alert.id}`,
        delivery_id: "dlv_1",
        repeat: "false",
      },
      text: "New alert: Failed logins from 192.0.2.17. Five failed logins from one address.",
    },
  ]);
});

test("a line of CEF has the names of its dictionary, over TLS", async () => {
  const peer = await startStream(true);
  const message = closedMessageOf(someAlert({ title: "a|b\\c", severity: "critical" }));
  const settings: Settings = { syslogPort: peer.port, syslogTransport: "tls", syslogFormat: "cef", syslogFacility: 4 };
  expect(await send(message, settings)).toEqual({ kind: "sent" });
  await peer.settled();
  const [{ priority, time, head, fields }] = peer.received.map(parseCef) as [ReturnType<typeof parseCef>];
  expect([priority, time]).toEqual([4 * 8 + 2, "Nov 14 22:14:22"]);
  expect(head).toEqual(["Tocsin", "Tocsin", expect.stringMatching(/^\d/), "site.failed_logins", "a|b\\c", "10"]);
  expect(fields).toMatchObject({
    act: "resolved",
    outcome: "resolved",
    src: "192.0.2.17",
    cnt: "5",
    end: "1700000060000",
    cs5Label: "resolution",
    cs5: "false_positive",
    msg: "Five failed logins from one address.",
  });
});

test("an IPv6 address has its own field in CEF, and each notification of a digest a datagram", async () => {
  const peer = await startDatagrams();
  const alerts = [
    someAlert({ group: { field: "raw.dst_ip", value: "2001:db8::1" } }),
    someAlert({ description: "漢".repeat(5000) }),
    someAlert({ group: null }),
  ];
  const settings: Settings = { syslogPort: peer.port, syslogTransport: "udp", syslogFormat: "cef" };
  expect(await send(messageOf(alerts), settings)).toEqual({ kind: "sent" });
  await peer.until(3);
  expect(parseCef(peer.received[0]!).fields).toMatchObject({ c6a3: "2001:db8::1" });
  expect(Math.max(...peer.received.map((line) => Buffer.byteLength(line)))).toBeLessThanOrEqual(2048);
});

test("a server that is absent is retried; one that breaks the connection may have the message", async () => {
  const peer = await startStream();
  await closers.pop()!();
  expect(await send(messageOf([someAlert()]), { syslogPort: peer.port })).toMatchObject({
    kind: "failed",
    error: expect.stringContaining("ECONNREFUSED"),
    mayHaveArrived: false,
  });
  const rude = await startStream(false, (socket) => socket.once("data", () => socket.resetAndDestroy()));
  const many = messageOf(Array.from({ length: 500 }, () => someAlert({ description: "x".repeat(5000) })));
  expect(await send(many, { syslogPort: rude.port })).toMatchObject({ kind: "failed", mayHaveArrived: true });
});

test("an untrusted certificate gets no message", async () => {
  const peer = await startStream(true);
  const settings: Settings = { syslogPort: peer.port, syslogTransport: "tls" };
  const outcome = await send(messageOf([someAlert()]), settings, makeCertificate().certificate);
  expect(outcome).toMatchObject({ kind: "failed", mayHaveArrived: false });
  expect(outcome).toMatchObject({ error: expect.stringContaining("NODE_EXTRA_CA_CERTS=") });
  expect(peer.received).toEqual([]);
});

test("text from events adds neither a field nor a line", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 100 }),
    fc.constantFrom(
      'x"] [evil@1 a="b"',
      "a\n<0>1 - - - - - evil",
      "src=10.0.0.1 \\= | \\",
      "\\",
      "]",
      "x".repeat(3000),
    ),
  );
  const peer = await startStream();
  await fc.assert(
    fc.asyncProperty(nasty, nasty, async (title, value) => {
      const rule = { id: "r", name: title, description: "", tags: [] };
      const alert = someAlert({ title, description: value, group: { field: title, value }, rule });
      peer.received.splice(0);
      for (const syslogFormat of ["rfc5424", "cef"] as const)
        expect(await send(messageOf([alert]), { syslogPort: peer.port, syslogFormat })).toEqual({ kind: "sent" });
      await peer.settled();
      expect(peer.received).toHaveLength(2);
      for (const line of peer.received) expect(line).not.toMatch(/[\n\r\0]/);
      const { fields } = parse5424(peer.received[0]!);
      expect(Object.keys(fields).filter((name) => !/^(?:[a-z]+_)*[a-z]+$/.test(name))).toEqual([]);
      expect(Object.keys(fields)).toHaveLength(15);
      const cef = parseCef(peer.received[1]!);
      expect(cef.head).toHaveLength(6);
      expect(cef.fields["src"]).toBeUndefined();
    }),
    { numRuns: 30 },
  );
});
