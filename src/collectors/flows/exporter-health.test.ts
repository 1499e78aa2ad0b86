import { describe, expect, test } from "vitest";
import { ethernet, flowSample, ipfix, rawHeader, record, set, sflow, template, v5, v9 } from "./packets.fixture.ts";
import { PacketReader } from "./decoded-flows.fixture.ts";
import { ADDRESS_VALUES, BYTES_FIELDS, BYTES_VALUES, MINUTE, T0 } from "./netflow/netflow-records.fixture.ts";

const DATA = set(256, record(BYTES_FIELDS, BYTES_VALUES));
const KNOWN = set(0, template(256, BYTES_FIELDS));
const flow = { src: "10.0.0.1", dst: "10.0.0.2" };

describe("a wrong clock", () => {
  test("is not given as the reason for missing flows when only templates have arrived", () => {
    const reader = new PacketReader(MINUTE);
    reader.read(v9([KNOWN], { seconds: 1_700_000_000 - 301 }), { atMs: T0 });
    expect(reader.status()).toMatchObject({
      state: "no_records",
      summary: "templates or options are coming in, but no flow record yet",
      clockCorrected: true,
      lastError: null,
    });
  });

  test("is reported with the flows that come in", () => {
    const reader = new PacketReader(MINUTE);
    reader.read(v5([flow], { seconds: 1_700_000_000 - 301 }), { atMs: T0 });
    expect(reader.status()).toMatchObject({
      state: "receiving",
      summary: "flows are coming in; its clock is 301 seconds behind; the times of its flows are corrected",
    });
  });
});

describe("data without its template", () => {
  test("names a template that was never sent", () => {
    const reader = new PacketReader();
    reader.read(v9([DATA]));
    expect(reader.status().summary).toBe(
      "no template yet: data needs template 256, which the exporter has not sent yet; most exporters resend templates within minutes",
    );
  });

  test("names a refused template with the reason", () => {
    const reader = new PacketReader();
    reader.read(v9([set(0, template(256, [[8, 0]])), DATA]));
    expect(reader.status()).toMatchObject({
      state: "no_template",
      summary: "no template yet: data needs template 256, which was refused: it describes records without length",
    });
  });

  test("stays reported when many unneeded templates are refused", () => {
    const reader = new PacketReader();
    reader.read(v9([DATA]));
    for (let id = 1000; id < 1100; id++) reader.read(v9([set(0, template(id, [[8, 0]]))]));
    expect(reader.status().missingTemplates).toEqual([256]);
  });

  test("names a withdrawn template", () => {
    const reader = new PacketReader();
    reader.read(ipfix([set(2, template(256, BYTES_FIELDS)), set(2, template(256, [])), DATA]));
    expect(reader.status().summary).toContain("template 256, which the exporter has withdrawn");
  });

  test("names an expired template", () => {
    const reader = new PacketReader();
    reader.read(v9([KNOWN]), { atMs: T0 });
    reader.decoder.expire(T0 + 31 * MINUTE);
    reader.read(v9([DATA], { sequence: 1 }), { atMs: T0 + 31 * MINUTE });
    expect(reader.status("192.0.2.1", T0 + 31 * MINUTE).summary).toContain("template 256, which expired");
  });

  test("is reported while flows of other templates come in", () => {
    const reader = new PacketReader();
    reader.read(v9([set(300, new Uint8Array(40))]), { atMs: T0 });
    reader.read(v9([KNOWN, DATA], { sequence: 1 }), { atMs: T0 + 1000 });
    const { state, summary } = reader.status("192.0.2.1", T0 + 1000);
    expect(state).toBe("receiving");
    expect(summary).toContain("flows are coming in; data needs template 300, which the exporter has not sent");
  });

  test("is no longer reported once none has arrived for ten minutes", () => {
    const reader = new PacketReader();
    reader.read(v9([DATA]), { atMs: T0 });
    const laterMs = T0 + 11 * MINUTE;
    reader.decoder.expire(laterMs);
    reader.read(v9([KNOWN], { domain: 1 }), { atMs: laterMs });
    const { state, missingTemplates } = reader.status("192.0.2.1", laterMs);
    expect({ state, missingTemplates }).toEqual({ state: "failing", missingTemplates: [] });
  });

  test("counts as one drop per set, and as one per record once the template is known", () => {
    const reader = new PacketReader();
    const records = Array.from({ length: 100 }, () => record(BYTES_FIELDS, [...ADDRESS_VALUES, 1]));
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
  test("an old failure is not given as the reason", () => {
    const reader = new PacketReader();
    reader.read(Uint8Array.of(0, 7, 0, 0), { atMs: T0 });
    reader.read(v9([KNOWN]), { atMs: T0 + 10 * MINUTE });
    expect(reader.status("192.0.2.1", T0 + 10 * MINUTE)).toMatchObject({
      state: "no_records",
      summary: "templates or options are coming in, but no flow record yet",
    });
  });

  test("records without addresses are reported as such", () => {
    const reader = new PacketReader();
    reader.read(v9([set(0, template(256, [[1, 4]])), set(256, new Uint8Array(4))]));
    reader.read(sflow([flowSample([rawHeader(ethernet(new Uint8Array(40), { type: 0x88cc }), 60)])]), {
      from: "192.0.2.2",
    });
    for (const from of ["192.0.2.1", "192.0.2.2"]) {
      expect(reader.status(from)).toMatchObject({
        state: "no_records",
        summary: "records are coming in, but they have no source and destination address",
      });
    }
  });

  test("flows that have stopped are reported with their age", () => {
    const reader = new PacketReader();
    reader.read(v9([KNOWN, DATA]), { atMs: T0 });
    reader.read(v9([KNOWN], { sequence: 1 }), { atMs: T0 + 30 * MINUTE });
    expect(reader.status("192.0.2.1", T0 + 30 * MINUTE)).toMatchObject({
      state: "no_records",
      summary: "packets are coming in, but the last flow record arrived 30 minutes ago",
    });
  });
});
