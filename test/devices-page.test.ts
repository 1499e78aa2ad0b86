import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { printDeviceTable } from "../src/docs/devices-page.ts";
import { knownFormats } from "../src/collectors/formats/known-formats.ts";

test.each([
  ["README.md", "docs/"],
  ["docs/devices.md", ""],
])("the table of devices in %s is current: run npm run docs", (name, docs) => {
  const page = readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
  expect(printDeviceTable(name, page, docs)).toBe(page);
  for (const format of knownFormats().all) expect(page).toContain(`\`${format.name}\``);
});
