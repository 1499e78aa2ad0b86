import { readWithFormats } from "../read-with-formats.ts";
import { CODED_FORMATS, LineFormats } from "../line-formats.ts";
import type { TaughtFault } from "../taught-status.ts";
import { runLineTest } from "./line-tests.ts";
import type { ReadDescription } from "./read-descriptions.ts";

// Checks of taught formats together with all others: names, limits, tests, and lines that they take from others.

const TAUGHT_FORMATS_MAX = 200;
/** Over all taught formats. A line costs at most the sum of its scans by each pattern. */
const TAUGHT_PATTERNS_MAX = 2000;

/** A description, and the file that has it. */
export interface LocatedDescription extends ReadDescription {
  readonly file: string;
}

/** Leaves out formats that cannot be used beside the others, in the order of the files. */
export function usableFormats(found: readonly LocatedDescription[]): {
  readonly usable: readonly LocatedDescription[];
  readonly faults: readonly TaughtFault[];
} {
  const coded = new Set<string>(CODED_FORMATS.map(({ name }) => name));
  const known = new Map<string, LocatedDescription>();
  const usable: LocatedDescription[] = [];
  const faults: TaughtFault[] = [];
  let patterns = 0;
  for (const one of found) {
    const { format: name } = one.description;
    const refuse = (path: string, message: string) =>
      faults.push({ kind: "refused", file: one.file, line: one.line, path, message });
    const first = known.get(name);
    const own = patternsIn(one);
    if (coded.has(name)) refuse("format", `${name} is the name of a format that is built in; choose another`);
    else if (first) refuse("format", `${name} is also the name of the format at ${first.file}:${first.line}`);
    else if (usable.length >= TAUGHT_FORMATS_MAX) refuse("", `more than ${TAUGHT_FORMATS_MAX} formats`);
    else if (patterns + own > TAUGHT_PATTERNS_MAX)
      refuse("events", `more than ${TAUGHT_PATTERNS_MAX} patterns in all files`);
    else {
      known.set(name, one);
      usable.push(one);
      patterns += own;
    }
  }
  return { usable, faults };
}

function patternsIn({ description }: ReadDescription): number {
  return description.events.reduce((sum, { pattern }) => sum + (pattern?.length ?? 0), 0);
}

/** Tests that fail. */
export function testFaults(taught: readonly LocatedDescription[], formats: LineFormats): TaughtFault[] {
  return taught.flatMap(({ description, file, lineOfTest }) =>
    description.tests.flatMap((test, index) =>
      runLineTest(test, description.format, formats).map((message): TaughtFault => ({
        kind: "test",
        file,
        line: lineOfTest(index),
        path: `tests[${index}]`,
        message,
      })),
    ),
  );
}

/** Examples of other formats that a taught one reads, except those of the shipped format that it replaces. */
export function overlapFaults(taught: readonly LocatedDescription[], formats: LineFormats): TaughtFault[] {
  const context = { nowMs: Date.now(), sender: "", timezone: "UTC" };
  const { shipped } = formats.descriptions;
  const taken = new Map<string, string[]>();
  for (const { name, example } of new LineFormats({ shipped, taught: [] }).all) {
    const reading = readWithFormats(formats, example, context);
    const by = reading.kind === "refused" ? undefined : reading.format;
    if (by !== undefined && by !== name) taken.set(by, [...(taken.get(by) ?? []), name]);
  }
  return taught.flatMap(({ description, file, line }) => {
    const names = taken.get(description.format);
    if (names === undefined) return [];
    const message = `also reads lines of ${names.join(", ")}; name the program or more of the text in match`;
    return [{ kind: "overlap", file, line, path: "match", message }];
  });
}

/** Likely mistakes. */
export function hintsIn({ description, file, line, lineOfTest }: LocatedDescription): Omit<TaughtFault, "kind">[] {
  const { fields, pairs, columns, json, tests, events } = description;
  const hints: Omit<TaughtFault, "kind">[] = [];
  const hint = (path: string, message: string, at = line) => hints.push({ file, line: at, path, message });
  if (Object.keys(fields).length > 0 && pairs === undefined && columns === undefined && json === undefined) {
    hint("fields", "has no effect without pairs, columns or json: name the field in the pattern");
  }
  for (const [index, test] of tests.entries()) {
    const expects = test.type ?? test.severity ?? test.fields ?? test.unparsed ?? test.nothing;
    if (expects === undefined) hint(`tests[${index}]`, "expects nothing but that the line is read", lineOfTest(index));
  }
  const tested = new Set(tests.map(({ type }) => type));
  for (const [index, { type }] of events.entries()) {
    if (typeof type === "string" && !tested.has(type)) hint(`events[${index}]`, `no test expects the type ${type}`);
  }
  return hints;
}
