import { describe, expect, test } from "vitest";
import { concat, ipfix, record, set, template, v5, v9, type FieldSpec } from "../packets.fixture.ts";
import { PacketReader } from "../decoded-flows.fixture.ts";
import { BYTES_FIELDS, BYTES_VALUES, MINUTE, T0 } from "./netflow-records.fixture.ts";

const DATA = record(BYTES_FIELDS, BYTES_VALUES);
const KNOWN = set(2, template(256, BYTES_FIELDS));
const GATEWAY = "198.51.100.1";

const totalDrops = (reader: PacketReader) => reader.decoder.status(T0, new Set()).drops;

/** Sends a thousand templates of one field each, in several packets. */
function thousandTemplates(reader: PacketReader, from: string, atMs: number, port = 2055): void {
  for (let base = 1000; base < 2000; base += 200) {
    const templates = Array.from({ length: 200 }, (_, index) => template(base + index, [[1, 4]]));
    reader.read(ipfix([set(2, concat(...templates))]), { from, atMs, port });
  }
}

describe("a flood of templates", () => {
  test("from ten addresses that have each sent a flow does not keep out a new gateway's template", () => {
    const reader = new PacketReader();
    for (let host = 1; host <= 10; host++) {
      reader.read(v5([{ src: "10.0.0.1", dst: "10.0.0.2" }]), { from: `192.0.2.${host}`, atMs: T0 });
      thousandTemplates(reader, `192.0.2.${host}`, T0);
    }
    const atMs = T0 + 40 * MINUTE;
    expect(reader.read(ipfix([KNOWN, set(256, DATA)]), { from: GATEWAY, atMs })).toHaveLength(1);
    expect(totalDrops(reader)["template_evicted"]).toBeGreaterThan(0);
  });

  test("does not keep out gateways that appear one after the other while it continues, templates first", () => {
    const reader = new PacketReader();
    const gateways = Array.from({ length: 50 }, (_, index) => `198.51.100.${index}`);
    for (let host = 1; host <= 12; host++) thousandTemplates(reader, `192.0.2.${host}`, T0);
    for (const from of gateways) reader.read(ipfix([KNOWN]), { from, atMs: T0 + 1 });
    const flows = gateways.flatMap((from) => reader.read(ipfix([set(256, DATA)]), { from, atMs: T0 + 2 }));
    expect(flows).toHaveLength(gateways.length);
  });

  test("from addresses that send data for each template does not displace a gateway's template", () => {
    const reader = new PacketReader();
    reader.read(ipfix([KNOWN, set(256, DATA)]), { from: GATEWAY, atMs: T0 });
    for (let host = 1; host <= 20; host++) {
      for (let id = 1000; id < 2000; id++) {
        const packet = ipfix([set(2, template(id, BYTES_FIELDS)), set(id, DATA)]);
        reader.read(packet, { from: `192.0.2.${host}`, atMs: T0 + host * 1000 });
      }
    }
    expect(reader.decoder.templates).toBeLessThanOrEqual(10_000);
    expect(reader.read(ipfix([set(256, DATA)]), { from: GATEWAY, atMs: T0 + MINUTE })).toHaveLength(1);
  });

  test("from one IPv6 host counts as one network, whichever address of its /64 it uses", () => {
    const reader = new PacketReader();
    for (let host = 1; host <= 20; host++) thousandTemplates(reader, `2001:db8::${host}`, T0);
    expect(reader.decoder.templates).toBeLessThanOrEqual(1000);
    thousandTemplates(reader, "2001:db8:0:1::1", T0);
    expect(reader.decoder.templates).toBeGreaterThan(1000);
  });

  test("from every port of one address counts as one network", () => {
    const reader = new PacketReader();
    reader.read(ipfix([KNOWN, set(256, DATA)]), { from: GATEWAY, atMs: T0 });
    for (let port = 1; port < 5000; port++) reader.read(ipfix([KNOWN]), { from: GATEWAY, port, atMs: T0 + 1 });
    expect(reader.decoder.templates).toBeLessThanOrEqual(1000);
    expect(reader.decoder.domains).toBeLessThanOrEqual(1024);
    expect(reader.status(GATEWAY).sessions).toBeLessThanOrEqual(1024);
    const flows = reader.read(ipfix([set(256, DATA)]), { from: GATEWAY, atMs: T0 + 2 });
    expect(flows, "the session that has sent data is kept").toHaveLength(1);
  });
});

