import {
  ethernet,
  flowSample,
  ipfix,
  ipv4Packet,
  rawHeader,
  set,
  sflow,
  tcpHeader,
  template,
  v5,
  v9,
  type FieldSpec,
} from "../src/collectors/flows/packets.fixture.ts";

// Packets of each protocol as a busy gateway sends them, with as many records as fit into 1,500 bytes.

export interface PacketSet {
  readonly name: string;
  /** Sent first. */
  readonly templates: readonly Uint8Array[];
  readonly packets: readonly Uint8Array[];
  readonly recordsPerPacket: number;
  /** Naive decoder of the same packets: one object per record. */
  readonly plain: (packet: Buffer) => unknown[];
}

/** The original fields of NetFlow, as most gateways send them. */
const V9_FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [15, 4],
  [10, 2],
  [14, 2],
  [2, 4],
  [1, 4],
  [22, 4],
  [21, 4],
  [7, 2],
  [11, 2],
  [6, 1],
  [4, 1],
  [5, 1],
  [61, 1],
];
const IPFIX_FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [152, 8],
  [153, 8],
  [1, 8],
  [2, 8],
  [10, 4],
  [14, 4],
  [7, 2],
  [11, 2],
  [4, 1],
  [6, 1],
  [5, 1],
];
const PACKETS = 512;
const HEADROOM = 60;

const lengthOf = (fields: readonly FieldSpec[]) => fields.reduce((sum, [, length]) => sum + length, 0);

/** Tuple number `index`, always the same: 10.x.x.x to one of 250 servers. */
function tupleOf(index: number): { src: string; dst: string; srcPort: number; dstPort: number } {
  const host = index % 50_000;
  return {
    src: `10.${(host >> 16) & 255}.${(host >> 8) & 255}.${host & 255}`,
    dst: `192.168.${Math.floor(index / 50_000) & 255}.${index % 250}`,
    srcPort: 1024 + (index % 60_000),
    dstPort: index % 3 === 0 ? 443 : 53,
  };
}

/** `from` is the number of the first tuple; records carry the time of their packet. */
export function v5Packet(from: number, seconds: number, tuples: number): Uint8Array {
  const flows = Array.from({ length: 30 }, (_, index) => ({
    ...tupleOf((from + index) % tuples),
    protocol: 6,
    flags: 27,
    bytes: 1500 + index,
    packets: 3,
    first: 90_000,
    last: 100_000,
  }));
  return v5(flows, { seconds, sequence: from });
}

function dataSet(fields: readonly FieldSpec[], from: number, count: number, nowMs: number): Uint8Array {
  const record = lengthOf(fields);
  const bytes = new Uint8Array(record * count);
  const view = new DataView(bytes.buffer);
  for (let index = 0; index < count; index++) {
    const { src, dst, srcPort, dstPort } = tupleOf(from + index);
    let at = index * record;
    for (const [id, length] of fields) {
      const value: Record<number, number> = {
        7: srcPort,
        11: dstPort,
        1: 1500 + index,
        2: 3,
        4: 6,
        6: 27,
        21: 100_000,
        22: 90_000,
      };
      if (id === 8 || id === 12) bytes.set((id === 8 ? src : dst).split(".").map(Number), at);
      else if (id === 152 || id === 153) view.setBigUint64(at, BigInt(nowMs - (id === 152 ? 10_000 : 0)));
      else if (length === 8) view.setBigUint64(at, BigInt(value[id] ?? 0));
      else if (length === 4) view.setUint32(at, value[id] ?? 0);
      else if (length === 2) view.setUint16(at, value[id] ?? 0);
      else view.setUint8(at, value[id] ?? 0);
      at += length;
    }
  }
  return set(256, bytes);
}

