import { describe, expect, test } from "vitest";
import {
  ethernet,
  flowSample,
  ipfix,
  ipv4,
  rawHeader,
  record,
  set,
  sflow,
  template,
  v5,
  v9,
  type FieldSpec,
} from "./packets.fixture.ts";
import { Reader } from "./reading.fixture.ts";

// What /v1/collectors says of an exporter must be true.

const T0 = 1_700_000_000_000;
const MINUTE = 60_000;
const FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [1, 4],
];
const DATA = set(256, record(FIELDS, [ipv4("10.0.0.1"), ipv4("10.0.0.2"), 1000]));
const KNOWN = set(0, template(256, FIELDS));
const flow = { src: "10.0.0.1", dst: "10.0.0.2" };

describe("a clock that is off", () => {
  test("is not why there are no flows yet, when only templates have come", () => {
    const reader = new Reader(MINUTE);
    reader.read(v9([KNOWN], { seconds: 1_700_000_000 - 301 }), { atMs: T0 });
    expect(reader.status()).toMatchObject({
      state: "no_records",
      summary: "templates or options are coming in, but no flow record yet",
      clockCorrected: true,
      lastError: null,
    });
  });

  test("is told of beside the flows that come in", () => {
    const reader = new Reader(MINUTE);
    reader.read(v5([flow], { seconds: 1_700_000_000 - 301 }), { atMs: T0 });
    expect(reader.status()).toMatchObject({
      state: "receiving",
      summary: "flows are coming in; its clock is 301 seconds behind, and the times of its flows are corrected by that",
    });
  });
});

describe("data without its template", () => {
  test("names a template that was never described as such", () => {
    const reader = new Reader();
    reader.read(v9([DATA]));
    expect(reader.status().summary).toBe(
      "no template yet: data has come for template 256, which its exporter has not described; most send templates again within minutes",
    );
  });

  test("names a template that was refused, and why", () => {
    const reader = new Reader();
    reader.read(v9([set(0, template(256, [[8, 0]])), DATA]));
    expect(reader.status()).toMatchObject({
      state: "no_template",
      summary: "no template yet: data has come for template 256, which was refused: it describes records of no length",
    });
  });

  test("is not forgotten for templates that were refused and that nothing needs", () => {
    const reader = new Reader();
    reader.read(v9([DATA]));
    for (let id = 1000; id < 1100; id++) reader.read(v9([set(0, template(id, [[8, 0]]))]));
    expect(reader.status().missingTemplates).toEqual([256]);
  });

  test("names a template that was withdrawn", () => {
    const reader = new Reader();
    reader.read(ipfix([set(2, template(256, FIELDS)), set(2, template(256, [])), DATA]));
    expect(reader.status().summary).toContain("template 256, which its exporter has withdrawn");
  });

  test("names a template that expired", () => {
    const reader = new Reader();
    reader.read(v9([KNOWN]), { atMs: T0 });
    reader.decoder.expire(T0 + 31 * MINUTE);
    reader.read(v9([DATA], { sequence: 1 }), { atMs: T0 + 31 * MINUTE });
    expect(reader.status("192.0.2.1", T0 + 31 * MINUTE).summary).toContain("template 256, which expired");
  });

  test("is told of where flows of other templates come in", () => {
    const reader = new Reader();
    reader.read(v9([set(300, new Uint8Array(40))]), { atMs: T0 });
    reader.read(v9([KNOWN, DATA], { sequence: 1 }), { atMs: T0 + 1000 });
    const { state, summary } = reader.status("192.0.2.1", T0 + 1000);
    expect(state).toBe("receiving");
    expect(summary).toContain("flows are coming in; data has come for template 300, which its exporter has not");
  });

  test("is no longer told of once none has come for ten minutes", () => {
    const reader = new Reader();
    reader.read(v9([DATA]), { atMs: T0 });
    const laterMs = T0 + 11 * MINUTE;
    reader.decoder.expire(laterMs);
    reader.read(v9([KNOWN], { domain: 1 }), { atMs: laterMs });
    const { state, missingTemplates } = reader.status("192.0.2.1", laterMs);
    expect({ state, missingTemplates }).toEqual({ state: "failing", missingTemplates: [] });
  });

  test("counts as one drop for each set, and for each record once the template says how long they are", () => {
    const reader = new Reader();
    const records = Array.from({ length: 100 }, () => record(FIELDS, [ipv4("10.0.0.1"), ipv4("10.0.0.2"), 1]));
    for (let index = 0; index < 5; index++) {
      reader.read(v9([set(256, Uint8Array.from(records.flatMap((one) => [...one])))]), { atMs: T0 });
    }
    reader.decoder.expire(T0 + 11 * MINUTE);
    expect(reader.status().drops.no_template).toBe(5);
    reader.read(v9([KNOWN]), { atMs: T0 + 12 * MINUTE });
    expect(reader.status().drops.no_template).toBe(500);
  });
});

describe("packets without flows", () => {
  test("a failure that is long past is not why", () => {
    const reader = new Reader();
    reader.read(Uint8Array.of(0, 7, 0, 0), { atMs: T0 });
    reader.read(v9([KNOWN]), { atMs: T0 + 10 * MINUTE });
    expect(reader.status("192.0.2.1", T0 + 10 * MINUTE)).toMatchObject({
      state: "no_records",
      summary: "templates or options are coming in, but no flow record yet",
    });
  });

  test("records without addresses are said to be that", () => {
    const reader = new Reader();
    reader.read(v9([set(0, template(256, [[1, 4]])), set(256, new Uint8Array(4))]));
    reader.read(sflow([flowSample([rawHeader(ethernet(new Uint8Array(40), { type: 0x88cc }), 60)])]), {
      from: "192.0.2.2",
    });
    for (const from of ["192.0.2.1", "192.0.2.2"]) {
      expect(reader.status(from)).toMatchObject({
        state: "no_records",
        summary: "records are coming in, but none has the addresses of both ends of a flow",
      });
    }
  });

  test("flows that have stopped are said to have", () => {
    const reader = new Reader();
    reader.read(v9([KNOWN, DATA]), { atMs: T0 });
    reader.read(v9([KNOWN], { sequence: 1 }), { atMs: T0 + 30 * MINUTE });
    expect(reader.status("192.0.2.1", T0 + 30 * MINUTE)).toMatchObject({
      state: "no_records",
      summary: "packets are coming in, but the last flow record came 30 minutes ago",
    });
  });
});
