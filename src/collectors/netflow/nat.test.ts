import { describe, expect, test } from "vitest";
import {
  ipfix,
  ipv4,
  record,
  set,
  template,
  v9,
  VARIABLE,
  type FieldSpec,
  type FieldValue,
} from "../packets.fixture.ts";
import { NO_NAT, Reader, type Flow } from "../reading.fixture.ts";

// Addresses and ports on the far side of a gateway that translates.

const six = (last: number) => Uint8Array.of(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);
const ENDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [7, 2],
  [11, 2],
  [4, 1],
];
const ENDS_VALUES: readonly FieldValue[] = [ipv4("10.0.0.5"), ipv4("198.51.100.7"), 40_000, 443, 6];
const SIX_ENDS: readonly FieldSpec[] = [[27, 16], [28, 16], ...ENDS.slice(2)];
const SIX_VALUES: readonly FieldValue[] = [six(5), six(7), ...ENDS_VALUES.slice(2)];
const COUNTERS: readonly FieldSpec[] = [
  [1, 4],
  [2, 4],
];

type Case = [name: string, fields: readonly FieldSpec[], values: readonly FieldValue[], nat: Partial<Flow>];

const CASES: readonly Case[] = [
  [
    "source address and port",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("198.51.100.7"), 61_000, 443],
    { natSrc: "203.0.113.1", natSrcPort: 61_000 },
  ],
  [
    "source address with the port kept, which is told too",
    [...ENDS, [225, 4], [227, 2]],
    [...ENDS_VALUES, ipv4("203.0.113.1"), 40_000],
    { natSrc: "203.0.113.1", natSrcPort: 40_000 },
  ],
  [
    "destination address and port",
    [...ENDS, [226, 4], [228, 2]],
    [...ENDS_VALUES, ipv4("10.0.9.9"), 8443],
    { natDst: "10.0.9.9", natDstPort: 8443 },
  ],
  ["an address alone", [...ENDS, [225, 4]], [...ENDS_VALUES, ipv4("203.0.113.1")], { natSrc: "203.0.113.1" }],
  [
    "a port alone: the address stays",
    [...ENDS, [228, 2]],
    [...ENDS_VALUES, 8443],
    { natDst: "198.51.100.7", natDstPort: 8443 },
  ],
  [
    "both sides",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("10.0.9.9"), 61_000, 8443],
    { natSrc: "203.0.113.1", natSrcPort: 61_000, natDst: "10.0.9.9", natDstPort: 8443 },
  ],
  [
    "IPv6 to IPv6",
    [...SIX_ENDS, [281, 16], [282, 16], [227, 2]],
    [...SIX_VALUES, six(0x99), six(7), 40_000],
    { natSrc: "2001:db8::99", natSrcPort: 40_000 },
  ],
  [
    "NAT64",
    [...SIX_ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...SIX_VALUES, ipv4("203.0.113.1"), ipv4("198.51.100.7"), 61_000, 443],
    { natSrc: "203.0.113.1", natSrcPort: 61_000, natDst: "198.51.100.7", natDstPort: 443 },
  ],
  [
    "NAT46",
    [...ENDS, [281, 16], [282, 16]],
    [...ENDS_VALUES, six(1), six(2)],
    { natSrc: "2001:db8::1", natDst: "2001:db8::2" },
  ],
  [
    "a template with both kinds of addresses, one of them zeros",
    [...ENDS, [281, 16], [225, 4]],
    [...ENDS_VALUES, new Uint8Array(16), ipv4("203.0.113.1")],
    { natSrc: "203.0.113.1" },
  ],
  [
    "nothing, where every end stays as it is",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, ipv4("10.0.0.5"), ipv4("198.51.100.7"), 40_000, 443],
    {},
  ],
  [
    "nothing, where every field is zero",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, 0, 0, 0, 0],
    {},
  ],
  ["nothing, without a field for it", ENDS, ENDS_VALUES, {}],
];

