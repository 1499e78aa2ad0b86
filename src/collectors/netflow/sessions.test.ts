import { describe, expect, test } from "vitest";
import {
  concat,
  ipfix,
  ipfixOptions,
  ipv4,
  record,
  set,
  template,
  v5,
  v9,
  v9Options,
  VARIABLE,
  type FieldSpec,
} from "../packets.fixture.ts";
import { Reader } from "../reading.fixture.ts";

const T0 = 1_700_000_000_000;
const FORWARD: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [1, 4],
  [2, 4],
];
/** As long as the other, with the fields in another order. */
const BACKWARD: readonly FieldSpec[] = [
  [12, 4],
  [8, 4],
  [2, 4],
  [1, 4],
];
const [SRC, DST] = [ipv4("10.0.0.1"), ipv4("10.0.0.2")];
const forward = record(FORWARD, [SRC, DST, 1000, 10]);
const backward = record(BACKWARD, [DST, SRC, 10, 1000]);
const FLOW = { src: "10.0.0.1", dst: "10.0.0.2", bytes: 1000n, packets: 10n };

const DIALECTS = [
  { name: "v9", templates: 0, options: 1, build: v9, optionsTemplate: v9Options },
  { name: "IPFIX", templates: 2, options: 3, build: ipfix, optionsTemplate: ipfixOptions },
] as const;

