import { describe, expect, test } from "vitest";
import { concat, ipfix, ipv4, record, set, template, v5, v9, type FieldSpec } from "../packets.fixture.ts";
import { Reader } from "../reading.fixture.ts";

const T0 = 1_700_000_000_000;
const MINUTE = 60_000;
const FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [1, 4],
];
const DATA = record(FIELDS, [ipv4("10.0.0.1"), ipv4("10.0.0.2"), 1000]);
const KNOWN = set(2, template(256, FIELDS));
const GATEWAY = "198.51.100.1";

const totalDrops = (reader: Reader) => reader.decoder.status(T0, new Set()).drops;

/** A thousand templates of one field each, in several packets. */
function thousandTemplates(reader: Reader, from: string, atMs: number, port = 2055): void {
  for (let base = 1000; base < 2000; base += 200) {
    const templates = Array.from({ length: 200 }, (_, index) => template(base + index, [[1, 4]]));
    reader.read(ipfix([set(2, concat(...templates))]), { from, atMs, port });
  }
}

describe("templates of a flood", () => {
  test("from ten addresses that have each sent a flow do not keep a new gateway's template out", () => {
    const reader = new Reader();
    for (let host = 1; host <= 10; host++) {
      reader.read(v5([{ src: "10.0.0.1", dst: "10.0.0.2" }]), { from: `192.0.2.${host}`, atMs: T0 });
      thousandTemplates(reader, `192.0.2.${host}`, T0);
    }
    const atMs = T0 + 40 * MINUTE;
    expect(reader.read(ipfix([KNOWN, set(256, DATA)]), { from: GATEWAY, atMs })).toHaveLength(1);
    expect(totalDrops(reader)["template_evicted"]).toBeGreaterThan(0);
  });

  test("do not keep gateways out either that come while it goes on, one after the other, templates first", () => {
    const reader = new Reader();
    const gateways = Array.from({ length: 50 }, (_, index) => `198.51.100.${index}`);
    for (let host = 1; host <= 12; host++) thousandTemplates(reader, `192.0.2.${host}`, T0);
    for (const from of gateways) reader.read(ipfix([KNOWN]), { from, atMs: T0 + 1 });
    const flows = gateways.flatMap((from) => reader.read(ipfix([set(256, DATA)]), { from, atMs: T0 + 2 }));
    expect(flows).toHaveLength(gateways.length);
  });

  test("of addresses that send data for each of theirs do not push out a gateway's", () => {
    const reader = new Reader();
    reader.read(ipfix([KNOWN, set(256, DATA)]), { from: GATEWAY, atMs: T0 });
    for (let host = 1; host <= 20; host++) {
      for (let id = 1000; id < 2000; id++) {
        const packet = ipfix([set(2, template(id, FIELDS)), set(id, DATA)]);
        reader.read(packet, { from: `192.0.2.${host}`, atMs: T0 + host * 1000 });
      }
    }
    expect(reader.decoder.templates).toBeLessThanOrEqual(10_000);
    expect(reader.read(ipfix([set(256, DATA)]), { from: GATEWAY, atMs: T0 + MINUTE })).toHaveLength(1);
  });

  test("of one IPv6 host count together, whatever address of its /64 it takes", () => {
    const reader = new Reader();
    for (let host = 1; host <= 20; host++) thousandTemplates(reader, `2001:db8::${host}`, T0);
    expect(reader.decoder.templates).toBeLessThanOrEqual(1000);
    thousandTemplates(reader, "2001:db8:0:1::1", T0);
    expect(reader.decoder.templates).toBeGreaterThan(1000);
  });

  test("from every port of one address count together", () => {
    const reader = new Reader();
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
  test("after half an hour where no data came for them, and are counted", () => {
    const reader = new Reader();
    reader.read(ipfix([KNOWN]), { atMs: T0 });
    reader.decoder.expire(T0 + 29 * MINUTE);
    expect(reader.decoder.templates).toBe(1);
    reader.decoder.expire(T0 + 31 * MINUTE);
    expect(reader.decoder.templates).toBe(0);
    expect(reader.status()).toMatchObject({ templates: 0, drops: { template_expired: 1 } });
  });

  test("not while the exporter sends them again, and not in a quiet night where they were of use", () => {
    const reader = new Reader();
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

  test("full of addresses that have each sent one flow takes a new gateway, and forgets no old one for it", () => {
    const reader = new Reader(MINUTE);
    reader.read(flow, { from: GATEWAY, atMs: T0 - 60 * MINUTE });
    reader.read(flow, { from: GATEWAY, atMs: T0 - 1000 });
    for (let index = 0; index < 6000; index++) reader.read(flow, { from: address(index), atMs: T0 });
    expect(reader.read(flow, { from: "198.51.100.2", atMs: T0 + 1 })).toHaveLength(1);
    expect(reader.status(GATEWAY).records).toBe(2);
    expect(reader.decoder.status(T0, new Set()).exporters.length).toBeLessThanOrEqual(4096);
    expect(totalDrops(reader)).toMatchObject({ too_many_exporters: 0 });
    expect(totalDrops(reader)["exporter_evicted"]).toBeGreaterThan(6000 - 4096);
  });

  test("gives one IPv6 /64 at most 256 places", () => {
    const reader = new Reader();
    for (let index = 1; index <= 1000; index++)
      reader.read(flow, { from: `2001:db8::${index.toString(16)}`, atMs: T0 + index });
    expect(reader.decoder.status(T0, new Set()).exporters.length).toBeLessThanOrEqual(256);
  });

  test("does not give the number of a forgotten exporter to another while windows may hold records of it", () => {
    const reader = new Reader(MINUTE);
    for (let index = 0; index < 5000; index++) reader.read(flow, { from: address(index), atMs: T0 + index });
    const { exporters } = reader.decoder.status(T0, new Set());
    expect(exporters.length).toBeLessThan(5000);
    expect(Array.from({ length: 5000 }, (_, index) => reader.decoder.exporter(index).address)).toEqual(
      Array.from({ length: 5000 }, (_, index) => address(index)),
    );
  });
});

describe("data that waits for its template", () => {
  const large = v9([set(300, new Uint8Array(60_000))]);

  test("of a busy gateway is all there when the template comes minutes later", () => {
    const reader = new Reader();
    const fields: readonly FieldSpec[] = [...FIELDS, [82, 36]];
    const thirty = v9([set(256, concat(...Array.from({ length: 30 }, () => concat(DATA, new Uint8Array(36)))))]);
    for (let index = 0; index < 3000; index++) reader.read(thirty, { atMs: T0 + index * 100 });
    expect(reader.read(v9([set(0, template(256, fields))]), { atMs: T0 + 5 * MINUTE })).toHaveLength(90_000);
    expect(reader.status().drops.no_template).toBe(0);
  });

  test("of one gateway is not given up for that of others who send more", () => {
    const reader = new Reader();
    reader.read(v9([set(256, DATA)]), { from: GATEWAY, atMs: T0 });
    for (let index = 0; index < 1000; index++) reader.read(large, { from: `192.0.2.${index % 20}`, atMs: T0 });
    expect(reader.read(v9([set(0, template(256, FIELDS))]), { from: GATEWAY, atMs: T0 })).toHaveLength(1);
  });

  test("of one IPv6 host has one share, whatever address it takes", () => {
    const reader = new Reader();
    for (let index = 0; index < 400; index++) reader.read(large, { from: `2001:db8::${index % 50}`, atMs: T0 });
    expect(reader.decoder.waitingBytes).toBeLessThanOrEqual(8 * 1024 * 1024);
  });
});
