import { describe, expect, test } from "vitest";
import { concat, ipv4, record, set, template, v5, v9, VARIABLE, type FieldSpec } from "../packets.fixture.ts";
import { PacketReader } from "../decoded-flows.fixture.ts";
import { COUNTER_FIELDS, COUNTER_FLOW, COUNTER_VALUES, DIALECTS, RATE, SCOPE, T0 } from "./netflow-records.fixture.ts";

/** The same fields as COUNTER_FIELDS in another order. */
const REORDERED_FIELDS: readonly FieldSpec[] = [
  [12, 4],
  [8, 4],
  [2, 4],
  [1, 4],
];
const ordered = record(COUNTER_FIELDS, COUNTER_VALUES);
const reordered = record(REORDERED_FIELDS, [ipv4("10.0.0.2"), ipv4("10.0.0.1"), 10, 1000]);

describe.each(DIALECTS)(
  "$name: exporters behind one address",
  ({ templates, options, build, optionsTemplate, describing }) => {
    const data = (...records: Uint8Array[]) => build([set(256, concat(...records))]);

    test("with the same domain and template id have separate templates", () => {
      const reader = new PacketReader();
      reader.read(describing(COUNTER_FIELDS), { port: 1 });
      reader.read(describing(REORDERED_FIELDS), { port: 2 });
      expect(reader.read(data(ordered), { port: 1 })).toMatchObject([COUNTER_FLOW]);
      expect(reader.read(data(reordered), { port: 2 })).toMatchObject([COUNTER_FLOW]);
      expect(reader.read(data(ordered), { port: 1 })).toMatchObject([COUNTER_FLOW]);
      expect(reader.status()).toMatchObject({ sessions: 2, templates: 2, records: 3 });
    });

    test("do not borrow templates from each other once both are known to be alive", () => {
      const reader = new PacketReader();
      reader.read(describing(COUNTER_FIELDS), { port: 1 });
      reader.read(data(reordered), { port: 2, atMs: T0 - 1 });
      reader.read(data(ordered), { port: 1 });
      reader.expire(T0 + 5000);
      expect(reader.flows).toMatchObject([COUNTER_FLOW]);
      expect(reader.status()).toMatchObject({ state: "receiving", missingTemplates: [256] });
      expect(reader.status().summary).toContain("other sessions of the address");
      expect(reader.read(describing(REORDERED_FIELDS), { port: 2 })).toMatchObject([COUNTER_FLOW]);
    });

    test("an exporter that changes its port keeps its templates", () => {
      const reader = new PacketReader();
      reader.read(describing(COUNTER_FIELDS), { port: 1 });
      expect(reader.read(data(ordered), { port: 2, atMs: T0 }), "it may still be another exporter").toEqual([]);
      reader.expire(T0 + 2000);
      expect(reader.flows).toMatchObject([COUNTER_FLOW]);
      expect(reader.read(data(ordered), { port: 2, atMs: T0 + 3000 })).toMatchObject([COUNTER_FLOW]);
      expect(reader.status().drops.no_template).toBe(0);
    });

    test("an exporter that changes its port with every packet keeps its templates", () => {
      const reader = new PacketReader();
      for (let port = 1; port <= 1000; port++) {
        const atMs = T0 + port * 100;
        reader.read(port % 10 === 1 ? describing(COUNTER_FIELDS) : data(ordered), { port, atMs });
        reader.decoder.expire(atMs);
      }
      reader.expire(T0 + 102_000);
      expect(reader.flows).toHaveLength(900);
      expect(reader.flows.every(({ bytes }) => bytes === 1000n)).toBe(true);
      expect(reader.status()).toMatchObject({ waitingSets: 0, drops: { no_template: 0 } });
    });

    test("if two sessions describe a template differently, a third waits for its own", () => {
      const reader = new PacketReader();
      reader.read(describing(COUNTER_FIELDS), { port: 1 });
      reader.read(describing(REORDERED_FIELDS), { port: 2 });
      expect(reader.read(data(ordered), { port: 3 })).toEqual([]);
      expect(reader.read(describing(COUNTER_FIELDS), { port: 3 })).toMatchObject([COUNTER_FLOW]);
    });

    test("a template of another session that does not fill the set is not borrowed", () => {
      const reader = new PacketReader();
      reader.read(describing(COUNTER_FIELDS), { port: 1 });
      reader.read(data(concat(ordered, Uint8Array.of(10, 0, 0, 1, 9, 9))), { port: 2 });
      reader.expire(T0 + 5000);
      expect(reader.flows).toEqual([]);
      expect(reader.status().waitingSets).toBe(1);
    });

    test("a template with records of variable length is borrowed only if they end where the set does", () => {
      const named: readonly FieldSpec[] = [...COUNTER_FIELDS, [96, VARIABLE]];
      const one = record(named, [...COUNTER_VALUES, "name"]);
      for (const [content, flows] of [
        [concat(one, one), 2],
        [concat(one, one.subarray(0, 19)), 0],
      ] as const) {
        const reader = new PacketReader();
        reader.read(describing(named), { port: 1 });
        reader.read(data(content), { port: 2 });
        reader.expire(T0 + 5000);
        expect(reader.flows).toHaveLength(flows);
      }
    });

    test("data from one port is decoded with the template that arrives on the next port", () => {
      const reader = new PacketReader();
      reader.read(data(ordered), { port: 1, atMs: T0 });
      reader.read(describing(COUNTER_FIELDS), { port: 2, atMs: T0 });
      reader.expire(T0 + 2000);
      expect(reader.flows).toMatchObject([COUNTER_FLOW]);
      expect(reader.status()).toMatchObject({ waitingSets: 0, drops: { no_template: 0 } });
    });

    test("have separate sampling rates, and one that changes its port keeps its rate", () => {
      const reader = new PacketReader();
      const sampled = build([
        set(options, optionsTemplate(400, SCOPE, RATE)),
        set(400, record([...SCOPE, ...RATE], [0, 50])),
        set(templates, template(256, COUNTER_FIELDS)),
      ]);
      reader.read(sampled, { port: 1 });
      reader.read(data(ordered), { port: 2, atMs: T0 });
      reader.expire(T0 + 2000);
      expect(reader.flows).toMatchObject([{ bytes: 50_000n }]);
      reader.read(describing(COUNTER_FIELDS), { port: 2 });
      expect(reader.read(data(ordered), { port: 2 }), "its own template, but no options yet").toMatchObject([
        { bytes: 50_000n },
      ]);
      reader.read(data(ordered), { port: 1 });
      expect(reader.read(data(ordered), { port: 2 }), "another exporter after all").toMatchObject([{ bytes: 1000n }]);
    });
  },
);

test.each([
  ["NetFlow v5", (sequence: number) => v5([{ src: "10.0.0.1", dst: "10.0.0.2" }], { sequence })],
  ["NetFlow v9", (sequence: number) => v9([], { sequence })],
])("%s: sequence numbers of two exporters behind one address are tracked separately", (_, packet) => {
  const reader = new PacketReader();
  for (let index = 0; index < 20; index++) {
    reader.read(packet(100 + index), { port: 1 });
    reader.read(packet(90_000 + index), { port: 2 });
  }
  expect(reader.status()).toMatchObject({ sessions: 2, gaps: 0, lost: 0 });
  reader.read(packet(125), { port: 1 });
  expect(reader.status()).toMatchObject({ gaps: 1, lost: 5 });
});
