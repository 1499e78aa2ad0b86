import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { Reader, type Response } from "maxmind";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, describe, expect, test } from "vitest";
import { canonicalAddress } from "../lib/ip.ts";
import { builtinFile, openGeo } from "./geo.ts";
import { GeoTree } from "./geo-tree.ts";
import { makeMmdb } from "./mmdb.fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "tocsin-geo-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const fileOf = (content: Buffer | string) => {
  const path = join(folder, `${files++}.mmdb`);
  writeFileSync(path, content);
  return path;
};
const open = (file: string | null) =>
  openGeo({ file, registry: new Registry(), log: pino({ level: "silent" }), now: Date.now });
/** Replaces the file atomically, as an operator should. */
const replace = (path: string, content: Buffer) => {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
};

const CITIES = {
  "81.2.69.0/24": { country: { iso_code: "GB" }, city: { names: { de: "London", en: "London" } } },
  "2.125.160.216/29": { registered_country: { iso_code: "FR" } },
  "89.160.20.0/24": { country_code: "se", city: "Linköping" },
  "1.0.0.0/24": { city: { names: { en: "Nowhere" } } },
  "2001:218::/32": { country: { iso_code: "JP" }, city: { names: { ja: "東京" } } },
};

describe("places", () => {
  test("come from the bundled file, for both address families, as countries", async () => {
    const geo = await open(null);
    expect(geo.placeOf("8.8.8.8")).toEqual({ country: "US" });
    expect(geo.placeOf("193.0.6.139")).toEqual({ country: "NL" });
    expect(geo.placeOf("2001:67c:2e8::1")).toEqual({ country: "NL" });
    expect(geo.status).toMatchObject({ isBuiltin: true, fault: null });
    expect(geo.status.builtAtMs).toBeGreaterThan(Date.UTC(2025, 0, 1));
  });

  test.each([
    ["81.2.69.142", { country: "GB", city: "London" }],
    ["2.125.160.217", { country: "FR" }],
    ["89.160.20.112", { country: "SE", city: "Linköping" }],
    ["2001:218::1", { country: "JP", city: "東京" }],
    ["1.0.0.1", undefined],
    ["9.9.9.9", undefined],
    ["2a00::1", undefined],
  ])("of %s in an operator's file", async (address, place) => {
    expect((await open(fileOf(makeMmdb(CITIES)))).placeOf(address)).toEqual(place);
  });

  test.each([24, 28, 32])("are the same as those of the MMDB reader, with records of %i bits", async (recordSize) => {
    const bytes = makeMmdb(CITIES, { recordSize });
    const reader = new Reader<Response>(bytes);
    const tree = new GeoTree(bytes, reader.metadata);
    const near = fc
      .tuple(fc.constantFrom("81.2.69.", "81.2.70.", "2.125.160.", "1.0.0."), fc.nat(255))
      .map(([beginning, last]) => beginning + last);
    fc.assert(
      fc.property(
        fc.oneof(near, fc.ipV4(), fc.ipV6(), fc.constantFrom("2001:218::", "2001:218:ffff::1", "2001:219::")),
        (text) => {
          const address = canonicalAddress(text)!;
          expect(tree.find(address) !== undefined).toBe(reader.get(address) !== null);
        },
      ),
    );
    const geo = await open(fileOf(bytes));
    expect(geo.placeOf("81.2.69.142")).toEqual({ country: "GB", city: "London" });
  });

  test("of the bundled file are the same as those of the MMDB reader", async () => {
    const geo = await open(null);
    const reader = new Reader<Response>(builtin);
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const address = canonicalAddress(text)!;
        const record = reader.get(address) as { country_code: string } | null;
        expect(geo.placeOf(address)).toEqual(record ? { country: record.country_code } : undefined);
      }),
      { numRuns: 1000 },
    );
  });

  test("of IPv6 addresses are not in a file with IPv4 only", async () => {
    const geo = await open(fileOf(makeMmdb({ "0.0.0.0/1": { country_code: "AT" } }, { six: false })));
    expect([geo.placeOf("8.8.8.8"), geo.placeOf("2001:218::1")]).toEqual([{ country: "AT" }, undefined]);
  });

  test("come from the new file once it has changed", async () => {
    const path = fileOf(makeMmdb({ "8.8.8.0/24": { country_code: "US" } }, { kind: "One" }));
    const geo = await open(path);
    expect(await geo.poll()).toBe(false);
    replace(
      path,
      makeMmdb({ "8.8.8.0/24": { country_code: "CH" }, "9.9.9.0/24": { country_code: "CH" } }, { kind: "Two" }),
    );
    expect(await geo.poll()).toBe(true);
    expect([geo.placeOf("8.8.8.8"), geo.status.kind]).toEqual([{ country: "CH" }, "Two"]);
  });
});

