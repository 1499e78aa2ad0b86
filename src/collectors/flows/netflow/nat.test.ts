import { describe, expect, test } from "vitest";
import { ipfix, ipv4, record, set, template, VARIABLE, type FieldSpec, type FieldValue } from "../packets.fixture.ts";
import { NO_NAT, PacketReader, type DecodedFlow } from "../decoded-flows.fixture.ts";
import { DIALECTS, IPFIX, ipv6, T0, V9 } from "./netflow-records.fixture.ts";

const ENDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [7, 2],
  [11, 2],
  [4, 1],
];
const ENDS_VALUES: readonly FieldValue[] = [ipv4("10.0.0.5"), ipv4("198.51.100.7"), 40_000, 443, 6];
const SIX_ENDS: readonly FieldSpec[] = [[27, 16], [28, 16], ...ENDS.slice(2)];
const SIX_VALUES: readonly FieldValue[] = [ipv6(5), ipv6(7), ...ENDS_VALUES.slice(2)];
const COUNTERS: readonly FieldSpec[] = [
  [1, 4],
  [2, 4],
];

type Case = [name: string, fields: readonly FieldSpec[], values: readonly FieldValue[], nat: Partial<DecodedFlow>];

const CASES: readonly Case[] = [
  [
    "source address and port",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("198.51.100.7"), 61_000, 443],
    { natSrc: "203.0.113.1", natSrcPort: 61_000 },
  ],
  [
    "source address with an unchanged port, which is reported too",
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
    "a port alone, with the address unchanged",
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
    [...SIX_VALUES, ipv6(0x99), ipv6(7), 40_000],
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
    [...ENDS_VALUES, ipv6(1), ipv6(2)],
    { natSrc: "2001:db8::1", natDst: "2001:db8::2" },
  ],
  [
    "IPv4 and IPv6 addresses in one template, one of them zero",
    [...ENDS, [281, 16], [225, 4]],
    [...ENDS_VALUES, new Uint8Array(16), ipv4("203.0.113.1")],
    { natSrc: "203.0.113.1" },
  ],
  [
    "no translation if all addresses and ports are unchanged",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, ipv4("10.0.0.5"), ipv4("198.51.100.7"), 40_000, 443],
    {},
  ],
  [
    "no translation if all fields are zero",
    [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2]],
    [...ENDS_VALUES, 0, 0, 0, 0],
    {},
  ],
  ["no translation without NAT fields", ENDS, ENDS_VALUES, {}],
];

