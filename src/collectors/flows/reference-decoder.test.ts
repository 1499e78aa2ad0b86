import { existsSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { PacketReader, type DecodedFlow } from "./decoded-flows.fixture.ts";

// Packets of real exporters, with the results of other decoders. They are kept outside the project; without them these tests
// are skipped, and the other tests of this folder cover each protocol.

const root = new URL("../../../../shared/data/flows/", import.meta.url);
const isAvailable = existsSync(new URL("index.json", root));

interface Facts {
  readonly src?: string;
  readonly dst?: string;
  readonly srcPort?: number;
  readonly dstPort?: number;
  readonly protocol?: number;
  readonly bytes?: bigint;
  readonly packets?: bigint;
  readonly tcpFlags?: number;
  readonly firstSeen?: number;
  readonly lastSeen?: number;
}

interface ReferenceSet {
  readonly name: string;
  readonly feed_in_order: readonly string[];
  readonly expected: {
    readonly events?: number | null;
    readonly flow_events?: number;
    readonly options_events?: number;
    readonly sum_network_bytes?: number;
    readonly sum_network_packets?: number;
    readonly first_flow?: Readonly<Record<string, string | number>>;
    readonly last_flow?: Readonly<Record<string, string | number>>;
    readonly first_full_event?: Readonly<Record<string, string | number>>;
    readonly asserts?: readonly string[];
  };
}

const sets: readonly ReferenceSet[] = isAvailable
  ? (JSON.parse(readFileSync(new URL("index.json", root), "utf8")) as { sets: ReferenceSet[] }).sets
  : [];

/** Intended differences from a reference. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  "Netflow 9 invalid 01": "only its record count is wrong, as always with softflowd; lengths decide instead",
};

function read(set: ReferenceSet): PacketReader {
  const reader = new PacketReader();
  for (const file of set.feed_in_order) for (const packet of packetsOf(file)) reader.read(packet);
  return reader;
}

function* packetsOf(file: string): Generator<Uint8Array> {
  const bytes = readFileSync(new URL(file, root));
  if (file.endsWith(".lp")) {
    for (let at = 0; at < bytes.length;) {
      const length = bytes.readUInt32BE(at);
      yield bytes.subarray(at + 4, at + 4 + length);
      at += 4 + length;
    }
  } else if (file.endsWith(".pcap")) {
    for (let at = 24; at + 16 <= bytes.length;) {
      const length = bytes.readUInt32LE(at + 8);
      const frame = bytes.subarray(at + 16, at + 16 + length);
      const udp = frame[14]! >> 4 === 4 ? 14 + (frame[14]! & 15) * 4 : 54;
      yield frame.subarray(udp + 8);
      at += 16 + length;
    }
  } else yield bytes;
}

const sum = (flows: readonly DecodedFlow[], of: (flow: DecodedFlow) => bigint) =>
  flows.reduce((all, flow) => all + of(flow), 0n);
const bytesOf = (flows: readonly DecodedFlow[]) => sum(flows, ({ bytes }) => bytes);
const packetsSum = (flows: readonly DecodedFlow[]) => sum(flows, ({ packets }) => packets);

const PROTOCOLS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, icmp: 1, "ipv6-icmp": 58, igmp: 2 };

/** Field names of the references, in both of their vocabularies. */
const NAMES: Readonly<Record<string, keyof Facts>> = {
  "source.ip": "src",
  "destination.ip": "dst",
  "source.port": "srcPort",
  "destination.port": "dstPort",
  ipv4_src_addr: "src",
  ipv4_dst_addr: "dst",
  ipv6_src_addr: "src",
  ipv6_dst_addr: "dst",
  sourceIPv4Address: "src",
  destinationIPv4Address: "dst",
  l4_src_port: "srcPort",
  l4_dst_port: "dstPort",
  sourceTransportPort: "srcPort",
  destinationTransportPort: "dstPort",
  protocol: "protocol",
  protocolIdentifier: "protocol",
  tcp_flags: "tcpFlags",
  tcpControlBits: "tcpFlags",
};

function factsOf(reference: Readonly<Record<string, string | number>>, rate = 1n): Facts {
  const facts: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(reference)) {
    const ours = NAMES[name];
    if (ours && value !== "::") facts[ours] = value;
    if (["network.bytes", "in_bytes", "octetDeltaCount"].includes(name)) facts["bytes"] = BigInt(value) * rate;
    if (["network.packets", "in_pkts", "packetDeltaCount"].includes(name)) facts["packets"] = BigInt(value) * rate;
    if (name === "network.transport") {
      const protocol = PROTOCOLS[value as string] ?? Number(/\d+/.exec(value as string)?.[0] ?? Number.NaN);
      if (!Number.isNaN(protocol)) facts["protocol"] = protocol;
    }
    // One of the two references computes times by uptime a second later than the other, nfdump and Tocsin.
    if (["event.start", "flowStartMilliseconds"].includes(name)) facts["firstSeen"] = timeOf(value);
    if (["event.end", "flowEndMilliseconds"].includes(name)) facts["lastSeen"] = timeOf(value);
  }
  return facts as Facts;
}