describe("templates expire", () => {
  test("after half an hour without data, and are counted", () => {
    const reader = new PacketReader();
    reader.read(ipfix([KNOWN]), { atMs: T0 });
    reader.decoder.expire(T0 + 29 * MINUTE);
    expect(reader.decoder.templates).toBe(1);
    reader.decoder.expire(T0 + 31 * MINUTE);
    expect(reader.decoder.templates).toBe(0);
    expect(reader.status()).toMatchObject({ templates: 0, drops: { template_expired: 1 } });
  });

  test("neither while the exporter resends them, nor during a quiet night after they were used", () => {
    const reader = new PacketReader();
    for (let minute = 0; minute <= 60; minute += 20) {
      reader.read(ipfix([KNOWN]), { atMs: T0 + minute * MINUTE });
      reader.decoder.expire(T0 + minute * MINUTE);
    }
    expect(reader.decoder.templates).toBe(1);
    expect(reader.read(ipfix([set(256, DATA)]), { atMs: T0 + 60 * MINUTE })).toHaveLength(1);
    reader.decoder.expire(T0 + 600 * MINUTE);
    expect(reader.read(ipfix([set(256, DATA)]), { atMs: T0 + 600 * MINUTE })).toHaveLength(1);
    reader.decoder.expire(T0 + 600 * MINUTE + 86_400_001);
    expect(reader.decoder.templates).toBe(0);
  });
});

describe("the table of exporters", () => {
  const flow = v5([{ src: "10.0.0.1", dst: "10.0.0.2" }]);
  const address = (index: number) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;

  test("full of addresses that have each sent one flow admits a new gateway without evicting an old one", () => {
    const reader = new PacketReader(MINUTE);
    reader.read(flow, { from: GATEWAY, atMs: T0 - 60 * MINUTE });
    reader.read(flow, { from: GATEWAY, atMs: T0 - 1000 });
    for (let index = 0; index < 6000; index++) reader.read(flow, { from: address(index), atMs: T0 });
    expect(reader.read(flow, { from: "198.51.100.2", atMs: T0 + 1 })).toHaveLength(1);
    expect(reader.status(GATEWAY).records).toBe(2);
    expect(reader.decoder.status(T0, new Set()).exporters.length).toBeLessThanOrEqual(4096);
    expect(totalDrops(reader)).toMatchObject({ too_many_exporters: 0 });
    expect(totalDrops(reader)["exporter_evicted"]).toBeGreaterThan(6000 - 4096);
  });

  test("holds at most 256 exporters of one IPv6 /64", () => {
    const reader = new PacketReader();
    for (let index = 1; index <= 1000; index++)
      reader.read(flow, { from: `2001:db8::${index.toString(16)}`, atMs: T0 + index });
    expect(reader.decoder.status(T0, new Set()).exporters.length).toBeLessThanOrEqual(256);
  });

  test("does not reuse the index of an evicted exporter while windows may hold records of it", () => {
    const reader = new PacketReader(MINUTE);
    for (let index = 0; index < 5000; index++) reader.read(flow, { from: address(index), atMs: T0 + index });
    const { exporters } = reader.decoder.status(T0, new Set());
    expect(exporters.length).toBeLessThan(5000);
    expect(Array.from({ length: 5000 }, (_, index) => reader.decoder.exporter(index).address)).toEqual(
      Array.from({ length: 5000 }, (_, index) => address(index)),
    );
  });
});

describe("undecoded data", () => {
  const large = v9([set(300, new Uint8Array(60_000))]);

  test("of a busy gateway is complete when the template arrives minutes later", () => {
    const reader = new PacketReader();
    const fields: readonly FieldSpec[] = [...BYTES_FIELDS, [82, 36]];
    const thirty = v9([set(256, concat(...Array.from({ length: 30 }, () => concat(DATA, new Uint8Array(36)))))]);
    for (let index = 0; index < 3000; index++) reader.read(thirty, { atMs: T0 + index * 100 });
    expect(reader.read(v9([set(0, template(256, fields))]), { atMs: T0 + 5 * MINUTE })).toHaveLength(90_000);
    expect(reader.status().drops.no_template).toBe(0);
  });

  test("of one gateway is not dropped in favour of others that send more", () => {
    const reader = new PacketReader();
    reader.read(v9([set(256, DATA)]), { from: GATEWAY, atMs: T0 });
    for (let index = 0; index < 1000; index++) reader.read(large, { from: `192.0.2.${index % 20}`, atMs: T0 });
    expect(reader.read(v9([set(0, template(256, BYTES_FIELDS))]), { from: GATEWAY, atMs: T0 })).toHaveLength(1);
  });

  test("of one IPv6 host has one share, whichever address it uses", () => {
    const reader = new PacketReader();
    for (let index = 0; index < 400; index++) reader.read(large, { from: `2001:db8::${index % 50}`, atMs: T0 });
    expect(reader.decoder.undecodedBytes).toBeLessThanOrEqual(8 * 1024 * 1024);
  });
});
