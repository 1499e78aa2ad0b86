import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ruleFileParser } from "../src/detection/rules/rule-file.ts";
import { runFileTests } from "../src/detection/rules/rule-file-tests.ts";
import { printRuleTables } from "../src/docs/rules-page.ts";
import { sourceNames } from "../src/model/event.ts";
import { conditionsSchema, exceptionInputSchema, ruleInputSchema } from "../src/model/rule-schema.ts";
import { readRules } from "../src/sigma/rule-import.ts";
import { parseMapping } from "../src/sigma/mapping.ts";

// Every block of docs/rules.md is validated according to its kind.

const SETTINGS = { platform: "platform", timezone: "UTC" };
const page = readFileSync(new URL("../docs/rules.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/^```(yaml|json)\n([^]*?)^```/gm)].map(([, language, text]) => ({
  language: language!,
  text: text!,
  documents: parseAllDocuments(text!).map((document) => document.toJS() as Record<string, unknown>),
}));

const ruleSchema = ruleInputSchema(sourceNames(SETTINGS.platform));
const simulationSchema = z.strictObject({
  rule: ruleSchema,
  time_range: z.strictObject({ from: z.string(), to: z.string() }),
});

const isSigma = (text: string) => /^(logsource|correlation):/m.test(text);

describe("docs/rules.md", () => {
  test.each(blocks.map(({ text, ...block }) => [text.split("\n", 1)[0]!, text, block] as const))(
    "%s",
    (_, text, block) => {
      const [first = {}] = block.documents;
      if (block.language === "json") {
        const schema = "rule" in first ? simulationSchema : "reason" in first ? exceptionInputSchema : ruleSchema;
        expect(schema.safeParse(first).error?.issues).toBeUndefined();
      } else if (isSigma(text)) {
        const read = readRules({
          ...SETTINGS,
          enabled: true,
          files: [{ name: "page", content: text, format: "sigma" }],
        });
        expect(read).toMatchObject({ refused: [], rules: [expect.anything()] });
      } else if ("logsources" in first) {
        expect(parseMapping(text.replaceAll("{platform}", SETTINGS.platform))).toHaveProperty("mapping");
      } else if ("name" in first) {
        const { documents, faults } = ruleFileParser(SETTINGS)({ name: "page", content: text });
        expect(faults).toEqual([]);
        expect(documents[0]!.input.tests.length).toBeGreaterThan(0);
        expect(runFileTests(documents).flatMap((outcome) => outcome.faults)).toEqual([]);
      } else {
        expect(Object.keys(first)).toEqual(["conditions"]);
        expect(conditionsSchema.safeParse(first["conditions"]).error?.issues).toBeUndefined();
      }
    },
  );

  test("links to existing headings", () => {
    const titles = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replaceAll(/[^a-z0-9 _-]/g, "")
        .replaceAll(" ", "-"),
    );
    const headings = new Set(titles);
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor]) => anchor);
    expect(links.filter((anchor) => !headings.has(anchor!))).toEqual([]);
  });

  test("has the tables that the code prints", () => {
    expect(printRuleTables(page)).toBe(page);
  });
});
