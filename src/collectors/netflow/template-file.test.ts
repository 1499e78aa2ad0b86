import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
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
} from "../packets.fixture.ts";
import { Reader } from "../reading.fixture.ts";
import { TemplateFile } from "./template-file.ts";

// Real files, and for each start a decoder of its own.

const T0 = 1_700_000_000_000;
const FIELDS: readonly FieldSpec[] = [
  [8, 4],
  [12, 4],
  [1, 4],
];
const NAMED: readonly FieldSpec[] = [...FIELDS, [96, VARIABLE]];
const VALUES = [ipv4("10.0.0.1"), ipv4("10.0.0.2"), 1000];
const FLOW = { src: "10.0.0.1", dst: "10.0.0.2", bytes: 50_000n };
const SCOPE: readonly FieldSpec[] = [[1, 4]];
const RATE: readonly FieldSpec[] = [[34, 4]];

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-templates-"));
  path = join(folder, "flow-templates");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function started(): Promise<{ reader: Reader; file: TemplateFile; trouble: string | undefined }> {
  const reader = new Reader();
  const file = new TemplateFile(path, reader.decoder);
  return { reader, file, trouble: await file.load() };
}

const DIALECTS = [
  { name: "v9", templates: 0, options: 1, build: v9, optionsTemplate: v9Options },
  { name: "IPFIX", templates: 2, options: 3, build: ipfix, optionsTemplate: ipfixOptions },
] as const;

describe.each(DIALECTS)("$name: after a restart", ({ templates, options, build, optionsTemplate }) => {
  const all = build([
    set(options, optionsTemplate(400, SCOPE, RATE)),
    set(400, record([...SCOPE, ...RATE], [0, 50])),
    set(templates, template(256, FIELDS)),
    set(templates, template(257, NAMED)),
    set(templates, template(258, FIELDS)),
    set(256, record(FIELDS, VALUES)),
    set(257, record(NAMED, [...VALUES, "name"])),
  ]);
  const data = build([set(256, record(FIELDS, VALUES)), set(257, record(NAMED, [...VALUES, "other"]))]);

  test("data is decoded by the templates and the sampling rate from before", async () => {
    const first = await started();
    expect(first.trouble, "no file is nothing wrong").toBeUndefined();
    first.reader.read(all, { atMs: T0 });
    await first.file.save(T0);
    const { reader, trouble } = await started();
    expect(trouble).toBeUndefined();
    expect(reader.decoder.status(T0, new Set()).exporters, "who has not sent anything is not shown").toEqual([]);
    expect(reader.read(data, { atMs: T0 + 60_000 })).toMatchObject([FLOW, FLOW]);
    expect(reader.status()).toMatchObject({ templates: 3, waitingSets: 0 });
  });

  test("they hold for an exporter that comes back by another port, and not for another exporter", async () => {
    const first = await started();
    first.reader.read(all, { atMs: T0, port: 1 });
    await first.file.save(T0);
    const { reader } = await started();
    reader.read(data, { atMs: T0 + 60_000, port: 2 });
    reader.read(data, { atMs: T0 + 60_000, from: "192.0.2.2" });
    reader.decoder.expire(T0 + 62_000);
    reader.decoder.flush();
    expect(reader.flows).toMatchObject([FLOW, FLOW]);
    expect(reader.status("192.0.2.2").missingTemplates).toEqual([256, 257]);
  });

  test("they outlive restarts in which their exporter sends nothing, for a day", async () => {
    const first = await started();
    first.reader.read(all, { atMs: T0 });
    await first.file.save(T0);
    for (let index = 0; index < 3; index++) await (await started()).file.save(T0);
    expect((await started()).reader.read(data, { atMs: T0 + 86_000_000 })).toHaveLength(2);
    expect((await started()).reader.read(data, { atMs: T0 + 87_000_000 })).toEqual([]);
  });
});

const described = ipfix([set(2, template(256, FIELDS)), set(256, record(FIELDS, VALUES))]);

test.each([
  ["is empty", () => ""],
  ["is cut", (text: string) => text.slice(0, -10)],
  ["has another number in it", (text: string) => text.replace("2055", "2056")],
  ["is of another kind", () => `{"version":1}`],
  ["has another content under a right checksum", () => "tocsin flow templates 1 2745614147\n{}"],
  ["is not text", () => "\u0000\ufffd\n\u0001"],
])("a file that %s is not used, told of and counted, and the next saving replaces it", async (_, spoil) => {
  const first = await started();
  first.reader.read(described, { atMs: T0 });
  await first.file.save(T0);
  await writeFile(path, spoil(await readFile(path, "utf8")));
  const { reader, file, trouble } = await started();
  expect(trouble).toContain(`${path} is not used: it `);
  expect(reader.decoder.status(T0, new Set()).drops["template_file_damaged"]).toBe(1);
  expect(reader.read(described, { atMs: T0 })).toHaveLength(1);
  await file.save(T0);
  expect((await started()).trouble).toBeUndefined();
});

test("a path that cannot be read is told of, and one that cannot be written rejects", async () => {
  path = folder;
  const { trouble, file, reader } = await started();
  expect(trouble).toContain("is not used");
  reader.read(described, { atMs: T0 });
  await expect(file.save(T0)).rejects.toThrow();
});

test("it is written when something has changed, at most once a minute, and its times once an hour", async () => {
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
  expect(await readFile(path, "utf8"), "nothing but times has changed").toBe(written);
  await file.saveIfDue(T0 + 3_700_000);
  const again = await readFile(path, "utf8");
  expect(again).not.toBe(written);
  reader.read(described, { atMs: T0 + 3_700_000, port: 9 });
  await file.saveIfDue(T0 + 3_761_000);
  expect(await readFile(path, "utf8")).not.toBe(again);
});

test("templates that never decoded anything are not written, and of the others at most 2,000", async () => {
  const { reader, file } = await started();
  for (let host = 0; host < 3; host++) {
    const from = `192.0.2.${host}`;
    for (let id = 1000; id < 1900; id++) {
      reader.read(ipfix([set(2, template(id, FIELDS)), set(id, record(FIELDS, VALUES))]), { from, atMs: T0 + host });
    }
    reader.read(ipfix([set(2, template(300, FIELDS))]), { from, atMs: T0 });
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
