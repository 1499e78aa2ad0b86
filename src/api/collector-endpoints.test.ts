import { createSocket, type Socket } from "node:dgram";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";
import { concat, ipv4, record, set, template, v9, type FieldSpec } from "../collectors/flows/packets.fixture.ts";

let server: TestServer;
afterEach(() => server.close());

const FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [1, 4],
  [2, 4],
];
const DATA = set(260, record(FIELDS, [ipv4("192.0.2.1"), ipv4("192.0.2.2"), 1000, 3]));

const collectors = async () => (await server.call("GET", "/v1/collectors")).body.data;

async function send(port: number, ...packets: Uint8Array[]): Promise<void> {
  const socket = createSocket("udp4");
  for (const packet of packets) await sendBy(socket, port, packet);
  socket.close();
}

function sendBy(socket: Socket, port: number, packet: Uint8Array): Promise<void> {
  return new Promise<void>((resolve, reject) =>
    socket.send(packet, port, "127.0.0.1", (error) => (error ? reject(error) : resolve())),
  );
}

async function openCollectors(): Promise<number> {
  const loaded = loadSettings({ environment: {}, workingFolder: "/" });
  if ("faults" in loaded) throw new Error("the defaults have faults");
  const flows = { ...loaded.settings.flows, addresses: ["127.0.0.1"] };
  server = await openTestServer({ settings: { netflowPort: 0, flows } });
  return (await collectors()).listeners[0].port;
}

/** Packets are processed asynchronously to the requests. */
async function exporterWhen(holds: (exporter: any) => boolean): Promise<any> {
  for (;;) {
    const [exporter] = (await collectors()).exporters;
    if (exporter && holds(exporter)) return exporter;
    await sleep(20);
  }
}

test("the status of an exporter contains what is needed to find a fault", async () => {
  await openCollectors();
  const [listener] = (await collectors()).listeners;
  expect(listener).toMatchObject({ name: "netflow", transport: "udp", address: "127.0.0.1", packets: 0 });

  await send(listener.port, v9([DATA]));
  const waiting = await exporterWhen(({ packets }) => packets === 1);
  expect(waiting).toMatchObject({
    address: "127.0.0.1",
    versions: [9],
    state: "no_template",
    records: 0,
    missing_templates: [260],
    waiting_sets: 1,
  });
  expect(waiting.summary).toContain("260");
  expect(waiting.per_minute).toBe(1);
  expect(waiting.history).toHaveLength(60);
  expect(waiting.history.reduce((sum: number, count: number) => sum + count)).toBe(1);
  const [absent] = waiting.absent_templates;
  expect(absent).toMatchObject({ id: 260, dropped_sets: 0, reason: null });
  expect(Date.now() - Date.parse(absent.since)).toBeLessThan(60_000);

  await send(listener.port, v9([set(0, template(260, FIELDS))]));
  const fine = await exporterWhen(({ records }) => records === 1);
  expect(fine).toMatchObject({
    packets: 2,
    templates: 1,
    missing_templates: [],
    absent_templates: [],
    waiting_sets: 0,
  });

  await send(listener.port, v9([DATA]).subarray(0, 25));
  const spoiled = await exporterWhen(({ drops }) => drops.truncated === 1);
  expect(spoiled.last_error.message).not.toBe("");
  expect(Date.parse(spoiled.last_error.at)).toBeGreaterThan(Date.now() - 60_000);
});

test("two exporters behind one address are one exporter with two sessions, each with its own templates", async () => {
  const port = await openCollectors();
  const [one, other] = [createSocket("udp4"), createSocket("udp4")];
  const longer: readonly FieldSpec[] = [...FIELDS, [4, 1]];
  await sendBy(one, port, v9([set(0, template(260, FIELDS))]));
  await sendBy(other, port, v9([set(0, template(260, longer))]));
  const values = [ipv4("192.0.2.1"), ipv4("192.0.2.2"), 1000, 3];
  const three = concat(...[1, 2, 3].map(() => record(longer, [...values, 6])));
  await sendBy(one, port, v9([DATA], { sequence: 1 }));
  await sendBy(other, port, v9([set(260, three)], { sequence: 1 }));
  one.close();
  other.close();
  const exporter = await exporterWhen(({ packets }) => packets === 4);
  expect(exporter).toMatchObject({ address: "127.0.0.1", sessions: 2, templates: 2, records: 4, gaps: 0 });
});