describe("a translation that a record tells", () => {
  test.each(CASES)("%s", (_, fields, values, nat) => {
    for (const packet of [
      ipfix([set(2, template(256, fields)), set(256, record(fields, values))]),
      v9([set(0, template(256, fields)), set(256, record(fields, values))]),
    ])
      expect(new Reader().read(packet)).toMatchObject([{ dstPort: 443, ...NO_NAT, ...nat }]);
  });

  test("in the field numbers of older NSEL, which only v9 has", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [40_001, 4], [40_002, 4], [40_003, 2], [40_004, 2]];
    const values = [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("10.0.9.9"), 61_000, 8443];
    expect(new Reader().read(v9([set(0, template(256, fields)), set(256, record(fields, values))]))).toMatchObject([
      { natSrc: "203.0.113.1", natSrcPort: 61_000, natDst: "10.0.9.9", natDstPort: 8443 },
    ]);
  });

  test("of a field whose length is not an address's is not read", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [225, 8], [227, VARIABLE]];
    const values = [...ENDS_VALUES, 7, Uint8Array.of()];
    const packet = ipfix([set(2, template(256, fields)), set(256, record(fields, values))]);
    expect(new Reader().read(packet)).toMatchObject([NO_NAT]);
  });

  test("belongs to its own record, and not to the next one in its place", () => {
    const translated: readonly FieldSpec[] = [...ENDS, [225, 4]];
    const totals: readonly FieldSpec[] = [...ENDS, [225, 4], [85, 4], [86, 4]];
    const reader = new Reader();
    const told = reader.read(
      ipfix([
        set(2, template(256, translated)),
        set(2, template(257, ENDS)),
        set(2, template(258, totals)),
        set(256, record(translated, [...ENDS_VALUES, ipv4("203.0.113.1")])),
        // Adds nothing, so that the next record takes its row.
        set(258, record(totals, [...ENDS_VALUES, ipv4("203.0.113.2"), 0, 0])),
        set(257, record(ENDS, ENDS_VALUES)),
      ]),
    );
    expect(told.map(({ natSrc }) => natSrc)).toEqual(["203.0.113.1", null]);
    expect(reader.read(ipfix([set(257, record(ENDS, ENDS_VALUES))])), "in the next batch").toMatchObject([NO_NAT]);
  });

  test("is turned round for the way back", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2], [231, 4], [232, 4]];
    const values = [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("10.0.9.9"), 61_000, 8443, 100, 900];
    const read = (values: readonly FieldValue[]) =>
      new Reader().read(v9([set(0, template(256, fields)), set(256, record(fields, values))]));
    const back = { src: "198.51.100.7", bytes: 900n };
    const nat = { natSrc: "10.0.9.9", natSrcPort: 8443, natDst: "203.0.113.1", natDstPort: 61_000 };
    expect(read(values)).toMatchObject([
      { natSrc: "203.0.113.1", bytes: 100n },
      { ...back, ...nat },
    ]);
    expect(read(values.with(9, 0)), "nothing was sent there").toMatchObject([{ ...back, ...nat }]);
  });
});

describe("a NAT event", () => {
  const EVENT: readonly FieldSpec[] = [...ENDS, [225, 4], [227, 2], [230, 1], [323, 8]];
  const at = 1_700_000_000_000 - 5000;
  const EVENT_VALUES = [...ENDS_VALUES, ipv4("203.0.113.1"), 61_000, 1, at];
  const nat = { natSrc: "203.0.113.1", natSrcPort: 61_000 };

  test("is a flow without bytes and packets, at the time of the event", () => {
    const packet = ipfix([set(2, template(256, EVENT)), set(256, record(EVENT, EVENT_VALUES))]);
    expect(new Reader().read(packet)).toMatchObject([{ ...nat, bytes: 0n, packets: 0n, firstSeen: at, lastSeen: at }]);
  });

  test("is kept although its counters, of either direction or from the beginning, have counted nothing", () => {
    for (const counters of [
      [231, 232],
      [85, 86],
    ]) {
      const fields: readonly FieldSpec[] = [...EVENT, ...counters.map((id): FieldSpec => [id, 4])];
      const read = (values: readonly FieldValue[]) =>
        new Reader().read(ipfix([set(2, template(256, fields)), set(256, record(fields, values))]));
      expect(read([...EVENT_VALUES, 0, 0])).toMatchObject([{ ...nat, src: "10.0.0.5", bytes: 0n }]);
      expect(read([...EVENT_VALUES.with(7, 0), 0, 0]), "no event").toEqual([]);
    }
  });

  test("that names no session has no address to be stored under", () => {
    const fields: readonly FieldSpec[] = [
      [323, 8],
      [230, 1],
      [283, 4],
    ];
    const reader = new Reader();
    expect(reader.read(ipfix([set(2, template(256, fields)), set(256, record(fields, [at, 3, 1]))]))).toEqual([]);
    expect(reader.status().drops).toMatchObject({ no_address: 1 });
  });
});

test("a record with counters and a translation is one flow with both", () => {
  const fields: readonly FieldSpec[] = [...ENDS, ...COUNTERS, [225, 4], [227, 2]];
  const values = [...ENDS_VALUES, 5000, 12, ipv4("203.0.113.1"), 61_000];
  expect(new Reader().read(ipfix([set(2, template(256, fields)), set(256, record(fields, values))]))).toMatchObject([
    { src: "10.0.0.5", bytes: 5000n, packets: 12n, natSrc: "203.0.113.1", natSrcPort: 61_000 },
  ]);
});
