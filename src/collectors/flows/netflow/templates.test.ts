import { describe, expect, test } from "vitest";
import { EXPORTERS_MAX, NETWORK_TEMPLATES_MAX, TEMPLATES_MAX } from "../flow-decoder.ts";
import { concat, ipv4, record, set, template, VARIABLE, type FieldSpec } from "../packets.fixture.ts";
import { PacketReader } from "../decoded-flows.fixture.ts";
import {
  ADDRESS_VALUES,
  ADDRESSES,
  COUNTER_FIELDS,
  COUNTER_FLOW,
  COUNTER_VALUES,
  DIALECTS,
  ipv6,
  SCOPE,
  T0,
} from "./netflow-records.fixture.ts";
import { SET_OVERHEAD_BYTES, UNDECODED_MS_MAX, UNDECODED_NETWORK_BYTES_MAX } from "./undecoded-sets.ts";

describe.each(DIALECTS)("$name", ({ templates, options, build, optionsTemplate, withRecord }) => {
  const known = set(templates, template(256, COUNTER_FIELDS));
  const data = set(256, record(COUNTER_FIELDS, COUNTER_VALUES));

  test("a set may have several templates, a packet several sets, and records may be followed by padding", () => {
    const wide: readonly FieldSpec[] = [
      [27, 16],
      [28, 16],
      [1, 8],
      [4, 1],
    ];
    const packet = build([
      set(templates, concat(template(256, COUNTER_FIELDS), template(257, wide))),
      set(
        256,
        concat(record(COUNTER_FIELDS, COUNTER_VALUES), record(COUNTER_FIELDS, COUNTER_VALUES), Uint8Array.of(0, 0, 0)),
      ),
      set(257, record(wide, [ipv6(1), ipv6(2), 2n ** 64n - 1n, 58])),
    ]);
    expect(new PacketReader().read(packet)).toMatchObject([
      COUNTER_FLOW,
      COUNTER_FLOW,
      { src: "2001:db8::1", dst: "2001:db8::2", bytes: 2n ** 64n - 1n, protocol: 58 },
    ]);
  });

  test("data before its template is kept, and decoded with its own clock when the template arrives", () => {
    const reader = new PacketReader(60_000);
    expect(reader.read(build([data], { seconds: 1_700_000_000 }), { atMs: T0 })).toEqual([]);
    expect(reader.status()).toMatchObject({ state: "no_template", missingTemplates: [256], waitingSets: 1 });
    expect(reader.status().summary).toMatch(/no template yet.*256/);
    const later = { seconds: 1_700_000_100, sequence: 1 };
    expect(reader.read(build([known], later), { atMs: T0 + 100_000 })).toMatchObject([
      { ...COUNTER_FLOW, lastSeen: T0 },
    ]);
    expect(reader.status("192.0.2.1", T0 + 100_000)).toMatchObject({
      state: "receiving",
      missingTemplates: [],
      waitingSets: 0,
    });
  });

  test("undecoded data beyond the limits of time and memory is dropped and counted", () => {
    const reader = new PacketReader();
    const large = set(300, new Uint8Array(60_000));
    for (let index = 0; index < 200; index++) reader.read(build([large]), { atMs: T0 });
    const { waitingSets, drops } = reader.status();
    expect(waitingSets).toBe(Math.floor(UNDECODED_NETWORK_BYTES_MAX / (60_000 + SET_OVERHEAD_BYTES)));
    expect(drops.no_template).toBe(200 - waitingSets);
    expect(reader.status().lastError!.message).toContain(`${UNDECODED_NETWORK_BYTES_MAX} undecoded bytes`);
    reader.decoder.expire(T0 + UNDECODED_MS_MAX + 1);
    expect(reader.status()).toMatchObject({ waitingSets: 0, drops: { no_template: 200 } });
    expect(reader.status().lastError!.message).toContain("did not arrive within 10 minutes");
    expect(reader.decoder.undecodedBytes).toBe(0);
  });

  test("a template sent again with other fields replaces the first", () => {
    const reader = new PacketReader();
    reader.read(build([known, data]));
    const other: readonly FieldSpec[] = [
      [12, 4],
      [8, 4],
      [2, 4],
      [1, 4],
    ];
    expect(reader.read(build([set(templates, template(256, other)), data]))).toMatchObject([
      { src: "10.0.0.2", dst: "10.0.0.1", bytes: 10n, packets: 1000n },
    ]);
    expect(reader.status().templates).toBe(1);
  });

  test("templates of other domains and other exporters do not apply", () => {
    const reader = new PacketReader();
    reader.read(build([known], { domain: 1 }));
    expect(reader.read(build([data], { domain: 2 }))).toEqual([]);
    expect(reader.read(build([data], { domain: 1 }), { from: "192.0.2.2" })).toEqual([]);
    expect(reader.read(build([data], { domain: 1 }))).toHaveLength(1);
  });

  test("enterprise fields and unknown fields are skipped by their length", () => {
    const fields: readonly FieldSpec[] = [
      [30_000, 7],
      [8, 4],
      [400, 3],
      [12, 4],
      [1, 4],
    ];
    const values = [new Uint8Array(7), ipv4("10.0.0.1"), new Uint8Array(3), ipv4("10.0.0.2"), 5];
    const packet = withRecord(fields, values);
    expect(new PacketReader().read(packet)).toMatchObject([{ ...COUNTER_FLOW, bytes: 5n, packets: 0n }]);
  });

  test("fields of variable length, short and long", () => {
    const fields: readonly FieldSpec[] = [
      [96, VARIABLE],
      [8, 4],
      [82, VARIABLE],
      [12, 4],
      [1, 2],
    ];
    const texts = ["", "short", "x".repeat(254), "y".repeat(255), "z".repeat(3000)];
    const records = texts.map((text) => record(fields, [text, ipv4("10.0.0.1"), text, ipv4("10.0.0.2"), text.length]));
    const packet = build([set(templates, template(256, fields)), set(256, concat(...records))]);
    expect(new PacketReader().read(packet).map(({ bytes }) => Number(bytes))).toEqual(
      texts.map(({ length }) => length),
    );
  });

  test("fields with reduced length, down to one byte", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [1, 3], [2, 1], [7, 1], [11, 2], [4, 2]];
    const packet = withRecord(fields, [...ADDRESS_VALUES, 0xabcdef, 200, 53, 5353, 17]);
    expect(new PacketReader().read(packet)).toMatchObject([
      { bytes: 0xabcdefn, packets: 200n, srcPort: 53, dstPort: 5353, protocol: 17 },
    ]);
  });

  test("the rate that options give for a sampler applies to records that name it", () => {
    const sampler: readonly FieldSpec[] = [
      [48, 1],
      [49, 1],
      [50, 4],
    ];
    const fields: readonly FieldSpec[] = [...COUNTER_FIELDS, [48, 1]];
    const reader = new PacketReader();
    reader.read(
      build([
        set(options, optionsTemplate(400, SCOPE, sampler)),
        set(400, concat(record([...SCOPE, ...sampler], [0, 1, 2, 100]), record([...SCOPE, ...sampler], [0, 2, 2, 10]))),
        set(templates, template(256, fields)),
      ]),
    );
    const read = reader.read(
      build([set(256, concat(...[1, 2, 3].map((id) => record(fields, [...COUNTER_VALUES, id]))))]),
    );
    expect(read.map(({ bytes, packets }) => [bytes, packets])).toEqual([
      [100_000n, 1000n],
      [10_000n, 100n],
      [1000n, 10n],
    ]);
    expect(reader.status()).toMatchObject({ optionRecords: 2, records: 3 });
  });

  test.each([
    [
      "34 alone",
      [
        [34, 4],
        [35, 1],
      ],
      [50, 1],
      50n,
    ],
    [
      "305 and 306",
      [
        [305, 4],
        [306, 4],
      ],
      [1, 999],
      1000n,
    ],
    [
      "size and population",
      [
        [309, 4],
        [310, 4],
      ],
      [2, 8],
      4n,
    ],
    ["0, which is ignored", [[34, 4]], [0], 1n],
  ] as const)("the rate by %s applies to the whole domain", (_, fields, values, rate) => {
    const reader = new PacketReader();
    reader.read(
      build([
        set(options, optionsTemplate(400, SCOPE, fields)),
        set(400, record([...SCOPE, ...fields], [0, ...values])),
        known,
      ]),
    );
    expect(reader.read(build([data]))).toMatchObject([{ bytes: 1000n * rate, packets: 10n * rate }]);
  });

  test("a rate in the record itself takes precedence", () => {
    const fields: readonly FieldSpec[] = [...COUNTER_FIELDS, [34, 4]];
    const packet = withRecord(fields, [...COUNTER_VALUES, 64]);
    expect(new PacketReader().read(packet)).toMatchObject([{ bytes: 64_000n, packets: 640n }]);
  });

  test("counters above 2^53 are multiplied exactly, and saturate at 2^64 - 1", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [1, 8], [2, 8], [34, 4]];
    const packet = withRecord(fields, [...ADDRESS_VALUES, 2n ** 53n + 1n, 2n ** 63n, 3]);
    expect(new PacketReader().read(packet)).toMatchObject([{ bytes: (2n ** 53n + 1n) * 3n, packets: 2n ** 64n - 1n }]);
  });

  test("ICMP type and code become the destination port", () => {
    const fields: readonly FieldSpec[] = [...ADDRESSES, [4, 1], [7, 2], [11, 2], [32, 2]];
    const packet = withRecord(fields, [...ADDRESS_VALUES, 1, 0, 0, 0x0301]);
    expect(new PacketReader().read(packet)).toMatchObject([{ srcPort: 0, dstPort: 0x0301 }]);
  });

  test("a record without addresses is dropped and counted", () => {
    const fields: readonly FieldSpec[] = [
      [1, 4],
      [10, 4],
    ];
    const reader = new PacketReader();
    expect(reader.read(withRecord(fields, [1, 2]))).toEqual([]);
    expect(reader.status()).toMatchObject({ drops: { no_address: 1 }, records: 0, state: "no_records" });
  });

  describe("bad input", () => {
    const reads = (packet: Uint8Array) => {
      const reader = new PacketReader();
      const flows = reader.read(packet);
      return { flows, ...reader.status() };
    };

    test.each(Array.from({ length: 24 }, (_, length) => length))("a packet truncated to %i bytes", (length) => {
      expect(reads(build([known, data]).subarray(0, length)).flows).toEqual([]);
    });

    test("a template whose records have no length is refused", () => {
      const empty: readonly FieldSpec[] = [
        [8, 0],
        [12, 0],
      ];
      const { drops, lastError } = reads(build([set(templates, template(256, empty)), set(256, new Uint8Array(8))]));
      expect(drops.bad_template).toBe(1);
      expect(lastError!.message).toMatch(/template 256.*without length/);
    });

    test("a template whose record fits no packet is refused", () => {
      const huge: readonly FieldSpec[] = [
        [96, 65_534],
        [97, 65_534],
      ];
      expect(reads(build([set(templates, template(256, huge))])).drops.bad_template).toBe(1);
    });

    test("a field length of 65,535 means variable length, in v9 as in IPFIX", () => {
      const fields: readonly FieldSpec[] = [...ADDRESSES, [96, 65_535], [1, 4]];
      const packet = withRecord(fields, [...ADDRESS_VALUES, "name", 77]);
      expect(reads(packet).flows).toMatchObject([{ bytes: 77n }]);
    });

    test("a template with more fields than its set holds, or than the limit", () => {
      expect(reads(build([set(templates, template(256, COUNTER_FIELDS, 60))])).drops.bad_template).toBe(1);
      const many: FieldSpec[] = Array.from({ length: 600 }, () => [96, 1]);
      expect(reads(build([set(templates, template(256, many))])).drops.bad_template).toBe(1);
    });

    test("a set shorter than a record has no records", () => {
      expect(reads(build([known, set(256, new Uint8Array(10))]))).toMatchObject({ flows: [], records: 0 });
    });

    test("a set whose length is less than its header, or more than the rest of the packet", () => {
      expect(reads(build([known, set(256, new Uint8Array(16), { length: 3 })])).drops.malformed).toBe(1);
      expect(reads(build([known, set(256, new Uint8Array(16), { length: 21 })])).drops.truncated).toBe(1);
    });

    test("a field of variable length that exceeds its set", () => {
      const fields: readonly FieldSpec[] = [...ADDRESSES, [96, VARIABLE]];
      const bad = concat(...(ADDRESS_VALUES as Uint8Array[]), Uint8Array.of(255, 255, 255, 1, 2, 3));
      const { flows, drops } = reads(build([set(templates, template(256, fields)), set(256, bad)]));
      expect(flows).toEqual([]);
      expect(drops.truncated).toBe(1);
    });

    test("zeros at the end of a packet are padding", () => {
      const packet = concat(build([known, data]), new Uint8Array(500));
      expect(reads(packet)).toMatchObject({ flows: [COUNTER_FLOW], drops: { malformed: 0, truncated: 0 } });
    });

    test("too many templates of one exporter evict its unused ones and keep its used ones", () => {
      const reader = new PacketReader();
      reader.read(build([known, data]));
      for (let id = 1000; id < 1000 + NETWORK_TEMPLATES_MAX; id++)
        reader.read(build([set(templates, template(id, COUNTER_FIELDS))]));
      const { templates: held, drops } = reader.status();
      expect(held).toBeLessThanOrEqual(NETWORK_TEMPLATES_MAX);
      expect(held + drops.template_evicted).toBe(NETWORK_TEMPLATES_MAX + 1);
      expect(reader.read(build([data]))).toHaveLength(1);
      expect(reader.read(build([set(1050, record(COUNTER_FIELDS, COUNTER_VALUES))]))).toEqual([]);
      expect(reader.status().summary).toContain("template 1050, which was evicted");
    });

    test("a new exporter's template displaces those of exporters that never sent a flow", () => {
      const reader = new PacketReader();
      const some = set(
        templates,
        concat(...Array.from({ length: 100 }, (_, index) => template(300 + index, COUNTER_FIELDS))),
      );
      for (let index = 0; index < TEMPLATES_MAX / 100; index++) reader.read(build([some]), { from: `10.0.0.${index}` });
      expect(reader.decoder.templates).toBe(TEMPLATES_MAX);
      expect(reader.read(build([known, data]))).toHaveLength(1);
      expect(reader.decoder.templates).toBeLessThanOrEqual(TEMPLATES_MAX);
    });

    test("a flood of templates from spoofed exporters stays within limits and does not affect the real exporter", () => {
      const reader = new PacketReader();
      reader.read(build([known, data]));
      const packet = build([
        set(templates, concat(...[256, 257, 258].map((id) => template(id, COUNTER_FIELDS)))),
        set(999, new Uint8Array(40)),
      ]);
      for (let index = 0; index < EXPORTERS_MAX * 3; index++) {
        reader.read(packet, { from: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}` });
      }
      expect(reader.decoder.templates).toBeLessThanOrEqual(TEMPLATES_MAX);
      expect(reader.decoder.status(T0, new Set()).exporters.length).toBeLessThanOrEqual(EXPORTERS_MAX);
      expect(reader.read(build([data]))).toHaveLength(1);
    });
  });
});