test("evicted templates are counted per exporter, in total and in the metrics", async () => {
  const port = await openCollectors();
  const packets = Array.from({ length: 60 }, (_, packet) =>
    v9([set(0, concat(...Array.from({ length: 20 }, (_, index) => template(256 + packet * 20 + index, FIELDS))))]),
  );
  for (const [index, packet] of packets.entries()) {
    await send(port, packet);
    await exporterWhen((exporter) => exporter.packets === index + 1);
  }
  const { templates, drops } = await exporterWhen(() => true);
  expect(templates).toBeLessThanOrEqual(1000);
  expect(templates + drops.template_evicted).toBe(1200);
  expect((await collectors()).drops.template_evicted).toBe(drops.template_evicted);
  const metrics = await server.call("GET", "/metrics");
  expect(metrics.text).toContain(`tocsin_flows_dropped_total{reason="template_evicted"} ${drops.template_evicted}`);
});

/** Polls until the sender's last line is this one. */
async function senderWithLast(text: string): Promise<any> {
  for (;;) {
    const sender = (await collectors()).senders.find(({ last_line }: any) => last_line?.text.includes(text));
    if (sender) return sender;
    await sleep(20);
  }
}

test("a sender has its rate, and its last line with how it was understood", async () => {
  const loaded = loadSettings({ environment: {}, workingFolder: "/" });
  if ("faults" in loaded) throw new Error("the defaults have faults");
  const settings = { ...loaded.settings.collectors, addresses: ["127.0.0.1"], unparsed: true };
  server = await openTestServer({ settings: { syslogPort: 0, collectors: settings } });
  const { port } = (await collectors()).listeners.find(({ transport }: any) => transport === "udp");
  const say = (line: string) => send(port, Buffer.from(line));

  await say("<38>1 2026-11-15T10:00:00Z gateway sshd 1 - - Failed password for root from 192.0.2.10 port 50000 ssh2");
  const login = await senderWithLast("Failed password");
  expect(login.last_line).toMatchObject({
    outcome: "events",
    format: "ssh-logins",
    type: "login_failure",
    message: null,
  });
  expect(login).toMatchObject({ per_minute: 1, address: "127.0.0.1" });

  await say("<14>gateway CEF:0|Example|Network|1|201|Threat Detected and Blocked|7|src=8.8.8.8 act=blocked");
  expect((await senderWithLast("CEF:0")).last_line).toMatchObject({ outcome: "events", format: "cef" });

  await say(`a kettle \u0007 boils ${"x".repeat(500)}`);
  const { last_line: kettle, history } = await senderWithLast("a kettle");
  expect(kettle).toMatchObject({ outcome: "events", format: null, type: "unparsed" });
  expect(kettle.text).toHaveLength(200);
  expect(kettle.text).toContain("kettle · boils");
  expect(history.reduce((sum: number, count: number) => sum + count)).toBe(3);

  await say("<13>Nov 15 10:00:00 gate shop[7]: sold 4, password=hunter2");
  const { unparsed, unparsed_samples: samples, summary } = await senderWithLast("sold 4");
  expect(unparsed).toBe(2);
  expect(summary).toContain("no format understood 2 of 4");
  expect(samples).toMatchObject([
    { program: "shop", lines: 1, text: "<13>Nov 15 10:00:00 gate shop[7]: sold 4, password=(hidden)" },
    { program: null, lines: 1 },
  ]);
  expect((await collectors()).collected.unparsed).toBe(2);
  expect((await server.call("POST", "/v1/collect/syslog", { body: ["a kettle boils"] })).status).toBe(200);
  const posts = (await collectors()).webhooks.find(({ name }: any) => name === "syslog");
  expect(posts).toMatchObject({ unparsed: 1, unparsed_samples: [{ text: "a kettle boils" }] });

  await send(port, Buffer.alloc(64, 0x01));
  const refused = await senderWithLast("····");
  expect(refused.last_line).toMatchObject({
    outcome: "refused",
    format: null,
    type: null,
    message: "a message is not text",
  });
});

