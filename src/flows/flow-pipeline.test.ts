import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ipfix, ipv4, record, set, template, v5, v9, type FieldSpec } from "../collectors/flows/packets.fixture.ts";
import { formatAddress } from "../lib/ip.ts";
import { createLog } from "../lib/log.ts";
import type { FlowRows } from "../model/flow.ts";
import {
  openFlowPipeline,
  type FlowPipeline,
  type FlowPipelineOptions,
  type FlowPipelineSettings,
} from "./flow-pipeline.ts";
import type { SummaryEvent } from "./host-summaries.ts";

// Real sockets and the real thread; rows and events for the store are collected here.

const SETTINGS: FlowPipelineSettings = {
  receiver: {
    ports: { netflow: 0, ipfix: 0, sflow: 0 },
    addresses: ["127.0.0.1"],
    receiveBufferBytes: 1024 * 1024,
    allowedExporters: [],
  },
  windows: { graceMs: 15_000, lateMaxMs: 3_600_000, rowsMax: 100_000 },
  ringBytes: 1024 * 1024,
  clockSkewMaxMs: 60_000,
  journalMs: 1000,
  summary: { peersMin: 20, portsMin: 20, bytesMin: 1e9 },
};

interface Taken {
  readonly batchId: string;
  readonly rows: FlowRows;
}

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

let folder: string;
let taken: Taken[];
let raised: SummaryEvent[];
const opened: FlowPipeline[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-flows-"));
  taken = [];
  raised = [];
});

afterEach(async () => {
  for (const flows of opened.splice(0)) await flows.close();
  await rm(folder, { recursive: true, force: true });
});

async function start(
  settings: Partial<FlowPipelineSettings> = {},
  options: Partial<FlowPipelineOptions> = {},
): Promise<FlowPipeline> {
  const flows = await openFlowPipeline({
    settings: { ...SETTINGS, ...settings },
    dataDir: folder,
    platform: "platform",
    registry: new Registry(),
    log: createLog({ level: "silent" }),
    deliver: async (rows, batchId) => void taken.push({ rows, batchId }),
    raise: async (events) => void raised.push(...events),
    ...options,
  });
  opened.push(flows);
  return flows;
}

async function portOf(flows: FlowPipeline, name = "netflow", transport = "udp"): Promise<number> {
  const { listeners } = await flows.status();
  return listeners.find((one) => one.name === name && one.transport === transport)!.port;
}

async function send(port: number, ...packets: Uint8Array[]): Promise<void> {
  const socket = createSocket("udp4");
  for (const packet of packets) {
    await new Promise<void>((resolve, reject) =>
      socket.send(packet, port, "127.0.0.1", (error) => (error ? reject(error) : resolve())),
    );
  }
  socket.close();
}

async function until(
  flows: FlowPipeline,
  holds: (status: Awaited<ReturnType<FlowPipeline["status"]>>) => boolean,
): Promise<void> {
  while (!holds(await flows.status())) await sleep(10);
}

const received = (count: number) => (status: Awaited<ReturnType<FlowPipeline["status"]>>) =>
  status.exporters.reduce((sum, { packets }) => sum + packets, 0) >= count && status.ring.usedBytes === 0;

const nowSeconds = () => Math.floor(Date.now() / 1000);

function rowsOf(): {
  src: string;
  dst: string;
  bytes: bigint;
  packets: bigint;
  windowStart: number;
  exporter: string;
}[] {
  return taken.flatMap(({ rows }) =>
    Array.from({ length: rows.count }, (_, row) => ({
      src: addressAt(rows.src, row),
      dst: addressAt(rows.dst, row),
      exporter: addressAt(rows.exporter, row),
      bytes: rows.bytes[row]!,
      packets: rows.packets[row]!,
      windowStart: rows.windowStart[row]!,
    })),
  );
}

function addressAt(bytes: Uint8Array, row: number): string {
  return formatAddress(
    bytes.subarray(row * 16, row * 16 + 16).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n),
  );
}

const FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [1, 8],
  [2, 4],
];