const good = makeMmdb(CITIES);
const builtin = readFileSync(builtinFile());
/** The tree leads out of the file, or has loops. */
const damaged = Buffer.concat([Buffer.alloc(1000, 0xff), builtin.subarray(1000)]);

describe.each([
  ["an empty file", Buffer.alloc(0)],
  ["text", Buffer.from("this is no file of places\n".repeat(100))],
  ["a truncated file", good.subarray(0, good.length - 40)],
  ["the first half of a large file", builtin.subarray(0, builtin.length / 2)],
  ["the metadata alone", builtin.subarray(-400)],
  ["a damaged tree", damaged],
  ["random bytes", Buffer.from(Array.from({ length: 5000 }, (_, i) => (i * 2_654_435_761) >>> 24))],
])("%s instead of a geolocation file", (_, content) => {
  test("is refused at the start: there are no places, and the status says why", async () => {
    const geo = await open(fileOf(content));
    expect(geo.placeOf("81.2.69.142")).toBeUndefined();
    expect(geo.status).toMatchObject({ readAtMs: null, kind: null });
    expect(geo.status.fault!.message).toMatch(/^the geolocation file cannot be used: /);
  });

  test("is refused later: the previous file stays in use until a valid one replaces it", async () => {
    const path = fileOf(good);
    const geo = await open(path);
    replace(path, content);
    expect(await geo.poll()).toBe(false);
    expect(geo.placeOf("81.2.69.142")).toEqual({ country: "GB", city: "London" });
    expect(geo.status.fault!.message).toMatch(/the previous one stays in use$/);
    replace(path, makeMmdb({ "81.2.69.0/24": { country_code: "IE" } }));
    expect(await geo.poll()).toBe(true);
    expect([geo.placeOf("81.2.69.142"), geo.status.fault]).toEqual([{ country: "IE" }, null]);
  });
});

test("a missing file is reported, and loaded once it exists", async () => {
  const path = join(folder, "later.mmdb");
  const geo = await open(path);
  expect(geo.status.fault!.message).toContain("ENOENT");
  expect(geo.status.fault!.message).not.toContain(folder);
  writeFileSync(path, good);
  expect(await geo.poll()).toBe(true);
  expect(geo.placeOf("81.2.69.142")).toEqual({ country: "GB", city: "London" });
});

test("the fault of a missing file disappears once it is back, unless the file was refused before", async () => {
  for (const content of [good, Buffer.from("no places")]) {
    const path = fileOf(content);
    const geo = await open(path);
    const before = geo.status.fault;
    renameSync(path, `${path}.away`);
    await geo.poll();
    expect(geo.status.fault!.message).toContain("ENOENT");
    renameSync(`${path}.away`, path);
    expect(await geo.poll()).toBe(false);
    expect(geo.status.fault).toEqual(before);
  }
});

test("an unreadable file is loaded once it is readable", async () => {
  const path = fileOf(good);
  chmodSync(path, 0o000);
  chmodSync(folder, 0o755);
  const mayReadAll = process.geteuid!() === 0;
  if (mayReadAll) process.seteuid!(65_534);
  try {
    const geo = await open(path);
    expect(geo.status.fault!.message).toContain("EACCES");
    if (mayReadAll) process.seteuid!(0);
    chmodSync(path, 0o644);
    expect(await geo.poll()).toBe(true);
    expect([geo.placeOf("81.2.69.142"), geo.status.fault]).toEqual([{ country: "GB", city: "London" }, null]);
  } finally {
    if (mayReadAll) process.seteuid!(0);
  }
});

test("only a regular file is read, since others may have no end", async () => {
  const geo = await open("/dev/zero");
  expect(geo.status.fault!.message).toBe("the geolocation file cannot be used: it is not a regular file");
});
