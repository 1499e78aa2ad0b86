import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { printDeviceTable } from "../src/docs/devices-page.ts";
import { knownFormats } from "../src/collectors/formats/known-formats.ts";

test.each([
  ["README.md", "docs/devices"],
  ["docs/devices.md", "devices"],
])("the table of devices in %s is current: run npm run docs", (name, links) => {
  const page = readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
  expect(printDeviceTable(name, page, links)).toBe(page);
  for (const format of knownFormats().all) expect(page).toContain(`\`${format.name}\``);
});