describe("from a packet to rows", () => {
  test("records of one tuple become one row, with bytes and packets added up", async () => {
    const flows = await start();
    const flow = { src: "10.0.0.1", dst: "10.0.0.2", srcPort: 40_000, dstPort: 443, bytes: 1000, packets: 2 };
    const seconds = nowSeconds();
    await send(await portOf(flows), v5([flow, flow], { seconds }), v5([flow], { seconds }));
    await until(flows, received(2));
    await flows.flush();
    expect(rowsOf()).toMatchObject([
      { src: "10.0.0.1", dst: "10.0.0.2", exporter: "127.0.0.1", bytes: 3000n, packets: 6n },
    ]);
    expect(rowsOf()[0]!.windowStart % 60_000).toBe(0);
  });

  test("every port accepts every protocol, and IPFIX over TCP arrives however the stream is split", async () => {
    const flows = await start();
    const values = [ipv4("10.0.0.3"), ipv4("10.0.0.4"), 2n ** 60n + 1n, 7];
    const message = ipfix([set(2, template(300, FIELDS)), set(300, record(FIELDS, values))], { seconds: nowSeconds() });
    const socket = connect(await portOf(flows, "ipfix", "tcp"), "127.0.0.1");
    await once(socket, "connect");
    await until(flows, ({ exporters }) => exporters.length === 1);
    expect((await flows.status()).exporters[0]).toMatchObject({
      state: "silent",
      summary: expect.stringContaining("connected but silent"),
    });
    for (const byte of message) socket.write(Uint8Array.of(byte));
    socket.write(message);
    await until(flows, received(2));
    socket.end();
    await send(await portOf(flows, "sflow"), v9([set(0, template(256, FIELDS)), set(256, record(FIELDS, values))]));
    await until(flows, received(3));
    await flows.flush();
    expect(rowsOf().map(({ bytes }) => bytes)).toContain(2n ** 61n + 2n);
    const [exporter] = (await flows.status()).exporters;
    expect(exporter).toMatchObject({ state: "receiving", records: 3, versions: [10, 9] });
  });

  test.skipIf(!hasIpv6)("over IPv6 and IPv4, each under its canonical address", async () => {
    const flows = await start({ receiver: { ...SETTINGS.receiver, addresses: ["127.0.0.1", "::1"] } });
    const { listeners } = await flows.status();
    const udp = listeners.filter(({ name, transport }) => name === "netflow" && transport === "udp");
    const packet = v5([{ src: "10.0.0.1", dst: "10.0.0.2" }], { seconds: nowSeconds() });
    await send(udp.find(({ address }) => address === "127.0.0.1")!.port, packet);
    const socket = createSocket("udp6");
    socket.send(packet, udp.find(({ address }) => address === "::1")!.port, "::1", () => socket.close());
    await until(flows, received(2));
    const { exporters } = await flows.status();
    expect(exporters.map(({ address }) => address).sort()).toEqual(["127.0.0.1", "::1"]);
    await flows.flush();
    expect(
      rowsOf()
        .map(({ exporter }) => exporter)
        .sort(),
    ).toEqual(["127.0.0.1", "::1"]);
  });

  test("metrics count packets, records and drops by reason", async () => {
    const registry = new Registry();
    const flows = await start({}, { registry });
    await send(
      await portOf(flows),
      v5([{ src: "10.0.0.1", dst: "10.0.0.2" }], { seconds: nowSeconds() }),
      Uint8Array.of(0, 7, 0, 0),
    );
    await until(flows, received(2));
    const metrics = await registry.metrics();
    expect(metrics).toContain("tocsin_flows_packets_total 2");
    expect(metrics).toContain("tocsin_flows_records_total 1");
    expect(metrics).toContain("tocsin_flows_open_tuples 1");
    expect(metrics).toContain('tocsin_flows_dropped_total{reason="unknown_version"} 1');
  });

  test("an exporter whose flows all ended too long ago is failing, not receiving", async () => {
    const flows = await start();
    const sent = { srcIp: "10.0.0.1", dstIp: "10.0.0.2", srcPort: 1, dstPort: 2, protocol: 6 };
    const counted = { bytes: 100, packets: 1, tcpFlags: 0 };
    const ended = (agoMs: number) => ({ firstMs: Date.now() - agoMs, lastMs: Date.now() - agoMs });
    const old = { ...sent, ...counted, ...ended(7_200_000) };
    await flows.add([old, old], "192.0.2.5");
    const [late] = (await flows.status()).exporters;
    expect(late).toMatchObject({
      state: "failing",
      summary:
        "flows are coming in, but all of them are dropped: a flow ended more than 3600 s before it was reported (flows.late_seconds)",
      records: 2,
      drops: { too_late: 2 },
    });
    await flows.add([old, { ...sent, ...counted, ...ended(1000) }], "192.0.2.5");
    const [mixed] = (await flows.status()).exporters;
    expect(mixed).toMatchObject({ state: "receiving", drops: { too_late: 3 } });
    expect(mixed!.summary).toContain(
      "flows are coming in, but some of them are dropped: a flow ended more than 3600 s",
    );
    await flows.add([{ ...sent, ...counted, ...ended(1000) }], "192.0.2.6");
    expect((await flows.status()).exporters[1]).toMatchObject({ state: "receiving", summary: "flows are coming in" });
  });

  test.skipIf(process.platform !== "linux")("metrics count packets that the system drops", async () => {
    const registry = new Registry();
    // Smaller than the burst, even if the system grants more than was requested.
    const receiver = { ...SETTINGS.receiver, receiveBufferBytes: 65_536 };
    const flows = await start({ receiver }, { registry });
    const port = await portOf(flows);
    const socket = createSocket("udp4");
    let sent = 0;
    // All at once, so that the reader gets no turn in between.
    const sending = Array.from({ length: 4000 }, () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.send(new Uint8Array(1400), port, "127.0.0.1", (error) => {
        if (!error) sent++;
        resolve();
      });
      return promise;
    });
    await Promise.all(sending);
    await until(flows, ({ listeners }) => listeners.some(({ systemDrops }) => systemDrops! > 0));
    await until(flows, ({ listeners }) => {
      const { packets, systemDrops } = listeners.find(({ name }) => name === "netflow")!;
      return packets + (systemDrops ?? 0) === sent;
    });
    socket.close();
    expect(await registry.metrics()).toMatch(/tocsin_flows_system_drops_total [1-9]/);
  });

  test("a stream that is not IPFIX is closed and counted with its reason", async () => {
    const flows = await start();
    const socket = connect(await portOf(flows, "ipfix", "tcp"), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    await once(socket, "close");
    await until(flows, received(1));
    const [exporter] = (await flows.status()).exporters;
    expect(exporter!.drops.unknown_version).toBe(1);
  });

  test("only allowed exporters are accepted, and the others are listed", async () => {
    const receiver = { ...SETTINGS.receiver, allowedExporters: ["10.0.0.0/8", "2001:db8::/32"] };
    const flows = await start({ receiver });
    await send(await portOf(flows), v5([{ src: "10.0.0.1", dst: "10.0.0.2" }]));
    await until(flows, ({ drops }) => drops.not_allowed === 1);
    const status = await flows.status();
    expect(status.exporters).toEqual([]);
    expect(status.refused).toMatchObject([{ address: "127.0.0.1", packets: 1 }]);
  });

  test("a port in use makes the start fail with its name, and no socket stays open", async () => {
    const flows = await start();
    const netflow = await portOf(flows);
    const receiver = { ...SETTINGS.receiver, ports: { netflow: null, ipfix: null, sflow: netflow } };
    const second = start({ receiver });
    await expect(second).rejects.toThrow(
      new RegExp(`UDP port ${netflow} on 127.0.0.1, for sflow \\(setting sflow_port`),
    );
  });

  test("a full ring drops and counts packets, and continues when it has space", async () => {
    const flows = await start({ ringBytes: 4096 });
    const port = await portOf(flows);
    const full = Array.from({ length: 30 }, (_, index) => ({ src: `10.0.1.${index}`, dst: "10.0.0.2" }));
    for (let round = 0; round < 50; round++) {
      await Promise.all(Array.from({ length: 20 }, () => send(port, v5(full, { seconds: nowSeconds() }))));
    }
    await until(flows, ({ listeners }) => listeners[0]!.packets >= 900);
    await until(flows, ({ ring }) => ring.usedBytes === 0);
    const { listeners, drops, exporters } = await flows.status();
    expect(exporters[0]!.packets + drops.ring_full).toBe(listeners[0]!.packets);
    await flows.flush();
    const packets = rowsOf().reduce((sum, row) => sum + row.packets, 0n);
    expect(packets).toBe(BigInt(exporters[0]!.packets * 30));
  });
});