const isReverse = (flow: DecodedFlow, other: DecodedFlow) =>
  flow.src === other.dst && flow.dst === other.src && flow.srcPort === other.dstPort && flow.dstPort === other.srcPort;

const timeOf = (value: string | number) => Math.floor(Date.parse(String(value).replace(/(\.\d{3})\d*/, "$1")));

describe.skipIf(!isAvailable)("packets of real exporters decode as in other decoders", () => {
  test.each(sets.filter(({ expected }) => expected.flow_events !== undefined))("$name", (set) => {
    const { expected } = set;
    const reader = read(set);
    const { records, optionRecords } = reader.status();
    if (set.name.replace("[beats golden] ", "") in DIFFERENCES) return;
    expect(records).toBe(expected.flow_events);
    expect(optionRecords).toBe(expected.options_events);
    if (expected.sum_network_bytes === undefined) return;
    expect(bytesOf(reader.flows)).toBe(BigInt(expected.sum_network_bytes));
    expect(packetsSum(reader.flows)).toBe(BigInt(expected.sum_network_packets!));
    for (const reference of [expected.first_flow!, expected.last_flow!]) {
      const { bytes, packets, ...facts } = factsOf(reference);
      const found = reader.flows.filter((flow) =>
        Object.entries(facts).every(([name, value]) => flow[name as keyof DecodedFlow] === value),
      );
      // A bidirectional record is one flow in the reference and two consecutive flows here, with the same total.
      const either = found.flatMap((flow) => {
        const back = reader.flows[reader.flows.indexOf(flow) + 1];
        return back && isReverse(flow, back) ? [[flow], [flow, back]] : [[flow]];
      });
      if (bytes !== undefined) expect(either.map((flows) => bytesOf(flows))).toContain(bytes);
      if (packets !== undefined) expect(either.map((flows) => packetsSum(flows))).toContain(packets);
      expect(found).not.toEqual([]);
    }
  });

  test.each(sets.filter(({ expected }) => expected.asserts !== undefined))("$name", (set) => {
    const { events, first_full_event: reference, asserts } = set.expected;
    const reader = read(set);
    const { records, optionRecords, samplingRate } = reader.status();
    if (set.name in DIFFERENCES) return;
    if (events !== undefined && events !== null && set.name !== "IPFIX") expect(records + optionRecords).toBe(events);
    if (reference && (reference["in_bytes"] ?? reference["octetDeltaCount"]) !== undefined) {
      expect(reader.flows).toContainEqual(expect.objectContaining(factsOf(reference, BigInt(samplingRate))));
    }
    if (optionRecords > 0 || reader.flows.length !== records) return;
    for (const line of asserts!) {
      const [, index, name, value] =
        /decode\[(\d+)\]\.get\("\[netflow\]\[(\w+)\]"\) == ["']?([^"']+?)["']?$/.exec(line) ?? [];
      const ours = NAMES[name ?? ""];
      if (ours) expect(String(reader.flows[Number(index)]![ours])).toBe(value);
    }
  });
});

