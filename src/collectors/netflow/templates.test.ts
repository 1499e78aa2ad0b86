import { describe, expect, test } from "vitest";
import { EXPORTERS_MAX, NETWORK_TEMPLATES_MAX, TEMPLATES_MAX } from "../decoder.ts";
import {
  concat,
  ipfix,
  ipfixOptions,
  ipv4,
  record,
  set,
  template,
  v9,
  v9Options,
  VARIABLE,
  type FieldSpec,
  type FieldValue,
} from "../packets.fixture.ts";
import { Reader } from "../reading.fixture.ts";
import { SET_COST_BYTES, WAITING_MS_MAX, WAITING_NETWORK_BYTES_MAX } from "./waiting.ts";

const T0 = 1_700_000_000_000;
const ENDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
];
const ENDS_VALUES: readonly FieldValue[] = [ipv4("10.0.0.1"), ipv4("10.0.0.2")];
const BASIC: readonly FieldSpec[] = [...ENDS, [1, 4], [2, 4]];
const BASIC_VALUES: readonly FieldValue[] = [...ENDS_VALUES, 1000, 10];
const six = (last: number) => Uint8Array.of(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last);

/** The two dialects, so that what holds for both is said once. */
const DIALECTS = [
  { name: "v9", templates: 0, options: 1, build: v9, optionsTemplate: v9Options },
  { name: "IPFIX", templates: 2, options: 3, build: ipfix, optionsTemplate: ipfixOptions },
] as const;

