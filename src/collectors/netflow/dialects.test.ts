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
import { Reader } from "../reading.fixture.ts";

// What v9 and IPFIX have each for itself; templates.test.ts has what they share.

const T0 = 1_700_000_000_000;
const ENDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
];
const ENDS_VALUES: readonly FieldValue[] = [ipv4("10.0.0.1"), ipv4("10.0.0.2")];
const BASIC: readonly FieldSpec[] = [...ENDS, [1, 4], [2, 4]];
const BASIC_VALUES: readonly FieldValue[] = [...ENDS_VALUES, 1000, 10];
const six = (last: number) => Uint8Array.of(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);

const FRAME = ethernet(ipv4Packet("10.0.0.1", "10.0.0.2", 6, tcpHeader(40_000, 443, 0x12)));
/** As a network card leaves it that takes large packets apart itself. */
const LENGTHLESS = FRAME.slice().fill(0, 16, 18);

/** One record of these fields, with its template before it, read. */
function readIpfix(fields: readonly FieldSpec[], values: readonly FieldValue[]) {
  return new Reader().read(ipfix([set(2, template(256, fields)), set(256, record(fields, values))]));
}

describe("v9 alone", () => {
  test("a count that lies is not believed: lengths are", () => {
    const packet = (count: number) =>
      v9([set(0, template(256, BASIC)), set(256, record(BASIC, BASIC_VALUES))], { count });
    for (const count of [0, 1, 2, 65_535]) expect(new Reader().read(packet(count))).toHaveLength(1);
  });

  test("times by uptime, around its end too", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [22, 4], [21, 4]];
    const packet = v9(
      [set(0, template(256, fields)), set(256, record(fields, [...ENDS_VALUES, 2 ** 32 - 3000, 500]))],
      { uptime: 1000 },
    );
    expect(new Reader().read(packet)).toMatchObject([{ firstSeen: T0 - 4000, lastSeen: T0 - 500 }]);
  });

  test("missing packets are counted", () => {
    const reader = new Reader();
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
    const fields: readonly FieldSpec[] = [...ENDS, [start, length], [end, length]];
    expect(readIpfix(fields, [...ENDS_VALUES, first, last])).toMatchObject([
      { firstSeen: T0 - 10_000, lastSeen: T0 - 1000 },
    ]);
  });

  test("times by uptime, with the start of the system in the record or in options", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [22, 4], [21, 4]];
    const systemStart = T0 - 100_000;
    const inRecord: readonly FieldSpec[] = [...fields, [160, 8]];
    expect(readIpfix(inRecord, [...ENDS_VALUES, 90_000, 99_000, systemStart])).toMatchObject([
      { firstSeen: T0 - 10_000, lastSeen: T0 - 1000 },
    ]);
    const reader = new Reader();
    const scope: readonly FieldSpec[] = [[149, 4]];
    const told = ipfix([
      set(3, ipfixOptions(400, scope, [[160, 8]])),
      set(400, record([...scope, [160, 8]], [0, systemStart])),
      set(2, template(256, fields)),
    ]);
    reader.read(told);
    expect(reader.read(ipfix([set(256, record(fields, [...ENDS_VALUES, 90_000, 99_000]))]))).toMatchObject([
      { firstSeen: T0 - 10_000, lastSeen: T0 - 1000 },
    ]);
  });

  test("an end or a beginning and a duration give the other; without any time it is the export's", () => {
    const duration: readonly FieldSpec[] = [...ENDS, [153, 8], [161, 4]];
    expect(readIpfix(duration, [...ENDS_VALUES, T0 - 1000, 9000])).toMatchObject([{ firstSeen: T0 - 10_000 }]);
    const begun: readonly FieldSpec[] = [...ENDS, [152, 8], [162, 4]];
    expect(readIpfix(begun, [...ENDS_VALUES, T0 - 10_000, 9_000_000])).toMatchObject([{ lastSeen: T0 - 1000 }]);
    expect(readIpfix(ENDS, ENDS_VALUES)).toMatchObject([{ firstSeen: T0, lastSeen: T0 }]);
  });

  test("the way back of a biflow is a flow of its own", () => {
    const fields: readonly FieldSpec[] = [
      ...ENDS,
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
    const values = [...ENDS_VALUES, 40_000, 443, 6, 2, 100n, 1n, 2n ** 40n, 9n, 18, T0 - 500, T0];
    expect(readIpfix(fields, values)).toMatchObject([
      { src: "10.0.0.1", dst: "10.0.0.2", srcPort: 40_000, dstPort: 443, bytes: 100n, tcpFlags: 2 },
      { src: "10.0.0.2", dst: "10.0.0.1", srcPort: 443, dstPort: 40_000, bytes: 2n ** 40n, packets: 9n, tcpFlags: 18 },
    ]);
    const silent = values.with(8, 0n).with(9, 0n);
    expect(readIpfix(fields, silent), "nothing came back").toHaveLength(1);
    const answered = values.with(6, 0n).with(7, 0n);
    expect(readIpfix(fields, answered), "nothing was sent there").toMatchObject([{ src: "10.0.0.2", packets: 9n }]);
    expect(readIpfix(fields, silent.with(6, 0n).with(7, 0n)), "nothing at all").toEqual([]);
  });

  test("total counters count once, however often a flow is told of", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [85, 8], [86, 8], [152, 8], [153, 8]];
    const reader = new Reader();
    reader.read(ipfix([set(2, template(256, fields))]));
    const tell = (bytes: number, packets: number, start: number) =>
      reader.read(ipfix([set(256, record(fields, [...ENDS_VALUES, bytes, packets, start, T0]))]));
    tell(100, 1, T0 - 5000);
    tell(250, 3, T0 - 5000);
    tell(250, 3, T0 - 5000);
    tell(70, 1, T0 - 100);
    expect(reader.flows.map(({ bytes, packets }) => [bytes, packets])).toEqual([
      [100n, 1n],
      [150n, 2n],
      [70n, 1n],
    ]);
  });

  test.each([
    ["two hours ahead", 7_200_000],
    ["thirty days behind", -30 * 86_400_000],
  ])("total counters count once where the exporter's clock is %s, both ways of a connection", (_, offset) => {
    const fields: readonly FieldSpec[] = [
      ...ENDS,
      [85, 8],
      [86, 8],
      [85, 8, 29_305],
      [86, 8, 29_305],
      [152, 8],
      [153, 8],
    ];
    const reader = new Reader(60_000);
    for (let report = 0; report < 3; report++) {
      const atMs = T0 + report * 60_000;
      const values = [...ENDS_VALUES, 5000, 50, 2500, 25, T0 + offset - 5000, atMs + offset];
      const sets = [set(2, template(256, fields)), set(256, record(fields, values))];
      reader.read(ipfix(sets, { seconds: (atMs + offset) / 1000 }), { atMs });
    }
    expect(reader.flows.map(({ src, bytes, packets }) => [src, bytes, packets])).toEqual([
      ["10.0.0.1", 5000n, 50n],
      ["10.0.0.2", 2500n, 25n],
    ]);
  });

  test("a total beside a counter of this report: only the total is taken off", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [1, 8], [86, 8], [148, 4]];
    const reader = new Reader();
    reader.read(ipfix([set(2, template(256, fields))]));
    for (const packets of [5, 8, 9]) {
      reader.read(ipfix([set(256, record(fields, [...ENDS_VALUES, 500, packets, 7]))]));
    }
    expect(reader.flows.map(({ bytes, packets }) => [bytes, packets])).toEqual([
      [500n, 5n],
      [500n, 3n],
      [500n, 1n],
    ]);
  });

  test("total counters of flows without an id and a beginning are told apart by their ends", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [85, 8], [86, 8]];
    const reader = new Reader();
    reader.read(ipfix([set(2, template(256, fields))]));
    for (const bytes of [100, 250, 60]) {
      reader.read(ipfix([set(256, record(fields, [...ENDS_VALUES, bytes, 1]))]));
    }
    expect(reader.flows.map(({ bytes }) => bytes)).toEqual([100n, 150n, 60n]);
  });

  test.each([
    ["the beginning of a frame", [[315, VARIABLE]], [FRAME], 40n],
    [
      "one that tells the frame's length",
      [
        [312, 2],
        [315, VARIABLE],
      ],
      [1514, FRAME],
      40n,
    ],
    [
      "one whose header does not tell its own length",
      [
        [312, 2],
        [315, VARIABLE],
      ],
      [1514, LENGTHLESS],
      1500n,
    ],
    ["the beginning of a packet", [[313, 40]], [FRAME.subarray(14)], 40n],
    ["one of fixed length that is filled up", [[313, 64]], [concat(FRAME.subarray(14), new Uint8Array(24))], 40n],
  ] as const)(
    "a record that holds %s is a flow of that packet, times the sampling rate",
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

  test("a record that holds a packet of something else than IP is counted", () => {
    const reader = new Reader();
    const fields: readonly FieldSpec[] = [[315, VARIABLE]];
    const arp = ethernet(new Uint8Array(28), { type: 0x0806 });
    expect(reader.read(ipfix([set(2, template(256, fields)), set(256, record(fields, [arp]))]))).toEqual([]);
    expect(reader.status().drops.no_address).toBe(1);
  });

  test("a template that has both kinds of addresses means the one that is not all zeros", () => {
    const fields: readonly FieldSpec[] = [
      [8, 4],
      [12, 4],
      [27, 16],
      [28, 16],
    ];
    const none = new Uint8Array(16);
    expect(readIpfix(fields, [...ENDS_VALUES, none, none])).toMatchObject([{ src: "10.0.0.1" }]);
    expect(readIpfix(fields, [ipv4("0.0.0.0"), ipv4("0.0.0.0"), six(1), six(2)])).toMatchObject([
      { src: "2001:db8::1" },
    ]);
  });

  test("a withdrawn template is no longer known; a withdrawal of all leaves none", () => {
    const reader = new Reader();
    const data = set(256, record(BASIC, BASIC_VALUES));
    const define = set(2, concat(template(256, BASIC), template(257, BASIC)));
    reader.read(ipfix([define]));
    reader.read(ipfix([set(2, template(257, []))]));
    expect(reader.status().templates).toBe(1);
    expect(reader.read(ipfix([data]))).toHaveLength(1);
    reader.read(ipfix([set(2, template(2, []))]));
    expect(reader.status().templates).toBe(0);
    expect(reader.read(ipfix([data]))).toEqual([]);
  });

  test("several messages in one datagram", () => {
    const message = ipfix([set(2, template(256, BASIC)), set(256, record(BASIC, BASIC_VALUES))]);
    expect(new Reader().read(concat(message, message, message))).toHaveLength(3);
  });

  test("a length that lies drops the message", () => {
    for (const [length, reason] of [
      [200, "truncated"],
      [15, "malformed"],
      [0, "malformed"],
    ] as const) {
      const reader = new Reader();
      expect(reader.read(ipfix([set(2, template(256, BASIC))], { length }))).toEqual([]);
      expect(reader.status().drops[reason]).toBe(1);
    }
  });

  test("missing records are counted, whether the number tells of those before or includes its own", () => {
    const message = (sequence: number, records: number) =>
      ipfix([set(256, concat(...Array.from({ length: records }, () => record(BASIC, BASIC_VALUES))))], { sequence });
    const before = new Reader();
    before.read(ipfix([set(2, template(256, BASIC))]));
    for (const [sequence, count] of [
      [0, 3],
      [3, 2],
      [5, 1],
      [9, 1],
    ] as const)
      before.read(message(sequence, count));
    expect(before.status()).toMatchObject({ gaps: 1, lost: 3 });
    const including = new Reader();
    including.read(ipfix([set(2, template(256, BASIC))]));
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

/** Seconds since 1900 in the upper half, a fraction of a second in the lower. */
function ntp(ms: number): bigint {
  return (BigInt(Math.floor(ms / 1000) + 2_208_988_800) << 32n) | ((BigInt(ms % 1000) * 2n ** 32n) / 1000n);
}
