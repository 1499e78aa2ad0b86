import { createSocket } from "node:dgram";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";
import { ipv4, record, set, template, v9, type FieldSpec } from "../collectors/packets.fixture.ts";

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

async function send(port: number, packet: Uint8Array): Promise<void> {
  const socket = createSocket("udp4");
  await new Promise<void>((resolve, reject) =>
    socket.send(packet, port, "127.0.0.1", (error) => (error ? reject(error) : resolve())),
  );
  socket.close();
}

/** Packets are taken in beside the requests. */
async function exporterWhen(holds: (exporter: any) => boolean): Promise<any> {
  for (;;) {
    const [exporter] = (await collectors()).exporters;
    if (exporter && holds(exporter)) return exporter;
    await sleep(20);
  }
}

test("collectors tell of each exporter what a person needs to find the fault", async () => {
  const loaded = loadSettings({ environment: {}, workingFolder: "/" });
  if ("faults" in loaded) throw new Error("the defaults have faults");
  const flows = { ...loaded.settings.flows, addresses: ["127.0.0.1"] };
  server = await openTestServer({ settings: { netflowPort: 0, flows } });
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

  await send(listener.port, v9([set(0, template(260, FIELDS))]));
  const fine = await exporterWhen(({ records }) => records === 1);
  expect(fine).toMatchObject({ packets: 2, templates: 1, missing_templates: [], waiting_sets: 0 });

  await send(listener.port, v9([DATA]).subarray(0, 25));
  const spoiled = await exporterWhen(({ drops }) => drops.truncated === 1);
  expect(spoiled.last_error.message).not.toBe("");
  expect(Date.parse(spoiled.last_error.at)).toBeGreaterThan(Date.now() - 60_000);
});

test("they are for keys that may read events, and take no parameter", async () => {
  server = await openTestServer();
  expect((await server.call("GET", "/v1/collectors", { key: null })).status).toBe(401);
  const { secret } = server.addKey({ scopes: ["rules:read"] });
  expect((await server.call("GET", "/v1/collectors", { key: secret })).status).toBe(403);
  expect((await server.call("GET", "/v1/collectors?x=1")).status).toBe(400);
  expect((await collectors()).exporters).toEqual([]);
});
