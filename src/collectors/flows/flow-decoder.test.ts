import * as fc from "fast-check";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { FlowDecoder } from "./flow-decoder.ts";
import {
  concat,
  ethernet,
  flowSample,
  ipfix,
  ipfixOptions,
  ipv4Packet,
  ipv6Packet,
  rawHeader,
  record,
  set,
  sflow,
  tcpHeader,
  template,
  udpHeader,
  v5,
  v9,
  v9Options,
  VARIABLE,
  type FieldSpec,
  type FieldValue,
} from "./packets.fixture.ts";
import { BATCH_RECORDS, type RecordBatch } from "./flow-records.ts";
import { NO_NAT, PacketReader } from "./decoded-flows.fixture.ts";

const address = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)).map((parts) => parts.join("."));
const port = fc.nat(65_535);
const word = fc.nat(2 ** 32 - 1);
const long = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

describe("encoded packets decode to the same flows", () => {
  const v5Flow = fc.record({
    src: address,
    dst: address,
    srcPort: port,
    dstPort: port,
    protocol: fc.nat(255),
    flags: fc.nat(255),
    bytes: word,
    packets: word,
  });

  test("NetFlow v5", () => {
    fc.assert(
      fc.property(fc.array(v5Flow, { maxLength: 30 }), (flows) => {
        const read = new PacketReader()
          .read(v5(flows))
          .map(({ bytes, packets, tcpFlags, version, firstSeen, lastSeen, ...rest }) => {
            expect([version, firstSeen, lastSeen]).toEqual([5, 1_700_000_000_000, 1_700_000_000_000]);
            return { ...rest, flags: tcpFlags, bytes: Number(bytes), packets: Number(packets) };
          });
        expect(read).toEqual(flows.map((flow) => ({ ...flow, ...NO_NAT })));
      }),
      { numRuns: 50 },
    );
  });

  // Known fields in any order, mixed with unknown ones.
  const flow = fc.record({
    src: address,
    dst: address,
    srcPort: port,
    dstPort: port,
    protocol: fc.constantFrom(6, 17, 47),
    bytes: long,
    packets: long,
  });
  const filler = fc.oneof(
    fc.tuple(fc.constantFrom(5, 10, 14, 15, 16, 17, 56, 89), fc.integer({ min: 1, max: 20 })),
    fc.tuple(fc.constantFrom(82, 94, 96), fc.constant(VARIABLE)),
  );

  test.each([
    ["NetFlow v9", v9, 0],
    ["IPFIX", ipfix, 2],
  ] as const)("%s, with fields in any order and unknown fields between them", (_, build, templates) => {
    const shape = fc.tuple(
      fc.shuffledSubarray(["src", "dst", "srcPort", "dstPort", "protocol", "bytes", "packets"] as const, {
        minLength: 7,
      }),
      fc.array(filler, { maxLength: 6 }),
      fc.array(flow, { minLength: 1, maxLength: 8 }),
    );
    const specs = {
      src: [8, 4],
      dst: [12, 4],
      srcPort: [7, 2],
      dstPort: [11, 2],
      protocol: [4, 1],
      bytes: [1, 8],
      packets: [2, 8],
    } as const;
    fc.assert(
      fc.property(shape, ([order, fillers, flows]) => {
        const fields: FieldSpec[] = order.flatMap((name, index) => {
          const between = fillers[index];
          return between ? [between, specs[name]] : [specs[name]];
        });
        const valueOf = (one: (typeof flows)[number], [id, length]: FieldSpec): FieldValue => {
          const name = order.find((known) => specs[known][0] === id);
          if (!name) return length === VARIABLE ? "x".repeat(Number(one.bytes % 300n)) : new Uint8Array(length);
          return name === "src" || name === "dst" ? Uint8Array.from(one[name].split(".").map(Number)) : one[name];
        };
        const records = flows.map((one) =>
          record(
            fields,
            fields.map((spec) => valueOf(one, spec)),
          ),
        );
        const packet = build([set(templates, template(300, fields)), set(300, concat(...records))]);
        const read = new PacketReader().read(packet);
        expect(read).toMatchObject(flows);
      }),
      { numRuns: 60 },
    );
  });
});

test("a packet with more records than a batch is decoded in full", () => {
  const fields: FieldSpec[] = [
    [8, 4],
    [1, 1],
    [1, 1, 29_305],
  ];
  const one = record(fields, [Uint8Array.of(10, 0, 0, 1), 2, 3]);
  const data = new Uint8Array(one.length * 10_000);
  for (let at = 0; at < data.length; at += one.length) data.set(one, at);
  const reader = new PacketReader();
  reader.read(ipfix([set(2, template(256, fields))]));
  const flows = reader.read(ipfix([set(256, data)]));
  expect(flows).toHaveLength(20_000);
  expect(flows.length).toBeGreaterThan(BATCH_RECORDS);
  expect(flows.reduce((sum, { bytes }) => sum + bytes, 0n)).toBe(50_000n);
});

