import { existsSync } from "node:fs";
import type { LineFormat } from "../collectors/formats/line-format.ts";
import { knownFormats } from "../collectors/formats/known-formats.ts";
import { code, alignedTable, printParts } from "./markdown.ts";

// The table of devices whose lines are read, from the formats. It is in README.md and in docs/devices.md.

const PAGES = new URL("../../docs/devices/", import.meta.url);

/** A page with its table of devices brought up to date. `links` is the path from the page to docs/devices. */
export function printDeviceTable(name: string, page: string, links: string): string {
  return printParts(name, page, { devices: () => deviceTable(links) });
}

function deviceTable(links: string): string {
  const rows = knownFormats().all.flatMap((format) =>
    devicesOf(format).map((device) => [device, code(format.name), pageOf(format, links)]),
  );
  rows.sort(([a], [b]) => compare(a!.toLowerCase(), b!.toLowerCase()));
  return alignedTable(["device or program", "format", "page"], rows);
}

const devicesOf = ({ devices, about }: LineFormat) => devices ?? [about];

/** A page that is not written yet is no link. */
function pageOf({ page }: LineFormat, links: string): string {
  return page !== undefined && existsSync(new URL(`${page}.md`, PAGES)) ? `[${page}](${links}/${page}.md)` : "";
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
