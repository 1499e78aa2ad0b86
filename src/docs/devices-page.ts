import type { LineFormat } from "../collectors/formats/line-format.ts";
import { knownFormats } from "../collectors/formats/known-formats.ts";
import { code, alignedTable, printParts } from "./markdown.ts";

// The table of devices whose lines are read, from the formats. It is in README.md and in docs/devices.md.

/** Where the formats stand that have no page of their own. */
const OTHERS = "events.md#connecting-devices";

/** A page with its table of devices brought up to date. `docs` is the path from the page to the folder docs. */
export function printDeviceTable(name: string, page: string, docs: string): string {
  return printParts(name, page, { devices: () => deviceTable(docs) });
}

/** A device has a row for each of its pages. */
function deviceTable(docs: string): string {
  const rows = new Map<string, { device: string; formats: string[]; link: string }>();
  for (const format of knownFormats().all) {
    const link = linkOf(format, docs);
    for (const device of devicesOf(format)) {
      const key = `${device}\n${link}`;
      const row = rows.get(key) ?? { device, formats: [], link };
      row.formats.push(code(format.name));
      rows.set(key, row);
    }
  }
  return alignedTable(
    ["device or program", "formats", "page"],
    [...rows.values()]
      .sort((a, b) => compare(a.device.toLowerCase(), b.device.toLowerCase()))
      .map(({ device, formats, link }) => [device, formats.join(", "), link]),
  );
}

const devicesOf = ({ devices, about }: LineFormat) => devices ?? [about];

const linkOf = ({ page }: LineFormat, docs: string) =>
  page === undefined ? `[events](${docs}${OTHERS})` : `[${page}](${docs}devices/${page}.md)`;

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
