import { describe, expect, test } from "vitest";
import {
  concat,
  ethernet,
  ipfix,
  ipfixOptions,
  ipv4,
  ipv4Packet,
  record,
  set,
  tcpHeader,
  template,
  v9,
  VARIABLE,
  type FieldSpec,
  type FieldValue,
} from "../packets.fixture.ts";
import { PacketReader } from "../decoded-flows.fixture.ts";
import {
  ADDRESS_VALUES,
  ADDRESSES,
  COUNTER_FIELDS,
  COUNTER_VALUES,
  IPFIX,
  ipv6,
  T0,
} from "./netflow-records.fixture.ts";

// Behaviour that differs between v9 and IPFIX; templates.test.ts covers the rest.

const FRAME = ethernet(ipv4Packet("10.0.0.1", "10.0.0.2", 6, tcpHeader(40_000, 443, 0x12)));
/** The IP length is zero, as segmentation offload leaves it. */
const LENGTHLESS = FRAME.slice().fill(0, 16, 18);

const readIpfix = (fields: readonly FieldSpec[], values: readonly FieldValue[]) =>
  new PacketReader().read(IPFIX.withRecord(fields, values));

describe("v9 alone", () => {
  test("a wrong count is ignored: lengths decide", () => {
    const packet = (count: number) =>
      v9([set(0, template(256, COUNTER_FIELDS)), set(256, record(COUNTER_FIELDS, COUNTER_VALUES))], { count });
    for (const count of [0, 1, 2, 65_535]) expect(new PacketReader().read(packet(count))).toHaveLength(1);
  });

  test("times by uptime, also across its wrap-around", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [22, 4], [21, 4]];
    const packet = v9(
      [set(0, template(256, fields)), set(256, record(fields, [...ADDRESS_VALUES, 2 ** 32 - 3000, 500]))],
      { uptime: 1000 },
    );
    expect(new PacketReader().read(packet)).toMatchObject([{ firstSeen: T0 - 4000, lastSeen: T0 - 500 }]);
  });

  test("missing packets are counted", () => {
    const reader = new PacketReader();
    for (const sequence of [1, 2, 5, 6]) reader.read(v9([], { sequence }));
    expect(reader.status()).toMatchObject({ gaps: 1, lost: 2 });
  });
});

