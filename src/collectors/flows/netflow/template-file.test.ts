import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ipfix, record, set, template, VARIABLE, type FieldSpec } from "../packets.fixture.ts";
import { PacketReader } from "../decoded-flows.fixture.ts";
import { BYTES_FIELDS, BYTES_VALUES, DIALECTS, IPFIX, RATE, SCOPE, T0 } from "./netflow-records.fixture.ts";
import { TemplateFile } from "./template-file.ts";

// Real files, with a new decoder for each start.

const NAMED_FIELDS: readonly FieldSpec[] = [...BYTES_FIELDS, [96, VARIABLE]];
const FLOW = { src: "10.0.0.1", dst: "10.0.0.2", bytes: 50_000n };

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-templates-"));
  path = join(folder, "flow-templates");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function started(): Promise<{ reader: PacketReader; file: TemplateFile; trouble: string | undefined }> {
  const reader = new PacketReader();
  const file = new TemplateFile(path, reader.decoder);
  return { reader, file, trouble: await file.load() };
}

describe.each(DIALECTS)("$name: after a restart", ({ templates, options, build, optionsTemplate }) => {
  const all = build([
    set(options, optionsTemplate(400, SCOPE, RATE)),
    set(400, record([...SCOPE, ...RATE], [0, 50])),
    set(templates, template(256, BYTES_FIELDS)),
    set(templates, template(257, NAMED_FIELDS)),
    set(templates, template(258, BYTES_FIELDS)),
    set(256, record(BYTES_FIELDS, BYTES_VALUES)),
    set(257, record(NAMED_FIELDS, [...BYTES_VALUES, "name"])),
  ]);
  const data = build([
    set(256, record(BYTES_FIELDS, BYTES_VALUES)),
    set(257, record(NAMED_FIELDS, [...BYTES_VALUES, "other"])),
  ]);

  test("data is decoded with the saved templates and sampling rate", async () => {
    const first = await started();
    expect(first.trouble, "a missing file is not an error").toBeUndefined();
    first.reader.read(all, { atMs: T0 });
    await first.file.save(T0);
    const { reader, trouble } = await started();
    expect(trouble).toBeUndefined();
    expect(
      reader.decoder.status(T0, new Set()).exporters,
      "an exporter that has not sent anything is not listed",
    ).toEqual([]);
    expect(reader.read(data, { atMs: T0 + 60_000 })).toMatchObject([FLOW, FLOW]);
    expect(reader.status()).toMatchObject({ templates: 3, waitingSets: 0 });
  });

  test("saved templates apply to an exporter that returns on another port, but not to another exporter", async () => {
    const first = await started();
    first.reader.read(all, { atMs: T0, port: 1 });
    await first.file.save(T0);
    const { reader } = await started();
    reader.read(data, { atMs: T0 + 60_000, port: 2 });
    reader.read(data, { atMs: T0 + 60_000, from: "192.0.2.2" });
    reader.expire(T0 + 62_000);
    expect(reader.flows).toMatchObject([FLOW, FLOW]);
    expect(reader.status("192.0.2.2").missingTemplates).toEqual([256, 257]);
  });

  test("saved templates survive restarts without data from their exporter for a day", async () => {
    const first = await started();
    first.reader.read(all, { atMs: T0 });
    await first.file.save(T0);
    for (let index = 0; index < 3; index++) await (await started()).file.save(T0);
    expect((await started()).reader.read(data, { atMs: T0 + 86_000_000 })).toHaveLength(2);
    expect((await started()).reader.read(data, { atMs: T0 + 87_000_000 })).toEqual([]);
  });
});

const described = IPFIX.withRecord(BYTES_FIELDS, BYTES_VALUES);

test.each([
  ["is empty", () => ""],
  ["is truncated", (text: string) => text.slice(0, -10)],
  ["has a changed number", (text: string) => text.replace("2055", "2056")],
  ["has another format", () => `{"version":1}`],
  ["has other content with a valid checksum", () => "tocsin flow templates 1 2745614147\n{}"],
  ["is not text", () => "\u0000\ufffd\n\u0001"],
])("a file that %s is ignored, reported and counted, and the next save replaces it", async (_, spoil) => {
  const first = await started();
  first.reader.read(described, { atMs: T0 });
  await first.file.save(T0);
  await writeFile(path, spoil(await readFile(path, "utf8")));
  const { reader, file, trouble } = await started();
  expect(trouble).toContain(`${path} is ignored: it `);
  expect(reader.decoder.status(T0, new Set()).drops["template_file_damaged"]).toBe(1);
  expect(reader.read(described, { atMs: T0 })).toHaveLength(1);
  await file.save(T0);
  expect((await started()).trouble).toBeUndefined();
});

test("an unreadable path is reported, and an unwritable path rejects", async () => {
  path = folder;
  const { trouble, file, reader } = await started();
  expect(trouble).toContain("is ignored");
  reader.read(described, { atMs: T0 });
  await expect(file.save(T0)).rejects.toThrow();
});

test("the file is written when templates change, at most once a minute, and when only times change, once an hour", async () => {
  const { reader, file } = await started();
  const inode = async () => (await stat(path)).ino;
  await file.saveIfDue(T0);
  await expect(inode()).rejects.toThrow("ENOENT");
  reader.read(described, { atMs: T0 });
  await file.saveIfDue(T0 + 59_000);
  await expect(inode()).rejects.toThrow("ENOENT");
  await file.saveIfDue(T0 + 61_000);
  const written = await readFile(path, "utf8");
  reader.read(described, { atMs: T0 + 100_000 });
  await file.saveIfDue(T0 + 122_000);
  expect(await readFile(path, "utf8"), "only times have changed").toBe(written);
  await file.saveIfDue(T0 + 3_700_000);
  const again = await readFile(path, "utf8");
  expect(again).not.toBe(written);
  reader.read(described, { atMs: T0 + 3_700_000, port: 9 });
  await file.saveIfDue(T0 + 3_761_000);
  expect(await readFile(path, "utf8")).not.toBe(again);
});

test("the file holds at most 2,000 templates, and none that never decoded anything", async () => {
  const { reader, file } = await started();
  for (let host = 0; host < 3; host++) {
    const from = `192.0.2.${host}`;
    for (let id = 1000; id < 1900; id++) {
      reader.read(ipfix([set(2, template(id, BYTES_FIELDS)), set(id, record(BYTES_FIELDS, BYTES_VALUES))]), {
        from,
        atMs: T0 + host,
      });
    }
    reader.read(ipfix([set(2, template(300, BYTES_FIELDS))]), { from, atMs: T0 });
  }
  await file.save(T0);
  const [, body = ""] = (await readFile(path, "utf8")).split("\n");
  const domains = JSON.parse(body) as { address: string; templates: unknown[] }[];
  expect(domains.map(({ address, templates }) => [address, templates.length])).toEqual([
    ["192.0.2.2", 900],
    ["192.0.2.1", 900],
    ["192.0.2.0", 200],
  ]);
});
