import { spawn } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  concat,
  ethernet,
  ipv4Packet,
  ipv6Packet,
  tcpHeader,
  udpHeader,
} from "../../src/collectors/flows/packets.fixture.ts";
import { pcap, type CapturedFrame } from "../pcap.ts";
import { makeKey, startServer, type ServerProcess } from "../server-process.ts";
import { authorized } from "../tocsin.ts";

// Third-party exporters send every datagram to the running service and to a third-party collector; both must count the same.
// Without these programs the file says so; .ci/run installs them.

/** pmacctd adds the frame checksum to the length of every packet. */
const CHECKSUM_BYTES = 4;
const NEEDED = ["softflowd", "pmacctd", "sfacctd", "nfcapd", "nfdump"];
const places = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/bin", "/usr/local/sbin"];
const pathOf = (name: string) => places.map((place) => join(place, name)).find((path) => existsSync(path));
const missing = NEEDED.filter((name) => pathOf(name) === undefined);

interface Totals {
  readonly packets: number;
  readonly bytes: number;
}

/** Conversations of IPv4 and IPv6, over TCP, UDP and ICMP. */
function traffic(): CapturedFrame[] {
  const startMs = Math.floor(Date.now() / 1000) * 1000 - 20_000;
  const six = (last: number) => Uint8Array.of(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);
  const udp = (src: number, dst: number, length: number) => {
    const header = udpHeader(src, dst);
    new DataView(header.buffer).setUint16(4, 8 + length);
    return concat(header, new Uint8Array(length));
  };
  const frames: CapturedFrame[] = [];
  for (let index = 0; index < 40; index++) {
    const [client, server] = [`10.1.0.${1 + (index % 20)}`, "10.9.9.9"];
    const port = 30_000 + index;
    for (let step = 0; step < 4; step++) {
      const flags = step === 0 ? 2 : step === 3 ? 17 : 16;
      const there = concat(tcpHeader(port, 443, flags), new Uint8Array(step * 100));
      const back = concat(tcpHeader(443, port, 18), new Uint8Array(step * 300));
      frames.push({ atMs: startMs + index * 20 + step, frame: ethernet(ipv4Packet(client, server, 6, there)) });
      frames.push({ atMs: startMs + index * 20 + step, frame: ethernet(ipv4Packet(server, client, 6, back)) });
    }
    frames.push({
      atMs: startMs + 1000 + index,
      frame: ethernet(ipv4Packet(client, "10.9.9.53", 17, udp(port, 53, 40))),
    });
    frames.push({
      atMs: startMs + 2000 + index,
      frame: ethernet(ipv6Packet(six(index), six(200), 17, udp(port, 53, 60))),
    });
  }
  const ping = concat(Uint8Array.of(8, 0, 0, 0), new Uint8Array(60));
  for (let index = 0; index < 10; index++) {
    frames.push({ atMs: startMs + 3000 + index, frame: ethernet(ipv4Packet("10.1.0.7", `10.2.0.${index}`, 1, ping)) });
  }
  return frames;
}

let folder: string;
let capture: string;
let server: ServerProcess;
let key: string;
let ports: Record<string, number>;
/** Totals of the reference collector, by the address under which the service knows the exporter. */
const expected = new Map<string, Totals>();

interface Collectors {
  readonly listeners: readonly { readonly name: string; readonly transport: string; readonly port: number }[];
  readonly exporters: readonly { readonly address: string; readonly packets: number; readonly last_error: unknown }[];
}

async function ask<Answer>(path: string): Promise<Answer> {
  const answer = await fetch(server.address + path, authorized(key));
  expect(answer.status).toBe(200);
  return (await answer.json()) as Answer;
}

const collectors = async () => (await ask<{ data: Collectors }>("/v1/collectors")).data;

async function start(): Promise<void> {
  server = await startServer({
    dataDir: join(folder, "data"),
    variables: { TOCSIN_NETFLOW_PORT: "0", TOCSIN_SFLOW_PORT: "0", TOCSIN_FLOWS_ADDRESSES: "127.0.0.1" },
  });
}