function plainRecords(packet: Buffer, header: number, fields: readonly FieldSpec[]): unknown[] {
  const length = lengthOf(fields);
  const records: unknown[] = [];
  for (let at = header; at + length <= packet.length;) {
    const record: Record<string, unknown> = {};
    for (const [id, bytes] of fields) {
      if (id === 8 || id === 12 || id === 15)
        record[id] = `${packet[at]}.${packet[at + 1]}.${packet[at + 2]}.${packet[at + 3]}`;
      else record[id] = bytes === 8 ? packet.readBigUInt64BE(at) : packet.readUIntBE(at, bytes);
      at += bytes;
    }
    records.push(record);
  }
  return records;
}

function plainV5(packet: Buffer): unknown[] {
  return Array.from({ length: packet.readUInt16BE(2) }, (_, index) => {
    const at = 24 + index * 48;
    return {
      src: `${packet[at]}.${packet[at + 1]}.${packet[at + 2]}.${packet[at + 3]}`,
      dst: `${packet[at + 4]}.${packet[at + 5]}.${packet[at + 6]}.${packet[at + 7]}`,
      packets: packet.readUInt32BE(at + 16),
      bytes: packet.readUInt32BE(at + 20),
      first: packet.readUInt32BE(at + 24),
      last: packet.readUInt32BE(at + 28),
      srcPort: packet.readUInt16BE(at + 32),
      dstPort: packet.readUInt16BE(at + 34),
      flags: packet[at + 37],
      protocol: packet[at + 38],
    };
  });
}

export function packetSets(nowMs: number): readonly PacketSet[] {
  const seconds = Math.floor(nowMs / 1000);
  const per = (fields: readonly FieldSpec[]) => Math.floor((1500 - HEADROOM) / lengthOf(fields));
  const many = (make: (index: number) => Uint8Array) => Array.from({ length: PACKETS }, (_, index) => make(index));
  const frame = ethernet(ipv4Packet("10.0.0.1", "10.0.0.2", 6, tcpHeader(40_000, 443, 16)));
  const samples = Array.from({ length: 8 }, () => flowSample([rawHeader(frame, 1514)], 1000));
  return [
    {
      name: "NetFlow v5",
      templates: [],
      packets: many((index) => v5Packet(index * 30, seconds, 1e9)),
      recordsPerPacket: 30,
      plain: plainV5,
    },
    {
      name: "NetFlow v9",
      templates: [v9([set(0, template(256, V9_FIELDS))], { seconds })],
      packets: many((index) =>
        v9([dataSet(V9_FIELDS, index * per(V9_FIELDS), per(V9_FIELDS), nowMs)], { seconds, sequence: index + 1 }),
      ),
      recordsPerPacket: per(V9_FIELDS),
      plain: (packet) => plainRecords(packet, 24, V9_FIELDS),
    },
    {
      name: "IPFIX",
      templates: [ipfix([set(2, template(256, IPFIX_FIELDS))], { seconds })],
      packets: many((index) =>
        ipfix([dataSet(IPFIX_FIELDS, index * per(IPFIX_FIELDS), per(IPFIX_FIELDS), nowMs)], {
          seconds,
          sequence: index * per(IPFIX_FIELDS),
        }),
      ),
      recordsPerPacket: per(IPFIX_FIELDS),
      plain: (packet) => plainRecords(packet, 20, IPFIX_FIELDS),
    },
    {
      name: "sFlow v5",
      templates: [],
      packets: many((index) => sflow(samples, { sequence: index })),
      recordsPerPacket: 8,
      plain: (packet) => plainSamples(packet),
    },
  ];
}

function plainSamples(packet: Buffer): unknown[] {
  const found: unknown[] = [];
  for (let at = 28; at + 8 <= packet.length; at += 8 + packet.readUInt32BE(at + 4)) {
    const header = at + 8 + 32 + 8 + 16;
    const ip = header + 14;
    found.push({
      rate: packet.readUInt32BE(at + 16),
      length: packet.readUInt32BE(at + 52),
      src: packet.subarray(ip + 12, ip + 16).join("."),
      dst: packet.subarray(ip + 16, ip + 20).join("."),
      protocol: packet[ip + 9],
      srcPort: packet.readUInt16BE(ip + 20),
      dstPort: packet.readUInt16BE(ip + 22),
    });
  }
  return found;
}