describe("nothing is lost or counted twice", () => {
  const flow = { src: "10.0.0.1", dst: "10.0.0.2", bytes: 10, packets: 1 };

  test("a stop stores open windows", async () => {
    const flows = await start();
    await send(await portOf(flows), v5([flow], { seconds: nowSeconds() }));
    await until(flows, received(1));
    await opened.pop()!.close();
    expect(rowsOf()).toMatchObject([{ bytes: 10n }]);
    expect((await readdir(join(folder, "flow-windows"))).filter((name) => name.endsWith(".window"))).toEqual([]);
  });

  test("templates survive a restart: a gateway that does not resend them loses nothing", async () => {
    const values = [ipv4("10.0.0.3"), ipv4("10.0.0.4"), 5n, 1];
    const data = () => v9([set(256, record(FIELDS, values))], { seconds: nowSeconds() });
    const gateway = createSocket("udp4");
    const sendOne = async (flows: FlowPipeline, packet: Uint8Array) => {
      const port = await portOf(flows);
      await new Promise((resolve) => gateway.send(packet, port, "127.0.0.1", resolve));
    };
    const first = await start();
    await sendOne(first, v9([set(0, template(256, FIELDS)), set(256, record(FIELDS, values))]));
    await until(first, received(1));
    await opened.pop()!.close();
    const second = await start();
    await sendOne(second, data());
    await until(second, received(1));
    expect((await second.status()).exporters[0]).toMatchObject({ records: 1, waitingSets: 0, state: "receiving" });
    await opened.pop()!.close();

    await writeFile(join(folder, "flow-templates"), "damaged");
    const warnings: string[] = [];
    const log = createLog({ level: "warn", destination: { write: (line) => void warnings.push(line) } });
    const third = await start({}, { log });
    await sendOne(third, data());
    await until(third, received(1));
    const { exporters, drops } = await third.status();
    expect(exporters[0]).toMatchObject({ records: 0, waitingSets: 1, state: "no_template" });
    expect(drops.template_file_damaged).toBe(1);
    expect(warnings.join("")).toContain("flow-templates is ignored");
    gateway.close();
  });

  test("failed journal writes are counted and do not prevent storing", async () => {
    const flows = await start();
    const port = await portOf(flows);
    await send(port, v5([flow], { seconds: nowSeconds() }));
    await until(flows, received(1));
    await flows.flush();
    // Retries while the thread still renames the files of stored windows.
    await rm(join(folder, "flow-windows"), { recursive: true, maxRetries: 10 });
    await send(port, v5([flow], { seconds: nowSeconds() }));
    await until(flows, received(2));
    await until(flows, ({ windows }) => windows.journalFailures > 0);
    await flows.flush();
    expect(rowsOf()).toMatchObject([{ bytes: 10n }, { bytes: 10n }]);
  });

  test("windows that the store refuses until the stop are delivered after the next start, under the same ids", async () => {
    const offered: string[] = [];
    const refuse = async (_: FlowRows, batchId: string) => {
      offered.push(batchId);
      throw new Error("the store is full");
    };
    const summary = { peersMin: 1, portsMin: 1, bytesMin: 1 };
    const flows = await start({ summary }, { deliver: refuse });
    await send(await portOf(flows), v5([flow], { seconds: nowSeconds() }));
    await until(flows, received(1));
    await opened.pop()!.close();
    expect(offered).toHaveLength(1);
    const before = raised.splice(0);
    expect(before).toHaveLength(1);
    expect(taken).toEqual([]);
    const again = await start({ summary });
    await until(again, ({ windows }) => windows.writtenRows === 1);
    expect(raised, "the same summaries, under the same tokens").toEqual(before);
    expect(rowsOf()).toMatchObject([{ bytes: 10n, exporter: "127.0.0.1" }]);
    expect(taken[0]!.batchId).toBe(offered[0]);
    await opened.pop()!.close();
    expect((await readdir(join(folder, "flow-windows"))).filter((name) => name.endsWith(".window"))).toEqual([]);
  });

  test("a store that refuses for a while receives each window once", async () => {
    let refusals = 0;
    const deliver = async (rows: FlowRows, batchId: string) => {
      if (refusals++ < 1) throw new Error("not now");
      taken.push({ rows, batchId });
    };
    const flows = await start({}, { deliver });
    await send(await portOf(flows), v5([flow], { seconds: nowSeconds() }));
    await until(flows, received(1));
    await flows.flush();
    expect(rowsOf()).toMatchObject([{ bytes: 10n }]);
  });
});

test("a host that contacts many ports is summarised once per window, and a server that answers is not", async () => {
  const flows = await start();
  const scan = Array.from({ length: 25 }, (_, port) => ({
    src: "10.0.0.66",
    dst: "10.0.0.2",
    srcPort: 51_000,
    dstPort: 1 + port,
    flags: 2,
  }));
  const answers = scan.map(({ src, dst, srcPort, dstPort }) => ({
    src: dst,
    dst: src,
    srcPort: dstPort,
    dstPort: srcPort,
    flags: 20,
  }));
  await send(await portOf(flows), v5(scan, { seconds: nowSeconds() }), v5(answers, { seconds: nowSeconds() }));
  await until(flows, received(2));
  await flows.flush();
  expect(raised).toHaveLength(1);
  expect(raised[0]!.draft).toMatchObject({
    type: "flow_summary",
    class: "network",
    source: "platform_network",
    raw: { src_ip: "10.0.0.66", ports: 25, peers: 1, flows: 25, packets: 25, exporter_ip: "127.0.0.1" },
  });
});
