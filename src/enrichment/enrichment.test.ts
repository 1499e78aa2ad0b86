import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { FIELD_NAMES } from "../model/field-names.ts";
import { NAME_FIELDS, openEnrichment, type Enrichment } from "./enrichment.ts";
import { makeMmdb } from "./mmdb.fixture.ts";

const unasked = () => {
  throw new Error("no lookup should happen without a key");
};

async function openIn(folder: string, geoFile: string, lists: readonly string[]): Promise<Enrichment> {
  const enrichment = await openEnrichment({
    settings: {
      geo: true,
      geoFile,
      lists,
      listsEveryMinutes: 60,
      abuseipdbKey: null,
      abuseipdbPerDay: 1,
      abuseipdbUrl: "http://127.0.0.1:9",
    },
    dataDir: folder,
    listStore: { all: async () => [], put: unasked, remove: unasked },
    reputationStore: { since: unasked, put: unasked, removeBefore: unasked, lookups: unasked, saveLookups: unasked },
    events: { amend: unasked, get: unasked },
    annotate: unasked,
    registry: new Registry(),
    log: pino({ level: "silent" }),
    pollMs: 10,
  });
  onTestFinished(() => enrichment.close());
  return enrichment;
}

test("caches of addresses and names are cleared when the geolocation file or a list changes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-enrichment-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const put = (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, `${name}.new`), content);
    renameSync(join(folder, `${name}.new`), join(folder, name));
    return join(folder, name);
  };
  const file = put("places", makeMmdb({ "8.8.8.0/24": { country_code: "US" } }));
  const list = put("list", "9.9.9.9");
  const enrichment = await openIn(folder, file, [`mine=${list}`]);
  const raw = { src_ip: "8.8.8.8", query: "www.evil.example" };
  expect(enrichment.stored).toBeUndefined();
  expect(enrichment.enrich(raw)).toEqual({ geo: { country: "US" } });
  expect(enrichment.enrich({ src_ip: "10.0.0.1", dst_ip: 7, query: ["evil.example"] })).toBeUndefined();
  put("places", makeMmdb({ "8.8.8.0/24": { country_code: "CA", city: "Toronto" } }, { kind: "Other" }));
  await vi.waitFor(() => expect(enrichment.enrich(raw)).toEqual({ geo: { country: "CA", city: "Toronto" } }), 100_000);
  put("list", "evil.example");
  await vi.waitFor(
    () => expect(enrichment.enrich(raw)).toEqual({ geo: { country: "CA", city: "Toronto" }, lists: ["mine"] }),
    100_000,
  );
});

test("host names are looked up in lists from every field that readers fill", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-enrichment-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const geoFile = join(folder, "geo.mmdb");
  writeFileSync(geoFile, makeMmdb({}));
  writeFileSync(join(folder, "bad.txt"), "evil.example\n");
  const enrichment = await openIn(folder, geoFile, [`bad=${join(folder, "bad.txt")}`]);
  for (const field of NAME_FIELDS)
    expect(enrichment.enrich({ [field]: "www.evil.example" }), field).toEqual({ lists: ["bad"] });
  const named = Object.keys(FIELD_NAMES).filter((name) => /(^|_)(host|query|domain|server_name)$/.test(name));
  expect(named.filter((name) => !(NAME_FIELDS as readonly string[]).includes(name))).toEqual([]);
});