describe.each(DIALECTS)("$name: exporters behind one address", ({ templates, options, build, optionsTemplate }) => {
  const describing = (fields: readonly FieldSpec[]) => build([set(templates, template(256, fields))]);
  const data = (...records: Uint8Array[]) => build([set(256, concat(...records))]);

  test("with the same domain and template id have templates of their own", () => {
    const reader = new Reader();
    reader.read(describing(FORWARD), { port: 1 });
    reader.read(describing(BACKWARD), { port: 2 });
    expect(reader.read(data(forward), { port: 1 })).toMatchObject([FLOW]);
    expect(reader.read(data(backward), { port: 2 })).toMatchObject([FLOW]);
    expect(reader.read(data(forward), { port: 1 })).toMatchObject([FLOW]);
    expect(reader.status()).toMatchObject({ sessions: 2, templates: 2, records: 3 });
  });

  test("do not lend each other templates once both are seen to be alive", () => {
    const reader = new Reader();
    reader.read(describing(FORWARD), { port: 1 });
    reader.read(data(backward), { port: 2, atMs: T0 - 1 });
    reader.read(data(forward), { port: 1 });
    reader.decoder.expire(T0 + 5000);
    reader.decoder.flush();
    expect(reader.flows).toMatchObject([FLOW]);
    expect(reader.status()).toMatchObject({ state: "receiving", missingTemplates: [256] });
    expect(reader.status().summary).toContain("other sessions of the address");
    expect(reader.read(describing(BACKWARD), { port: 2 })).toMatchObject([FLOW]);
  });

  test("an exporter that changes its port goes on with the templates it has described", () => {
    const reader = new Reader();
    reader.read(describing(FORWARD), { port: 1 });
    expect(reader.read(data(forward), { port: 2, atMs: T0 }), "it may yet be another exporter").toEqual([]);
    reader.decoder.expire(T0 + 2000);
    reader.decoder.flush();
    expect(reader.flows).toMatchObject([FLOW]);
    expect(reader.read(data(forward), { port: 2, atMs: T0 + 3000 })).toMatchObject([FLOW]);
    expect(reader.status().drops.no_template).toBe(0);
  });

  test("an exporter that changes its port with every packet, templates too, is followed", () => {
    const reader = new Reader();
    for (let port = 1; port <= 1000; port++) {
      const atMs = T0 + port * 100;
      reader.read(port % 10 === 1 ? describing(FORWARD) : data(forward), { port, atMs });
      reader.decoder.expire(atMs);
    }
    reader.decoder.expire(T0 + 102_000);
    reader.decoder.flush();
    expect(reader.flows).toHaveLength(900);
    expect(reader.flows.every(({ bytes }) => bytes === 1000n)).toBe(true);
    expect(reader.status()).toMatchObject({ waitingSets: 0, drops: { no_template: 0 } });
  });

  test("where two sessions describe a template in two ways, a third waits for its own", () => {
    const reader = new Reader();
    reader.read(describing(FORWARD), { port: 1 });
    reader.read(describing(BACKWARD), { port: 2 });
    expect(reader.read(data(forward), { port: 3 })).toEqual([]);
    expect(reader.read(describing(FORWARD), { port: 3 })).toMatchObject([FLOW]);
  });

  test("a template of another session that does not fill the set is not taken for it", () => {
    const reader = new Reader();
    reader.read(describing(FORWARD), { port: 1 });
    reader.read(data(concat(forward, Uint8Array.of(10, 0, 0, 1, 9, 9))), { port: 2 });
    reader.decoder.expire(T0 + 5000);
    reader.decoder.flush();
    expect(reader.flows).toEqual([]);
    expect(reader.status().waitingSets).toBe(1);
  });

  test("nor is one whose records vary in length, unless they end where the set does", () => {
    const named: readonly FieldSpec[] = [...FORWARD, [96, VARIABLE]];
    const one = record(named, [SRC, DST, 1000, 10, "name"]);
    for (const [content, flows] of [
      [concat(one, one), 2],
      [concat(one, one.subarray(0, 19)), 0],
    ] as const) {
      const reader = new Reader();
      reader.read(describing(named), { port: 1 });
      reader.read(data(content), { port: 2 });
      reader.decoder.expire(T0 + 5000);
      reader.decoder.flush();
      expect(reader.flows).toHaveLength(flows);
    }
  });

  test("data that came by a port before the template came by the next is decoded rather than given up", () => {
    const reader = new Reader();
    reader.read(data(forward), { port: 1, atMs: T0 });
    reader.read(describing(FORWARD), { port: 2, atMs: T0 });
    reader.decoder.expire(T0 + 2000);
    reader.decoder.flush();
    expect(reader.flows).toMatchObject([FLOW]);
    expect(reader.status()).toMatchObject({ waitingSets: 0, drops: { no_template: 0 } });
  });

  test("sample at rates of their own, and one that changes its port keeps its rate", () => {
    const scope: readonly FieldSpec[] = [[1, 4]];
    const rate: readonly FieldSpec[] = [[34, 4]];
    const reader = new Reader();
    const sampled = build([
      set(options, optionsTemplate(400, scope, rate)),
      set(400, record([...scope, ...rate], [0, 50])),
      set(templates, template(256, FORWARD)),
    ]);
    reader.read(sampled, { port: 1 });
    reader.read(data(forward), { port: 2, atMs: T0 });
    reader.decoder.expire(T0 + 2000);
    reader.decoder.flush();
    expect(reader.flows).toMatchObject([{ bytes: 50_000n }]);
    reader.read(describing(FORWARD), { port: 2 });
    expect(reader.read(data(forward), { port: 2 }), "its own template, no options yet").toMatchObject([
      { bytes: 50_000n },
    ]);
    reader.read(data(forward), { port: 1 });
    expect(reader.read(data(forward), { port: 2 }), "another exporter after all").toMatchObject([{ bytes: 1000n }]);
  });
});

test.each([
  ["NetFlow v5", (sequence: number) => v5([{ src: "10.0.0.1", dst: "10.0.0.2" }], { sequence })],
  ["NetFlow v9", (sequence: number) => v9([], { sequence })],
])("%s: numbers of two exporters behind one address are followed apart", (_, packet) => {
  const reader = new Reader();
  for (let index = 0; index < 20; index++) {
    reader.read(packet(100 + index), { port: 1 });
    reader.read(packet(90_000 + index), { port: 2 });
  }
  expect(reader.status()).toMatchObject({ sessions: 2, gaps: 0, lost: 0 });
  reader.read(packet(125), { port: 1 });
  expect(reader.status()).toMatchObject({ gaps: 1, lost: 5 });
});