describe.skipIf(!isAvailable)("exports of softflowd and pmacct decode as in nfdump and sfacctd", () => {
  const readFile = (name: string) => {
    const set = sets.find((one) => one.name === `generated ${name}`)!;
    return read(set).flows;
  };

  test("softflowd, NetFlow v5", () => {
    const flows = readFile("softflowd_a_v5.lp");
    expect(flows).toHaveLength(340);
    expect([bytesOf(flows), packetsSum(flows)]).toEqual([263_588n, 1908n]);
  });

  test.each([
    "softflowd_a_v9.lp",
    "softflowd_a_v10.lp",
    "softflowd_abs_milli_v10.lp",
    "softflowd_abs_sec_v10.lp",
    "softflowd_abs_micro_v10.lp",
    "softflowd_abs_nano_v10.lp",
  ])("%s: every time format gives the same flows at the same times", (name) => {
    const flows = readFile(name);
    expect(flows).toHaveLength(349);
    expect([bytesOf(flows), packetsSum(flows)]).toEqual([278_772n, 1969n]);
    const of = (protocol: number) => flows.filter((flow) => flow.protocol === protocol);
    expect([of(6).length, packetsSum(of(6)), bytesOf(of(6))]).toEqual([145, 1407n, 192_278n]);
    expect([of(17).length, packetsSum(of(17)), bytesOf(of(17))]).toEqual([188, 528n, 84_222n]);
    // Its uptime clock and its absolute clock differ by a fraction of a second.
    const first = Math.min(...flows.map(({ firstSeen }) => firstSeen));
    const last = Math.max(...flows.map(({ lastSeen }) => lastSeen));
    expect(Math.abs(first - 1_520_628_555_500)).toBeLessThan(1500);
    expect(Math.abs(last - 1_520_629_198_500)).toBeLessThan(1500);
  });

  test("softflowd, biflows: both directions add up to the v9 totals", () => {
    const flows = readFile("softflowd_biflow_v10.lp");
    expect([bytesOf(flows), packetsSum(flows)]).toEqual([278_772n, 1969n]);
  });

  test.each(["softflowd_ssh_v5.lp", "softflowd_ssh_v9.lp"])("%s: an attack on SSH", (name) => {
    const flows = readFile(name);
    const from = (src: string) => flows.filter((flow) => flow.src === src);
    expect([flows.length, packetsSum(flows), bytesOf(flows)]).toEqual([134, 1178n, 230_600n]);
    expect([from("147.32.80.37").length, bytesOf(from("147.32.80.37"))]).toEqual([67, 114_488n]);
    expect([from("147.32.80.40").length, bytesOf(from("147.32.80.40"))]).toEqual([67, 116_112n]);
  });

  test("pmacct: NetFlow v9 and IPFIX give the same totals", () => {
    const [v9, v10] = [readFile("pmacct_nfprobe_v9.lp"), readFile("pmacct_nfprobe_v10.lp")];
    expect([v9.length, bytesOf(v9), packetsSum(v9)]).toEqual([v10.length, bytesOf(v10), packetsSum(v10)]);
    expect(packetsSum(v9)).toBe(1969n);
  });

  test("pmacct, sFlow: as many tuples as in sfacctd, with the length of IP packets", () => {
    const flows = readFile("pmacct_sfprobe.lp");
    const tuples = new Set(
      flows.map(({ src, dst, srcPort, dstPort, protocol }) => {
        const ports = protocol === 6 || protocol === 17 ? `${srcPort} ${dstPort}` : "";
        return `${src} ${dst} ${protocol} ${ports}`;
      }),
    );
    expect(tuples.size).toBe(349);
    const neighbour = flows.filter(({ dst }) => dst === "ff02::1:ff8e:c3d1");
    // sfacctd counts frames of 90 bytes, including 14 bytes of Ethernet header and 4 bytes of checksum.
    expect([bytesOf(neighbour), packetsSum(neighbour)]).toEqual([144n, 2n]);
  });
});

test.skipIf(isAvailable)("skipped: the folder with packets of real exporters is not available", () => {
  expect(isAvailable).toBe(false);
});
