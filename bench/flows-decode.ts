import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FlowDecoder } from "../src/collectors/flows/flow-decoder.ts";
import type { Measurement } from "./figures.ts";
import { packetSets, type PacketSet } from "./flow-packets.ts";

// Records that one core decodes per second, in CPU time. The baselines are a naive decoder, with one object per record, and
// nfcapd, whose time includes receiving and writing.

const RECORDS = 3_000_000;
const PLAIN_RECORDS = 500_000;
const NFCAPD_RECORDS = 400_000;
const PER_SECOND_MIN = 1_000_000;
const ROUNDS = 3;
const TICKS_PER_SECOND = 100;

export async function flowsDecode(): Promise<readonly Measurement[]> {
  const measurements: Measurement[] = [];
  for (const packets of packetSets(Date.now())) {
    const ours = best(() => decodeRate(packets));
    const plain = best(() => plainRate(packets));
    const nfcapd = packets.name === "sFlow v5" ? undefined : await nfcapdRate(packets);
    const others =
      nfcapd === undefined ? "nfcapd is not installed" : `nfcapd ${perSecond(nfcapd)}, including receiving and writing`;
    measurements.push({
      name: `decode ${packets.name}, one core`,
      result: `${perSecond(ours)}${nfcapd === undefined ? "" : `, ${(ours / nfcapd).toFixed(1)} times nfcapd`}`,
      baseline: `naive ${perSecond(plain)}; ${others}`,
      ratio: ours / plain,
      target: packets.name === "sFlow v5" ? "none" : `at least ${perSecond(PER_SECOND_MIN)}`,
      met: packets.name === "sFlow v5" || ours >= PER_SECOND_MIN,
      values: { recordsPerSecond: ours, plain, ...(nfcapd !== undefined && { nfcapd }) },
    });
  }
  return measurements;
}

const perSecond = (rate: number) => `${(rate / 1e6).toFixed(2)} million/s`;

const best = (measure: () => number) => Math.max(...Array.from({ length: ROUNDS }, measure));

/** CPU time of this thread so far. */
export function threadSeconds(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1e6;
}

function decodeRate({ templates, packets, recordsPerPacket }: PacketSet): number {
  let records = 0;
  const decoder = new FlowDecoder({ clockSkewMaxMs: 60_000, take: (batch) => void (records += batch.count) });
  const views = packets.map((packet) => new DataView(packet.buffer, packet.byteOffset, packet.length));
  const nowMs = Date.now();
  const decode = (view: DataView) => decoder.decode(view, 0, view.byteLength, "192.0.2.1", nowMs);
  for (const packet of templates) decode(new DataView(packet.buffer));
  const startedAt = threadSeconds();
  for (let index = 0; index * recordsPerPacket < RECORDS; index++) decode(views[index % views.length]!);
  decoder.flush();
  const seconds = threadSeconds() - startedAt;
  if (records < RECORDS) throw new Error(`only ${records} of ${RECORDS} records were decoded`);
  return records / seconds;
}

function plainRate({ packets, recordsPerPacket, plain }: PacketSet): number {
  const buffers = packets.map((packet) => Buffer.from(packet));
  let records = 0;
  const startedAt = threadSeconds();
  for (let index = 0; index * recordsPerPacket < PLAIN_RECORDS; index++)
    records += plain(buffers[index % buffers.length]!).length;
  return records / (threadSeconds() - startedAt);
}

async function nfcapdRate({ templates, packets, recordsPerPacket }: PacketSet): Promise<number | undefined> {
  const path = ["/usr/bin/nfcapd", "/usr/local/bin/nfcapd"].find((one) => existsSync(one));
  if (!path) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "tocsin-nfcapd-"));
  const socket = createSocket("udp4");
  const port = 20_000 + (process.pid % 20_000);
  const child = spawn(path, ["-b", "127.0.0.1", "-p", String(port), "-l", folder, "-S", "0", "-B", "8000000"], {
    stdio: "ignore",
  });
  const ended = once(child, "exit");
  await sleep(1500);
  const send = (packet: Uint8Array) => new Promise((resolve) => socket.send(packet, port, "127.0.0.1", resolve));
  for (const packet of templates) await send(packet);
  const before = processSeconds(child.pid!);
  for (let index = 0; index * recordsPerPacket < NFCAPD_RECORDS; index++) {
    await send(packets[index % packets.length]!);
    // nfcapd must keep up: it does not decode packets that it drops.
    if (index % 64 === 0) await sleep(2);
  }
  await sleep(1000);
  const seconds = processSeconds(child.pid!) - before;
  child.kill("SIGTERM");
  await ended;
  socket.close();
  const output = execFileSync(path.replace("nfcapd", "nfdump"), ["-R", folder, "-I"], { encoding: "utf8" });
  await rm(folder, { recursive: true, force: true });
  return Number(/^Flows: (\d+)/m.exec(output)![1]) / seconds;
}

function processSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
