import { jsonLeaves } from "../json-leaves.ts";
import { splitColumns } from "./columns.ts";
import type { DescribedTest, FormatDescription } from "./description.ts";
import { PairKeys, scanPairs } from "./pairs.ts";
import { valueTester } from "./value-tester.ts";

// Divides a message into the values of a device.

/** A device's values by its own names, before they get ours. */
export type DeviceValues = Map<string, string>;

interface Scanned {
  readonly values: DeviceValues;
  readonly leftOut: number;
}

/** Undefined if the message has another structure. `known`: values that are there already. */
export type ScanValues = (text: string, start: number, known: DeviceValues) => Scanned | undefined;

export function scannerOf({ pairs, columns, json }: FormatDescription): ScanValues {
  if (pairs !== undefined) {
    const keys = new PairKeys(pairs.assign);
    return (text, start, known) => {
      const { values, leftOut } = scanPairs(text, start, pairs, keys);
      for (const [name, value] of known) values.set(name, value);
      return { values, leftOut };
    };
  }
  if (columns !== undefined) return columnScanner(columns);
  if (json) return scanJson;
  return (_text, _start, values) => ({ values, leftOut: 0 });
}

function columnScanner({ separator, groups, open }: NonNullable<FormatDescription["columns"]>) {
  const chosen = groups.map((group) => {
    const cases = group.map((one) => (typeof one === "string" ? undefined : one));
    if (cases[0] === undefined) return () => group as readonly string[];
    const tested = (cases as { when: Record<string, DescribedTest>; columns: string[] }[]).map(({ when, columns }) => ({
      columns,
      tests: Object.entries(when).map(([name, test]) => [name, valueTester(test)] as const),
    }));
    return (values: DeviceValues) =>
      tested.find(({ tests }) => tests.every(([name, test]) => test(values.get(name))))?.columns ?? [];
  });
  const namedMax = groups
    .map((group) => Math.max(...group.map((one) => (typeof one === "string" ? group.length : one.columns.length))))
    .reduce((sum, count) => sum + count, 0);
  return (text: string, start: number, values: DeviceValues): Scanned => {
    const cells = splitColumns(text, start, separator, open ? namedMax : undefined);
    let at = 0;
    for (const columnsOf of chosen) {
      for (const name of columnsOf(values)) {
        const cell = cells[at++];
        if (name !== "" && cell !== undefined) values.set(name, cell);
      }
    }
    return { values, leftOut: open ? 0 : Math.max(0, cells.length - at) };
  };
}

/** The leaves of an object by their paths. */
function scanJson(text: string, start: number, values: DeviceValues): Scanned | undefined {
  const found = jsonLeaves(text, start);
  for (const [path, value] of found?.leaves ?? []) values.set(path, value);
  return found && { values, leftOut: found.leftOut };
}