describe("IPFIX alone", () => {
  test.each([
    ["in seconds", 150, 151, 4, 1_699_999_990, 1_699_999_999],
    ["in milliseconds", 152, 153, 8, T0 - 10_000, T0 - 1000],
    ["in NTP's microseconds", 154, 155, 8, ntp(T0 - 10_000), ntp(T0 - 1000)],
    ["in NTP's nanoseconds", 156, 157, 8, ntp(T0 - 10_000), ntp(T0 - 1000)],
    ["in microseconds before the export", 158, 159, 4, 10_000_000, 1_000_000],
  ])("times %s", (_, start, end, length, first, last) => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [start, length], [end, length]];
    expect(readIpfix(fields, [...ADDRESS_VALUES, first, last])).toMatchObject([
      { firstSeen: T0 - 10_000, lastSeen: T0 - 1000 },
    ]);
  });

  test("times by uptime, with the system start in the record or in options", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [22, 4], [21, 4]];
    const systemStart = T0 - 100_000;
    const inRecord: readonly FieldSpec[] = [...fields, [160, 8]];
    expect(readIpfix(inRecord, [...ADDRESS_VALUES, 90_000, 99_000, systemStart])).toMatchObject([
      { firstSeen: T0 - 10_000, lastSeen: T0 - 1000 },
    ]);
    const reader = new PacketReader();
    const scope: readonly FieldSpec[] = [[149, 4]];
    const options = ipfix([
      set(3, ipfixOptions(400, scope, [[160, 8]])),
      set(400, record([...scope, [160, 8]], [0, systemStart])),
      set(2, template(256, fields)),
    ]);
    reader.read(options);
    expect(reader.read(ipfix([set(256, record(fields, [...ADDRESS_VALUES, 90_000, 99_000]))]))).toMatchObject([
      { firstSeen: T0 - 10_000, lastSeen: T0 - 1000 },
    ]);
  });

  test("a duration completes a start or an end; a flow without times gets the time of the export", () => {
    const duration: readonly FieldSpec[] = [...ADDRESSES, [153, 8], [161, 4]];
    expect(readIpfix(duration, [...ADDRESS_VALUES, T0 - 1000, 9000])).toMatchObject([{ firstSeen: T0 - 10_000 }]);
    const begun: readonly FieldSpec[] = [...ADDRESSES, [152, 8], [162, 4]];
    expect(readIpfix(begun, [...ADDRESS_VALUES, T0 - 10_000, 9_000_000])).toMatchObject([{ lastSeen: T0 - 1000 }]);
    expect(readIpfix(ADDRESSES, ADDRESS_VALUES)).toMatchObject([{ firstSeen: T0, lastSeen: T0 }]);
  });

  test("the reverse direction of a biflow becomes its own flow", () => {
    const fields: readonly FieldSpec[] = [
      ...ADDRESSES,
      [7, 2],
      [11, 2],
      [4, 1],
      [6, 1],
      [1, 8],
      [2, 8],
      [1, 8, 29_305],
      [2, 8, 29_305],
      [6, 1, 29_305],
      [152, 8, 29_305],
      [153, 8],
    ];
    const values = [...ADDRESS_VALUES, 40_000, 443, 6, 2, 100n, 1n, 2n ** 40n, 9n, 18, T0 - 500, T0];
    expect(readIpfix(fields, values)).toMatchObject([
      { src: "10.0.0.1", dst: "10.0.0.2", srcPort: 40_000, dstPort: 443, bytes: 100n, tcpFlags: 2 },
      { src: "10.0.0.2", dst: "10.0.0.1", srcPort: 443, dstPort: 40_000, bytes: 2n ** 40n, packets: 9n, tcpFlags: 18 },
    ]);
    const silent = values.with(8, 0n).with(9, 0n);
    expect(readIpfix(fields, silent), "no reverse traffic").toHaveLength(1);
    const answered = values.with(6, 0n).with(7, 0n);
    expect(readIpfix(fields, answered), "no forward traffic").toMatchObject([{ src: "10.0.0.2", packets: 9n }]);
    expect(readIpfix(fields, silent.with(6, 0n).with(7, 0n)), "no traffic").toEqual([]);
  });

  test("total counters count once, however often a flow is reported", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [85, 8], [86, 8], [152, 8], [153, 8]];
    const reader = new PacketReader();
    reader.read(ipfix([set(2, template(256, fields))]));
    const report = (bytes: number, packets: number, start: number) =>
      reader.read(ipfix([set(256, record(fields, [...ADDRESS_VALUES, bytes, packets, start, T0]))]));
    report(100, 1, T0 - 5000);
    report(250, 3, T0 - 5000);
    report(250, 3, T0 - 5000);
    report(70, 1, T0 - 100);
    expect(reader.flows.map(({ bytes, packets }) => [bytes, packets])).toEqual([
      [100n, 1n],
      [150n, 2n],
      [70n, 1n],
    ]);
  });

  test.each([
    ["two hours ahead", 7_200_000],
    ["thirty days behind", -30 * 86_400_000],
  ])("total counters count once if the exporter's clock is %s, in both directions of a connection", (_, offset) => {
    const fields: readonly FieldSpec[] = [
      ...ADDRESSES,
      [85, 8],
      [86, 8],
      [85, 8, 29_305],
      [86, 8, 29_305],
      [152, 8],
      [153, 8],
    ];
    const reader = new PacketReader(60_000);
    for (let report = 0; report < 3; report++) {
      const atMs = T0 + report * 60_000;
      const values = [...ADDRESS_VALUES, 5000, 50, 2500, 25, T0 + offset - 5000, atMs + offset];
      const sets = [set(2, template(256, fields)), set(256, record(fields, values))];
      reader.read(ipfix(sets, { seconds: (atMs + offset) / 1000 }), { atMs });
    }
    expect(reader.flows.map(({ src, bytes, packets }) => [src, bytes, packets])).toEqual([
      ["10.0.0.1", 5000n, 50n],
      ["10.0.0.2", 2500n, 25n],
    ]);
  });

  test("with a total and a delta counter, the previous report is subtracted only from the total", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [1, 8], [86, 8], [148, 4]];
    const reader = new PacketReader();
    reader.read(ipfix([set(2, template(256, fields))]));
    for (const packets of [5, 8, 9]) {
      reader.read(ipfix([set(256, record(fields, [...ADDRESS_VALUES, 500, packets, 7]))]));
    }
    expect(reader.flows.map(({ bytes, packets }) => [bytes, packets])).toEqual([
      [500n, 5n],
      [500n, 3n],
      [500n, 1n],
    ]);
  });

  test("flows with total counters but without an id and a start are identified by their addresses", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [85, 8], [86, 8]];
    const reader = new PacketReader();
    reader.read(ipfix([set(2, template(256, fields))]));
    for (const bytes of [100, 250, 60]) {
      reader.read(ipfix([set(256, record(fields, [...ADDRESS_VALUES, bytes, 1]))]));
    }
    expect(reader.flows.map(({ bytes }) => bytes)).toEqual([100n, 150n, 60n]);
  });

  test.each([
    ["the first bytes of a frame", [[315, VARIABLE]], [FRAME], 40n],
    [
      "the first bytes of a frame, with its length",
      [
        [312, 2],
        [315, VARIABLE],
      ],
      [1514, FRAME],
      40n,
    ],
    [
      "a packet without a length in its header",
      [
        [312, 2],
        [315, VARIABLE],
      ],
      [1514, LENGTHLESS],
      1500n,
    ],
    ["the first bytes of a packet", [[313, 40]], [FRAME.subarray(14)], 40n],
    [
      "a packet section of fixed length with padding",
      [[313, 64]],
      [concat(FRAME.subarray(14), new Uint8Array(24))],
      40n,
    ],
  ] as const)(
    "a record with %s becomes a flow of that packet, times the sampling rate",
    (_, section, values, bytes) => {
      const fields: readonly FieldSpec[] = [...(section as readonly FieldSpec[]), [34, 4], [153, 8]];
      expect(readIpfix(fields, [...values, 100, T0])).toMatchObject([
        {
          src: "10.0.0.1",
          dst: "10.0.0.2",
          srcPort: 40_000,
          dstPort: 443,
          protocol: 6,
          tcpFlags: 0x12,
          packets: 100n,
          bytes: bytes * 100n,
          lastSeen: T0,
        },
      ]);
    },
  );

  test("a record with a packet that is not IP is dropped and counted", () => {
    const reader = new PacketReader();
    const fields: readonly FieldSpec[] = [[315, VARIABLE]];
    const arp = ethernet(new Uint8Array(28), { type: 0x0806 });
    expect(reader.read(IPFIX.withRecord(fields, [arp]))).toEqual([]);
    expect(reader.status().drops.no_address).toBe(1);
  });

  test("with IPv4 and IPv6 addresses in one template, those that are not zero apply", () => {
    const fields: readonly FieldSpec[] = [
      [8, 4],
      [12, 4],
      [27, 16],
      [28, 16],
    ];
    const none = new Uint8Array(16);
    expect(readIpfix(fields, [...ADDRESS_VALUES, none, none])).toMatchObject([{ src: "10.0.0.1" }]);
    expect(readIpfix(fields, [ipv4("0.0.0.0"), ipv4("0.0.0.0"), ipv6(1), ipv6(2)])).toMatchObject([
      { src: "2001:db8::1" },
    ]);
  });

  test("a withdrawal removes one template, or all of them", () => {
    const reader = new PacketReader();
    const data = set(256, record(COUNTER_FIELDS, COUNTER_VALUES));
    const define = set(2, concat(template(256, COUNTER_FIELDS), template(257, COUNTER_FIELDS)));
    reader.read(ipfix([define]));
    reader.read(ipfix([set(2, template(257, []))]));
    expect(reader.status().templates).toBe(1);
    expect(reader.read(ipfix([data]))).toHaveLength(1);
    reader.read(ipfix([set(2, template(2, []))]));
    expect(reader.status().templates).toBe(0);
    expect(reader.read(ipfix([data]))).toEqual([]);
  });

  test("a datagram may have several messages", () => {
    const message = IPFIX.withRecord(COUNTER_FIELDS, COUNTER_VALUES);
    expect(new PacketReader().read(concat(message, message, message))).toHaveLength(3);
  });

  test("a message with a wrong length is dropped", () => {
    for (const [length, reason] of [
      [200, "truncated"],
      [15, "malformed"],
      [0, "malformed"],
    ] as const) {
      const reader = new PacketReader();
      expect(reader.read(ipfix([set(2, template(256, COUNTER_FIELDS))], { length }))).toEqual([]);
      expect(reader.status().drops[reason]).toBe(1);
    }
  });

  test("missing records are counted, whether or not the sequence number includes the message's own records", () => {
    const message = (sequence: number, records: number) =>
      ipfix([set(256, concat(...Array.from({ length: records }, () => record(COUNTER_FIELDS, COUNTER_VALUES))))], {
        sequence,
      });
    const before = new PacketReader();
    before.read(ipfix([set(2, template(256, COUNTER_FIELDS))]));
    for (const [sequence, count] of [
      [0, 3],
      [3, 2],
      [5, 1],
      [9, 1],
    ] as const)
      before.read(message(sequence, count));
    expect(before.status()).toMatchObject({ gaps: 1, lost: 3 });
    const including = new PacketReader();
    including.read(ipfix([set(2, template(256, COUNTER_FIELDS))]));
    for (const [sequence, count] of [
      [3, 3],
      [5, 2],
      [6, 1],
      [10, 4],
    ] as const)
      including.read(message(sequence, count));
    expect(including.status().lost).toBeLessThanOrEqual(3);
  });
});

/** An NTP timestamp: seconds since 1900 in the upper half, a fraction of a second in the lower. */
function ntp(ms: number): bigint {
  return (BigInt(Math.floor(ms / 1000) + 2_208_988_800) << 32n) | ((BigInt(ms % 1000) * 2n ** 32n) / 1000n);
}