test("formats of a folder read lines of every collector, and are reloaded; their faults have file and line", async () => {
  const formatsDir = mkdtempSync(join(tmpdir(), "tocsin-formats-"));
  const teach = (type: string) =>
    writeFileSync(
      join(formatsDir, "kettle.yaml"),
      `format: kettle
about: kettles
match: { begins: "a kettle " }
events: [{ pattern: "a kettle {message:rest}", type: ${type}, severity: low }]
tests: [{ line: a kettle boils, type: ${type} }]
`,
    );
  teach("kettle_boiled");
  const loaded = loadSettings({ environment: {}, workingFolder: "/" });
  if ("faults" in loaded) throw new Error("the defaults have faults");
  const settings = { ...loaded.settings.collectors, addresses: ["127.0.0.1"], formatsDir };
  server = await openTestServer({ settings: { syslogPort: 0, collectors: settings } });
  const { port } = (await collectors()).listeners.find(({ transport }: any) => transport === "udp");
  const typeOf = async (line: string) => {
    await send(port, Buffer.from(line));
    return (await senderWithLast(line)).last_line.type;
  };
  expect(await typeOf("a kettle boils")).toBe("kettle_boiled");
  const taught = async () => (await collectors()).taught_formats;
  expect(await taught()).toMatchObject({
    folder: formatsDir,
    formats: [{ name: "kettle", file: "kettle.yaml", line: 1, kept: false, replaces_shipped: false, lines: 1 }],
    faults: [],
  });

  const posted = { body: ["a kettle whistles"] };
  const typesStored = async () => {
    const { body } = await server.call("GET", "/v1/events");
    return body.data.map(({ type }: any) => type);
  };
  teach("kettle_hot");
  for (let index = 0; (await typeOf(`a kettle ${index}`)) !== "kettle_hot"; index++) await sleep(50);
  expect((await server.call("POST", "/v1/collect/syslog", posted)).status).toBe(200);
  expect((await typesStored())[0]).toBe("kettle_hot");

  teach("Kettle Hot");
  while ((await taught()).faults.length === 0) await sleep(50);
  expect((await taught()).formats).toMatchObject([{ name: "kettle", kept: true }]);
  expect((await taught()).faults).toMatchObject([
    { kind: "refused", file: "kettle.yaml", line: 4, path: "events[0].type" },
  ]);
  expect(await typeOf("a kettle cools")).toBe("kettle_hot");
  rmSync(formatsDir, { recursive: true, force: true });
});

test("a webhook has its rate, and its last item with secrets redacted", async () => {
  server = await openTestServer();
  const body = { from: "100", to: "101", status: "answered", uuid: "c-1", token: "hunter2", duration: 5 };
  expect((await server.call("POST", "/v1/collect/talk", { body })).status).toBe(200);
  const talk = (await collectors()).webhooks.find(({ name }: any) => name === "talk");
  expect(talk).toMatchObject({ per_minute: 1, last_line: { outcome: "events", format: "talk", message: null } });
  expect(talk.last_line.text).toContain('"from":"100"');
  expect(talk.last_line.text).not.toContain("hunter2");
  const silent = (await collectors()).webhooks.find(({ name }: any) => name === "protect");
  expect(silent).toMatchObject({ per_minute: 0, last_line: null });
});

test("the status requires the scope events:read and takes no parameter", async () => {
  server = await openTestServer();
  expect((await server.call("GET", "/v1/collectors", { key: null })).status).toBe(401);
  const { secret } = await server.addKey({ scopes: ["rules:read"] });
  expect((await server.call("GET", "/v1/collectors", { key: secret })).status).toBe(403);
  expect((await server.call("GET", "/v1/collectors?x=1")).status).toBe(400);
  expect((await collectors()).exporters).toEqual([]);
});