async function run(name: string, args: readonly string[], codes: readonly (number | null)[] = [0]): Promise<string> {
  const child = spawn(pathOf(name)!, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const [code] = (await once(child, "exit")) as [number | null];
  if (!codes.includes(code)) throw new Error(`${name} ended with ${code}:\n${output}`);
  return output;
}

async function bound(address: string): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, address);
  await once(socket, "listening");
  return socket;
}

async function freePort(): Promise<number> {
  const socket = await bound("127.0.0.1");
  const { port } = socket.address();
  socket.close();
  return port;
}

/** Forwards each datagram to both, from an address that identifies this export. */
async function tee(
  address: string,
  targets: readonly number[],
): Promise<{ port: number; close(): void; sent(): number }> {
  const socket = await bound(address);
  let sent = 0;
  socket.on("message", (payload) => {
    sent++;
    for (const port of targets) socket.send(payload, port, "127.0.0.1");
  });
  return { port: socket.address().port, close: () => void socket.close(), sent: () => sent };
}

/** True if the kernel lists a listener on the port. */
async function listens(port: number): Promise<boolean> {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const lists = await Promise.all(
    ["/proc/net/udp", "/proc/net/udp6"].map((path) => readFile(path, "utf8").catch(() => "")),
  );
  return new RegExp(`^ *\\d+: [0-9A-F]+:${hex} `, "m").test(lists.join("\n"));
}

/** Runs the reference collector during the export and records its totals. */
async function withReference(
  port: number,
  command: readonly string[],
  signal: NodeJS.Signals,
  exporting: () => Promise<void>,
): Promise<void> {
  const child = spawn(pathOf(command[0]!)!, command.slice(1), { stdio: "ignore" });
  const ended = once(child, "exit");
  try {
    while (!(await listens(port))) await sleep(50);
    // A collector that listens but is not yet ready loses the templates.
    await sleep(1000);
    await exporting();
    await sleep(1000);
  } finally {
    child.kill(signal);
    await ended;
  }
}

async function throughService(
  address: string,
  name: string,
  other: number,
  send: (port: number, at: string) => Promise<unknown>,
) {
  const both = await tee(address, [ports[name]!, other]);
  await send(both.port, address);
  while (!(await collectors()).exporters.some((one) => one.address === address && one.packets >= both.sent()))
    await sleep(50);
  both.close();
}

async function nfcapdTotals(address: string, send: (port: number, at: string) => Promise<unknown>): Promise<Totals> {
  const written = join(folder, address);
  await mkdir(written);
  const port = await freePort();
  const command = ["nfcapd", "-b", "127.0.0.1", "-p", String(port), "-l", written, "-S", "0"];
  await withReference(port, command, "SIGTERM", () => throughService(address, "netflow", port, send));
  const told = await run("nfdump", ["-R", written, "-I"]);
  const read = (name: string) => Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(told)![1]);
  return { packets: read("Packets"), bytes: read("Bytes") };
}

