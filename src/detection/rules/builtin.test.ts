import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { sourceKind, SOURCE_KINDS } from "../../model/event.ts";
import { loadBuiltinRules, readBuiltinFiles } from "./builtin.ts";
import { toRule } from "./rule-file.ts";
import { runFileTests } from "./rule-file-tests.ts";

const SETTINGS = { platform: "platform", timezone: "UTC" };
const documents = readBuiltinFiles(SETTINGS);

describe.each(documents.map((document) => [document.input.name, document] as const))("%s", (name, document) => {
  test.each(runFileTests([document]).map((outcome) => [outcome.test.name, outcome.faults] as const))(
    "%s",
    (_, faults) => {
      expect(faults).toEqual([]);
    },
  );

  test("has events that fire and events that do not", () => {
    expect(document.input.tests.some(({ alerts }) => alerts > 0)).toBe(true);
    expect(document.input.tests.some(({ alerts }) => alerts === 0)).toBe(true);
  });

  test("has an explanation, next steps, tags and references", () => {
    const { description, title, tags, references } = document.input;
    expect(description.split("\n\n").length).toBeGreaterThanOrEqual(2);
    // Lines are wrapped on display, not in the file.
    expect(description).not.toMatch(/[^\n]\n[^\n]/);
    expect(title).toBeTruthy();
    expect(tags[0]).toBe(name.split(".")[0]);
    expect(
      tags.filter((tag) => tag.startsWith("attack.")).every((tag) => /^attack\.(t\d{4}(\.\d{3})?|[a-z-]+)$/.test(tag)),
    ).toBe(true);
    expect(references.every((reference) => URL.canParse(reference))).toBe(true);
    expect(references).not.toEqual([]);
  });

  test("is in a file with its name", () => {
    expect(document.file).toBe(`builtin/${name.replaceAll(/[._]/g, "-")}.yaml`);
  });
});

test("names and ids are unique, and every source has rules", () => {
  const rules = loadBuiltinRules(SETTINGS);
  expect(rules).toHaveLength(readdirSync(fileURLToPath(new URL("builtin/", import.meta.url))).length);
  expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length);
  expect(new Set(rules.map(({ name }) => name)).size).toBe(rules.length);
  const kinds = new Set(rules.filter(({ source }) => source !== "any").map(({ source }) => sourceKind(source)));
  expect([...kinds].sort()).toEqual([...SOURCE_KINDS].sort());
});

test("at a start everything except the tests is read", () => {
  const whole = documents.map((document) => ({ ...toRule(document, { builtin: true }), tests: undefined }));
  expect(loadBuiltinRules(SETTINGS)).toEqual(whole);
});

test("parsed rules are cached and reused at the next start, only for the same texts", () => {
  const read = loadBuiltinRules(SETTINGS);
  const cacheFolder = mkdtempSync(join(tmpdir(), "tocsin-rules-"));
  const [again, load] = [join(cacheFolder, "builtin-rules.json"), () => loadBuiltinRules({ ...SETTINGS, cacheFolder })];
  expect(load()).toEqual(read);
  const kept = readFileSync(again, "utf8");
  writeFileSync(again, kept.replace("Failed", "Kept: failed"));
  expect(JSON.stringify(load()), "it is what is taken").toContain("Kept: failed");
  for (const wrong of [
    kept.slice(0, -9),
    "null",
    '{"of":"others","values":[]}',
    kept.replace(/"values":.*/, '"values":[]}'),
  ]) {
    writeFileSync(again, wrong);
    expect(load(), wrong.slice(-40)).toEqual(read);
    expect(readFileSync(again, "utf8")).toBe(kept);
  }
  rmSync(cacheFolder, { recursive: true });
  expect(load(), "where nothing can be kept").toEqual(read);
});

test("the platform name and the site's time zone are filled in", () => {
  const text = JSON.stringify(loadBuiltinRules({ platform: "yard", timezone: "Europe/Berlin" }));
  expect(text).toContain('"source":"yard_network"');
  expect(text).toContain("22:00-06:00 Europe/Berlin");
  expect(text).not.toMatch(/\{(platform|timezone)\}|platform_/);
});