describe.each(DIALECTS)("$name", ({ templates, options, build, optionsTemplate }) => {
  const known = set(templates, template(256, BASIC));
  const data = set(256, record(BASIC, BASIC_VALUES));
  const row = { src: "10.0.0.1", dst: "10.0.0.2", bytes: 1000n, packets: 10n };

  test("several templates in a set and several sets in a packet, with padding after records", () => {
    const wide: readonly FieldSpec[] = [
      [27, 16],
      [28, 16],
      [1, 8],
      [4, 1],
    ];
    const packet = build([
      set(templates, concat(template(256, BASIC), template(257, wide))),
      set(256, concat(record(BASIC, BASIC_VALUES), record(BASIC, BASIC_VALUES), Uint8Array.of(0, 0, 0))),
      set(257, record(wide, [six(1), six(2), 2n ** 64n - 1n, 58])),
    ]);
    expect(new Reader().read(packet)).toMatchObject([
      row,
      row,
      { src: "2001:db8::1", dst: "2001:db8::2", bytes: 2n ** 64n - 1n, protocol: 58 },
    ]);
  });

  test("data before its template is kept, and decoded with its own clock when the template comes", () => {
    const reader = new Reader(60_000);
    expect(reader.read(build([data], { seconds: 1_700_000_000 }), { atMs: T0 })).toEqual([]);
    expect(reader.status()).toMatchObject({ state: "no_template", missingTemplates: [256], waitingSets: 1 });
    expect(reader.status().summary).toMatch(/no template yet.*256/);
    const later = { seconds: 1_700_000_100, sequence: 1 };
    expect(reader.read(build([known], later), { atMs: T0 + 100_000 })).toMatchObject([{ ...row, lastSeen: T0 }]);
    expect(reader.status("192.0.2.1", T0 + 100_000)).toMatchObject({
      state: "receiving",
      missingTemplates: [],
      waitingSets: 0,
    });
  });

  test("what waits too long, or is too much, is given up and counted", () => {
    const reader = new Reader();
    const large = set(300, new Uint8Array(60_000));
    for (let index = 0; index < 200; index++) reader.read(build([large]), { atMs: T0 });
    const { waitingSets, drops } = reader.status();
    expect(waitingSets).toBe(Math.floor(WAITING_NETWORK_BYTES_MAX / (60_000 + SET_COST_BYTES)));
    expect(drops.no_template).toBe(200 - waitingSets);
    expect(reader.status().lastError!.message).toContain(`${WAITING_NETWORK_BYTES_MAX} bytes waiting`);
    reader.decoder.expire(T0 + WAITING_MS_MAX + 1);
    expect(reader.status()).toMatchObject({ waitingSets: 0, drops: { no_template: 200 } });
    expect(reader.status().lastError!.message).toContain("did not come within 10 minutes");
    expect(reader.decoder.waitingBytes).toBe(0);
  });

  test("a template that is sent again with other fields takes the place of the first", () => {
    const reader = new Reader();
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

  test("templates of other domains and other exporters are not meant", () => {
    const reader = new Reader();
    reader.read(build([known], { domain: 1 }));
    expect(reader.read(build([data], { domain: 2 }))).toEqual([]);
    expect(reader.read(build([data], { domain: 1 }), { from: "192.0.2.2" })).toEqual([]);
    expect(reader.read(build([data], { domain: 1 }))).toHaveLength(1);
  });

  test("fields of enterprises and unknown ones are skipped by their length", () => {
    const fields: readonly FieldSpec[] = [
      [30_000, 7],
      [8, 4],
      [400, 3],
      [12, 4],
      [1, 4],
    ];
    const values = [new Uint8Array(7), ipv4("10.0.0.1"), new Uint8Array(3), ipv4("10.0.0.2"), 5];
    const packet = build([set(templates, template(256, fields)), set(256, record(fields, values))]);
    expect(new Reader().read(packet)).toMatchObject([{ ...row, bytes: 5n, packets: 0n }]);
  });

  test("fields of varying length, short and long", () => {
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
    expect(new Reader().read(packet).map(({ bytes }) => Number(bytes))).toEqual(texts.map(({ length }) => length));
  });

  test("fields in fewer bytes than usual, down to one", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [1, 3], [2, 1], [7, 1], [11, 2], [4, 2]];
    const packet = build([
      set(templates, template(256, fields)),
      set(256, record(fields, [...ENDS_VALUES, 0xabcdef, 200, 53, 5353, 17])),
    ]);
    expect(new Reader().read(packet)).toMatchObject([
      { bytes: 0xabcdefn, packets: 200n, srcPort: 53, dstPort: 5353, protocol: 17 },
    ]);
  });

  test("the rate that options tell for a sampler applies to records that name it", () => {
    const sampler: readonly FieldSpec[] = [
      [48, 1],
      [49, 1],
      [50, 4],
    ];
    const scope: readonly FieldSpec[] = [[1, 4]];
    const fields: readonly FieldSpec[] = [...BASIC, [48, 1]];
    const reader = new Reader();
    reader.read(
      build([
        set(options, optionsTemplate(400, scope, sampler)),
        set(400, concat(record([...scope, ...sampler], [0, 1, 2, 100]), record([...scope, ...sampler], [0, 2, 2, 10]))),
        set(templates, template(256, fields)),
      ]),
    );
    const read = reader.read(
      build([set(256, concat(...[1, 2, 3].map((id) => record(fields, [...BASIC_VALUES, id]))))]),
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
      "305 of 305 and 306",
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
    ["0, which is nothing", [[34, 4]], [0], 1n],
  ] as const)("the rate by %s applies to the whole domain", (_, fields, values, rate) => {
    const reader = new Reader();
    const scope: readonly FieldSpec[] = [[1, 4]];
    reader.read(
      build([
        set(options, optionsTemplate(400, scope, fields)),
        set(400, record([...scope, ...fields], [0, ...values])),
        known,
      ]),
    );
    expect(reader.read(build([data]))).toMatchObject([{ bytes: 1000n * rate, packets: 10n * rate }]);
  });

  test("a rate in the record itself wins", () => {
    const fields: readonly FieldSpec[] = [...BASIC, [34, 4]];
    const packet = build([set(templates, template(256, fields)), set(256, record(fields, [...BASIC_VALUES, 64]))]);
    expect(new Reader().read(packet)).toMatchObject([{ bytes: 64_000n, packets: 640n }]);
  });

  test("counters beyond 2^53 are multiplied exactly, and stay at the maximum beyond 2^64", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [1, 8], [2, 8], [34, 4]];
    const packet = build([
      set(templates, template(256, fields)),
      set(256, record(fields, [...ENDS_VALUES, 2n ** 53n + 1n, 2n ** 63n, 3])),
    ]);
    expect(new Reader().read(packet)).toMatchObject([{ bytes: (2n ** 53n + 1n) * 3n, packets: 2n ** 64n - 1n }]);
  });

  test("ICMP has its type and code in the destination port", () => {
    const fields: readonly FieldSpec[] = [...ENDS, [4, 1], [7, 2], [11, 2], [32, 2]];
    const packet = build([
      set(templates, template(256, fields)),
      set(256, record(fields, [...ENDS_VALUES, 1, 0, 0, 0x0301])),
    ]);
    expect(new Reader().read(packet)).toMatchObject([{ srcPort: 0, dstPort: 0x0301 }]);
  });

  test("a record without any address is no flow, and counted", () => {
    const fields: readonly FieldSpec[] = [
      [1, 4],
      [10, 4],
    ];
    const reader = new Reader();
    expect(reader.read(build([set(templates, template(256, fields)), set(256, record(fields, [1, 2]))]))).toEqual([]);
    expect(reader.status()).toMatchObject({ drops: { no_address: 1 }, records: 0, state: "no_records" });
  });

  describe("bad input", () => {
    const reads = (packet: Uint8Array) => {
      const reader = new Reader();
      const flows = reader.read(packet);
      return { flows, ...reader.status() };
    };

    test.each(Array.from({ length: 24 }, (_, length) => length))("a packet cut after %i bytes", (length) => {
      expect(reads(build([known, data]).subarray(0, length)).flows).toEqual([]);
    });

    test("a template of no length is refused: its records would never end", () => {
      const empty: readonly FieldSpec[] = [
        [8, 0],
        [12, 0],
      ];
      const { drops, lastError } = reads(build([set(templates, template(256, empty)), set(256, new Uint8Array(8))]));
      expect(drops.bad_template).toBe(1);
      expect(lastError!.message).toMatch(/template 256.*no length|came before|256/);
    });

    test("a template whose record no packet could hold is refused", () => {
      const huge: readonly FieldSpec[] = [
        [96, 65_534],
        [97, 65_534],
      ];
      expect(reads(build([set(templates, template(256, huge))])).drops.bad_template).toBe(1);
    });

    test("a field of 65,535 bytes is one of varying length, in v9 as in IPFIX", () => {
      const fields: readonly FieldSpec[] = [...ENDS, [96, 65_535], [1, 4]];
      const packet = build([
        set(templates, template(256, fields)),
        set(256, record(fields, [...ENDS_VALUES, "name", 77])),
      ]);
      expect(reads(packet).flows).toMatchObject([{ bytes: 77n }]);
    });

    test("a template with more fields than its set holds, or than any has", () => {
      expect(reads(build([set(templates, template(256, BASIC, 60))])).drops.bad_template).toBe(1);
      const many: FieldSpec[] = Array.from({ length: 600 }, () => [96, 1]);
      expect(reads(build([set(templates, template(256, many))])).drops.bad_template).toBe(1);
    });

    test("a set shorter than a record of it holds none", () => {
      expect(reads(build([known, set(256, new Uint8Array(10))]))).toMatchObject({ flows: [], records: 0 });
    });

    test("a set whose length is less than its header, or more than is left", () => {
      expect(reads(build([known, set(256, new Uint8Array(16), { length: 3 })])).drops.malformed).toBe(1);
      expect(reads(build([known, set(256, new Uint8Array(16), { length: 21 })])).drops.truncated).toBe(1);
    });

    test("a field of varying length that reaches beyond its set", () => {
      const fields: readonly FieldSpec[] = [...ENDS, [96, VARIABLE]];
      const bad = concat(...(ENDS_VALUES as Uint8Array[]), Uint8Array.of(255, 255, 255, 1, 2, 3));
      const { flows, drops } = reads(build([set(templates, template(256, fields)), set(256, bad)]));
      expect(flows).toEqual([]);
      expect(drops.truncated).toBe(1);
    });

    test("a packet filled up with zeros ends where they begin", () => {
      const packet = concat(build([known, data]), new Uint8Array(500));
      expect(reads(packet)).toMatchObject({ flows: [row], drops: { malformed: 0, truncated: 0 } });
    });

    test("too many templates of one exporter evict those that it never used, and those that it has used are kept", () => {
      const reader = new Reader();
      reader.read(build([known, data]));
      for (let id = 1000; id < 1000 + NETWORK_TEMPLATES_MAX; id++)
        reader.read(build([set(templates, template(id, BASIC))]));
      const { templates: held, drops } = reader.status();
      expect(held).toBeLessThanOrEqual(NETWORK_TEMPLATES_MAX);
      expect(held + drops.template_evicted).toBe(NETWORK_TEMPLATES_MAX + 1);
      expect(reader.read(build([data]))).toHaveLength(1);
      expect(reader.read(build([set(1050, record(BASIC, BASIC_VALUES))]))).toEqual([]);
      expect(reader.status().summary).toContain("template 1050, which was evicted");
    });

    test("a newcomer's template finds room among those of exporters that never sent a flow", () => {
      const reader = new Reader();
      const some = set(templates, concat(...Array.from({ length: 100 }, (_, index) => template(300 + index, BASIC))));
      for (let index = 0; index < TEMPLATES_MAX / 100; index++) reader.read(build([some]), { from: `10.0.0.${index}` });
      expect(reader.decoder.templates).toBe(TEMPLATES_MAX);
      expect(reader.read(build([known, data]))).toHaveLength(1);
      expect(reader.decoder.templates).toBeLessThanOrEqual(TEMPLATES_MAX);
    });

    test("templates of made-up exporters without end stay within bounds and leave the real one alone", () => {
      const reader = new Reader();
      reader.read(build([known, data]));
      const packet = build([
        set(templates, concat(...[256, 257, 258].map((id) => template(id, BASIC)))),
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