async function sfacctdTotals(address: string, send: (port: number, at: string) => Promise<unknown>): Promise<Totals> {
  const port = await freePort();
  const [config, output] = [join(folder, "sfacctd.conf"), join(folder, "sfacctd.csv")];
  const lines = [
    "daemonize: false",
    "sfacctd_ip: 127.0.0.1",
    `sfacctd_port: ${port}`,
    "plugins: print[p]",
    "aggregate[p]: src_host, dst_host, proto",
    "print_output[p]: csv",
    `print_output_file[p]: ${output}`,
    "print_output_file_append[p]: true",
    `print_refresh_time[p]: ${24 * 60 * 60}`,
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  await withReference(port, ["sfacctd", "-f", config], "SIGINT", () => throughService(address, "sflow", port, send));
  // A separate process writes the file and may end later.
  let written = "";
  for (let before = ""; written === "" || written !== before; await sleep(500)) {
    before = written;
    written = existsSync(output) ? await readFile(output, "utf8") : "";
  }
  // The same rows may be written twice.
  const rows = new Map<string, readonly [number, number]>();
  for (const line of written.split("\n")) {
    const [from, to, protocol, packets, bytes] = line.split(",");
    if (Number(packets) > 0) rows.set(`${from} ${to} ${protocol}`, [Number(packets), Number(bytes)]);
  }
  const found = [...rows.values()];
  return {
    packets: found.reduce((sum, [packets]) => sum + packets, 0),
    bytes: found.reduce((sum, [, bytes]) => sum + bytes, 0),
  };
}

async function pmacctd(lines: readonly string[]): Promise<void> {
  const config = join(folder, "pmacctd.conf");
  await writeFile(config, `${["daemonize: false", `pcap_savefile: ${capture}`, ...lines].join("\n")}\n`);
  // pmacctd's processes end in no particular order, which it sometimes reports as a failure.
  await run("pmacctd", ["-f", config], [0, 1]);
}

async function storedTotals(exporter: string): Promise<Totals> {
  const { total, flows } = await ask<{ total: number; flows: Totals[] }>(
    `/api/v1/flows?exporter=${exporter}&limit=1000`,
  );
  expect(flows).toHaveLength(total);
  return {
    packets: flows.reduce((sum, { packets }) => sum + packets, 0),
    bytes: flows.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

describe.skipIf(missing.length > 0)("third-party exporters and collectors", () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tocsin-exporters-"));
    capture = join(folder, "traffic.pcap");
    await writeFile(capture, pcap(traffic()));
    key = await makeKey(join(folder, "data"));
    await start();
    ports = Object.fromEntries((await collectors()).listeners.map(({ name, port }) => [name, port]));
  });

  afterAll(async () => {
    await server?.end();
    await rm(folder, { recursive: true, force: true });
  });

  test.each([5, 9, 10])("softflowd sends version %i; nfcapd counts the same", async (version) => {
    const address = `127.0.1.${version}`;
    const found = await nfcapdTotals(address, (port, at) =>
      run("softflowd", ["-r", capture, "-n", `${at}:${port}`, "-v", String(version), "-a", "-d"]),
    );
    expect(found.packets).toBeGreaterThan(100);
    expected.set(address, found);
  });

  test.each([5, 9, 10])("pmacctd sends version %i; nfcapd counts the same", async (version) => {
    const address = `127.0.2.${version}`;
    const found = await nfcapdTotals(address, (port, at) =>
      pmacctd([
        "plugins: nfprobe[n]",
        `nfprobe_version[n]: ${version}`,
        `nfprobe_receiver[n]: ${at}:${port}`,
        "aggregate[n]: src_host, dst_host, src_port, dst_port, proto, tcpflags",
      ]),
    );
    expect(found.packets).toBeGreaterThan(100);
    expected.set(address, found);
  });

  test("pmacctd sends sFlow; sfacctd counts the same", async () => {
    const address = "127.0.3.1";
    const found = await sfacctdTotals(address, (port, at) =>
      pmacctd([
        "plugins: sfprobe[s]",
        "sampling_rate[s]: 1",
        `sfprobe_receiver[s]: ${at}:${port}`,
        "sfprobe_agentip[s]: 127.0.0.1",
      ]),
    );
    expect(found.packets).toBeGreaterThan(100);
    // sfacctd counts frames as reported; the service counts IP packets, as for NetFlow.
    expected.set(address, { ...found, bytes: found.bytes - found.packets * CHECKSUM_BYTES });
  });

  test("after a stop, which stores open windows, the service has the totals of each collector", async () => {
    expect((await collectors()).exporters.map(({ last_error }) => last_error)).toEqual([...expected].map(() => null));
    expect(await server.end()).toBe(0);
    await start();
    const stored = new Map<string, Totals>();
    for (const exporter of expected.keys()) stored.set(exporter, await storedTotals(exporter));
    expect(stored).toEqual(expected);
  });
});

test.skipIf(missing.length === 0)(
  `skipped: ${missing.join(", ")} not installed (softflowd, pmacct, nfdump of Debian)`,
  () => {
    expect(missing).not.toEqual([]);
  },
);