describe("the translation of a record", () => {
  test.each(CASES)("%s", (_, fields, values, nat) => {
    for (const { withRecord } of DIALECTS)
      expect(new PacketReader().read(withRecord(fields, values))).toMatchObject([{ dstPort: 443, ...NO_NAT, ...nat }]);
  });

  test("is read from the field numbers of older NSEL, which only v9 has", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [40_001, 4], [40_002, 4], [40_003, 2], [40_004, 2]];
    const values = [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("10.0.9.9"), 61_000, 8443];
    expect(new PacketReader().read(V9.withRecord(fields, values))).toMatchObject([
      { natSrc: "203.0.113.1", natSrcPort: 61_000, natDst: "10.0.9.9", natDstPort: 8443 },
    ]);
  });

  test("is not read from a field with an invalid length", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [225, 8], [227, VARIABLE]];
    const values = [...ENDS_VALUES, 7, Uint8Array.of()];
    const packet = IPFIX.withRecord(fields, values);
    expect(new PacketReader().read(packet)).toMatchObject([NO_NAT]);
  });

  test("does not carry over to the next record in the same row", () => {
    const translated: readonly FieldSpec[] = [...ENDS, [225, 4]];
    const totals: readonly FieldSpec[] = [...ENDS, [225, 4], [85, 4], [86, 4]];
    const reader = new PacketReader();
    const decoded = reader.read(
      ipfix([
        set(2, template(256, translated)),
        set(2, template(257, ENDS)),
        set(2, template(258, totals)),
        set(256, record(translated, [...ENDS_VALUES, ipv4("203.0.113.1")])),
        // Adds nothing, so that the next record reuses its row.
        set(258, record(totals, [...ENDS_VALUES, ipv4("203.0.113.2"), 0, 0])),
        set(257, record(ENDS, ENDS_VALUES)),
      ]),
    );
    expect(decoded.map(({ natSrc }) => natSrc)).toEqual(["203.0.113.1", null]);
    expect(reader.read(ipfix([set(257, record(ENDS, ENDS_VALUES))])), "in the next batch").toMatchObject([NO_NAT]);
  });

  test("is swapped for the reverse flow", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [225, 4], [226, 4], [227, 2], [228, 2], [231, 4], [232, 4]];
    const values = [...ENDS_VALUES, ipv4("203.0.113.1"), ipv4("10.0.9.9"), 61_000, 8443, 100, 900];
    const read = (values: readonly FieldValue[]) => new PacketReader().read(V9.withRecord(fields, values));
    const back = { src: "198.51.100.7", bytes: 900n };
    const nat = { natSrc: "10.0.9.9", natSrcPort: 8443, natDst: "203.0.113.1", natDstPort: 61_000 };
    expect(read(values)).toMatchObject([
      { natSrc: "203.0.113.1", bytes: 100n },
      { ...back, ...nat },
    ]);
    expect(read(values.with(9, 0)), "no forward traffic").toMatchObject([{ ...back, ...nat }]);
  });
});

describe("a NAT event", () => {
  const EVENT: readonly FieldSpec[] = [...ENDS, [225, 4], [227, 2], [230, 1], [323, 8]];
  const at = T0 - 5000;
  const EVENT_VALUES = [...ENDS_VALUES, ipv4("203.0.113.1"), 61_000, 1, at];
  const nat = { natSrc: "203.0.113.1", natSrcPort: 61_000 };

  test("becomes a flow without bytes and packets, at the time of the event", () => {
    const packet = IPFIX.withRecord(EVENT, EVENT_VALUES);
    expect(new PacketReader().read(packet)).toMatchObject([
      { ...nat, bytes: 0n, packets: 0n, firstSeen: at, lastSeen: at },
    ]);
  });

  test("is kept with zero counters, whether bidirectional or total", () => {
    for (const counters of [
      [231, 232],
      [85, 86],
    ]) {
      const fields: readonly FieldSpec[] = [...EVENT, ...counters.map((id): FieldSpec => [id, 4])];
      const read = (values: readonly FieldValue[]) => new PacketReader().read(IPFIX.withRecord(fields, values));
      expect(read([...EVENT_VALUES, 0, 0])).toMatchObject([{ ...nat, src: "10.0.0.5", bytes: 0n }]);
      expect(read([...EVENT_VALUES.with(7, 0), 0, 0]), "no event").toEqual([]);
    }
  });

  test("without addresses is dropped and counted", () => {
    const fields: readonly FieldSpec[] = [
      [323, 8],
      [230, 1],
      [283, 4],
    ];
    const reader = new PacketReader();
    expect(reader.read(IPFIX.withRecord(fields, [at, 3, 1]))).toEqual([]);
    expect(reader.status().drops).toMatchObject({ no_address: 1 });
  });
});

test("a record with counters and a translation becomes one flow with both", () => {
  const fields: readonly FieldSpec[] = [...ENDS, ...COUNTERS, [225, 4], [227, 2]];
  const values = [...ENDS_VALUES, 5000, 12, ipv4("203.0.113.1"), 61_000];
  expect(new PacketReader().read(IPFIX.withRecord(fields, values))).toMatchObject([
    { src: "10.0.0.5", bytes: 5000n, packets: 12n, natSrc: "203.0.113.1", natSrcPort: 61_000 },
  ]);
});