/** A deterministic random number generator. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
}

/** Valid packets of each protocol, as a corpus for corruption. */
function seeds(): Record<string, Uint8Array[]> {
  const six = Uint8Array.from({ length: 16 }, (_, index) => index);
  const fields: FieldSpec[] = [
    [8, 4],
    [12, 4],
    [7, 2],
    [11, 2],
    [4, 1],
    [6, 1],
    [1, 8],
    [2, 4],
    [22, 4],
    [21, 4],
    [48, 1],
  ];
  const wide: FieldSpec[] = [
    [27, 16],
    [96, VARIABLE],
    [28, 16],
    [85, 8],
    [86, 8],
    [152, 8],
    [153, 8],
    [148, 8],
    [32, 2],
    [4, 1],
  ];
  const both: FieldSpec[] = [
    [8, 4],
    [12, 4],
    [1, 8],
    [1, 8, 29_305],
    [2, 8, 29_305],
    [154, 8],
    [155, 8],
    [9, 3, 4000],
  ];
  const zeros = (specs: readonly FieldSpec[]) =>
    record(
      specs,
      specs.map(([, length]) => (length === VARIABLE ? "name" : new Uint8Array(length).fill(7))),
    );
  const repeat = (one: Uint8Array, times: number) => concat(...Array.from({ length: times }, () => one));
  const sampler: FieldSpec[] = [
    [48, 1],
    [50, 4],
    [34, 4],
    [305, 4],
    [306, 4],
    [160, 8],
  ];
  const flow = { src: "10.0.0.1", dst: "10.0.0.2", srcPort: 1, dstPort: 2, bytes: 100, packets: 3 };
  const tcp = ipv4Packet("10.0.0.1", "10.0.0.2", 6, tcpHeader(40_000, 443, 2));
  const udp6 = ipv6Packet(six, six, 0, concat(Uint8Array.of(17, 0, 0, 0, 0, 0, 0, 0), udpHeader(1, 2)));
  return {
    "NetFlow v5": [v5([flow, flow, flow], { sampling: 100 })],
    "NetFlow v9": [
      v9([
        set(0, concat(template(256, fields), template(257, wide))),
        set(256, repeat(zeros(fields), 4)),
        set(257, repeat(zeros(wide), 3)),
      ]),
      v9([
        set(1, v9Options(400, [[1, 4]], sampler)),
        set(400, zeros([[1, 4], ...sampler])),
        set(256, zeros(fields)),
        set(999, new Uint8Array(30)),
      ]),
    ],
    IPFIX: [
      ipfix([
        set(2, concat(template(256, both), template(257, wide))),
        set(256, repeat(zeros(both), 4)),
        set(257, repeat(zeros(wide), 3)),
      ]),
      ipfix([
        set(3, ipfixOptions(400, [[149, 4]], sampler)),
        set(400, zeros([[149, 4], ...sampler])),
        set(2, template(257, [])),
        set(257, zeros(wide)),
      ]),
    ],
    "sFlow v5": [
      sflow([
        flowSample([rawHeader(ethernet(tcp, { vlans: [0x8100] }), 1500)], 50),
        flowSample([rawHeader(ethernet(udp6), 90)], 7, true),
      ]),
      sflow([flowSample([rawHeader(ethernet(tcp, { mpls: 2 }), 100), rawHeader(tcp, 100, 11)], 3)]),
    ],
  };
}

function corrupt(packet: Uint8Array, random: () => number): Uint8Array {
  const corrupted = packet.slice(0, random() % 4 === 0 ? random() % (packet.length + 1) : packet.length);
  if (corrupted.length === 0) return corrupted;
  for (let times = random() % 6; times > 0; times--) {
    const at = random() % corrupted.length;
    // Values that break lengths and counts: the maximum, zero, or off by one.
    const kind = random() % 5;
    corrupted[at] =
      kind === 0 ? 255 : kind === 1 ? 0 : kind === 2 ? corrupted[at]! + 1 : kind === 3 ? corrupted[at]! - 1 : random();
  }
  return corrupted;
}

/** Raise it with FUZZ_PACKETS=1000000. */
const FUZZ_PACKETS = Number(process.env["FUZZ_PACKETS"] ?? 20_000);
const MEMORY_GROWTH_MAX = 64 * 1024 * 1024;

/** Memory in use after a garbage collection. */
function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test.each(Object.entries(seeds()))(
  `${FUZZ_PACKETS} corrupted packets of %s cause no exception, no read beyond the packet and no memory growth`,
  (_, packets) => {
    const random = seeded(4242);
    let records = 0;
    let wrong = 0;
    const take = (batch: RecordBatch) => {
      records += batch.count;
      for (let row = 0; row < batch.count; row++) {
        if (!(batch.firstSeen[row]! <= batch.lastSeen[row]!) || !Number.isInteger(batch.lastSeen[row])) wrong++;
      }
    };
    const decoder = new FlowDecoder({ take, clockSkewMaxMs: 60_000 });
    // A view that ends with the packet throws on every read beyond it.
    const nowMs = (index: number) => 1_700_000_000_000 + index;
    let settled = 0;
    for (let index = 0; index < FUZZ_PACKETS; index++) {
      const packet = corrupt(packets[random() % packets.length]!, random);
      const from = `192.0.2.${random() % 8}`;
      decoder.decode(new DataView(packet.buffer, 0, packet.length), 0, packet.length, from, nowMs(index));
      if (index === FUZZ_PACKETS >> 1) settled = memoryInUse();
    }
    decoder.flush();
    expect(records).toBeGreaterThan(FUZZ_PACKETS / 20);
    expect(wrong).toBe(0);
    expect(memoryInUse() - settled).toBeLessThan(MEMORY_GROWTH_MAX);
  },
  600_000,
);
