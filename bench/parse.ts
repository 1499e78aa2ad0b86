import { readEve } from "../src/collectors/formats/eve/eve.ts";
import { knownFormats } from "../src/collectors/formats/known-formats.ts";
import { readLine } from "../src/collectors/formats/read-line.ts";
import type { ReadContext, Reading } from "../src/collectors/formats/reading.ts";
import { CEF_LINES, EVE_LINES, FIREWALL_LINE } from "../src/collectors/formats/samples.fixture.ts";
import type { Measurement } from "./figures.ts";
import { threadSeconds } from "./flows-decode.ts";

// Lines that one core parses per second, in CPU time. The baseline is the least work that any parser must do on them.

/** Few enough to stay in the CPU caches, like lines that have just arrived. */
const LINES = 5000;
const PASSES = 3;
/** Many short rounds: in the best of them, nothing else uses the core. */
const ROUNDS = 15;
const PER_SECOND_MIN = 150_000;
/** For every format, of its own lines. There are many, so each gets fewer rounds. */
const FORMAT_PER_SECOND_MIN = 100_000;
const FORMAT_ROUNDS = 6;

interface Subject {
  readonly name: string;
  readonly lines: readonly string[];
  readonly read: (line: string, context: ReadContext) => Reading;
  readonly plain: { readonly name: string; readonly read: (line: string) => unknown };
  readonly hasTarget: boolean;
}

const SUBJECTS: readonly Subject[] = [
  {
    name: "CEF",
    lines: CEF_LINES,
    read: readLine,
    plain: { name: "regex split", read: splitByPattern },
    hasTarget: true,
  },
  {
    name: "EVE",
    lines: EVE_LINES,
    read: readEve,
    plain: { name: "JSON.parse alone", read: (line) => JSON.parse(line) as unknown },
    hasTarget: true,
  },
  {
    name: "firewall",
    lines: [FIREWALL_LINE],
    read: readLine,
    plain: { name: "regex split", read: splitByPattern },
    hasTarget: false,
  },
];

/** Splits into keys and values only: no header, no escapes, no types. */
function splitByPattern(line: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [, key, value] of line.matchAll(/(\w+)=(.*?)(?= \w+=|$)/g)) fields[key!] = value!;
  return fields;
}

/** Lines of unknown programs, which the reader of last resort reads. */
const GENERIC_LINES = [
  'level=warning ts=2026-11-15T10:00:00Z src=192.0.2.9 dst=10.9.3.20 sport=4711 dport=22 proto=tcp action=deny user=ann msg="no way"',
  '{"@timestamp":"2026-11-15T10:00:00Z","source":{"ip":"192.0.2.9","port":4711},"user":{"name":"ann"},"log":{"level":"error"}}',
];

export async function parse(): Promise<readonly Measurement[]> {
  return [...measureSubjects(), ...measureFormats()];
}

/** Every format with the lines of its tests, or its example. */
function measureFormats(): Measurement[] {
  const context = { nowMs: Date.now(), sender: "192.0.2.1", timezone: "UTC" };
  const { all, descriptions } = knownFormats();
  const formatOf = (line: string) => {
    const reading = readLine(line, context);
    return reading.kind === "refused" ? undefined : reading.format;
  };
  const linesOf = (name: string, example: string) => {
    const tests = descriptions.shipped.find(({ format }) => format === name)?.tests ?? [];
    return [example, ...tests.map(({ line }) => line)].filter((line) => formatOf(line) === name);
  };
  const subjects = [
    ...all.map(({ name, example }) => ({ name, lines: linesOf(name, example) })),
    { name: "generic", lines: GENERIC_LINES },
  ];
  return subjects.map(({ name, lines }) => {
    const fresh = Array.from({ length: LINES }, (_, index) => {
      const line = lines[index % lines.length]!;
      const numbered = distinct(line, index);
      return Buffer.from(formatOf(numbered) === name ? numbered : line).toString();
    });
    let ours = 0;
    for (let round = 0; round < FORMAT_ROUNDS; round++) {
      ours = Math.max(
        ours,
        rate(fresh, (line) => readLine(line, context)),
      );
    }
    return {
      name: `parse ${name} as a format, one core`,
      result: perSecond(ours),
      baseline: `${lines.length} different lines`,
      ratio: ours / FORMAT_PER_SECOND_MIN,
      target: `at least ${perSecond(FORMAT_PER_SECOND_MIN)}`,
      met: ours >= FORMAT_PER_SECOND_MIN,
      values: { linesPerSecond: ours },
    };
  });
}

function measureSubjects(): Measurement[] {
  return SUBJECTS.map(({ name, lines, read, plain, hasTarget }) => {
    const context = { nowMs: Date.now(), sender: "192.0.2.1", timezone: "UTC" };
    // Each line is distinct, by a number at its end, and comes from a buffer, as from a socket.
    const fresh = Array.from({ length: LINES }, (_, index) =>
      Buffer.from(distinct(lines[index % lines.length]!, index)).toString(),
    );
    let ours = 0;
    let least = 0;
    // Alternates, so that other load on the machine affects both.
    for (let round = 0; round < ROUNDS; round++) {
      ours = Math.max(
        ours,
        rate(fresh, (line) => read(line, context)),
      );
      least = Math.max(least, rate(fresh, plain.read));
    }
    return {
      name: `parse ${name} lines, one core`,
      result: perSecond(ours),
      baseline: `${plain.name} ${perSecond(least)}`,
      ratio: ours / least,
      target: hasTarget ? `at least ${perSecond(PER_SECOND_MIN)}` : "none",
      met: !hasTarget || ours >= PER_SECOND_MIN,
      values: { linesPerSecond: ours, plain: least },
    };
  });
}

function distinct(line: string, index: number): string {
  return line.endsWith("}") ? `${line.slice(0, -1)},"pcap_cnt":${index}}` : `${line} ${index}`;
}

function rate(lines: readonly string[], read: (line: string) => unknown): number {
  let made = 0;
  const startedAt = threadSeconds();
  for (let pass = 0; pass < PASSES; pass++) {
    for (const line of lines) if (read(line) !== undefined) made++;
  }
  const seconds = threadSeconds() - startedAt;
  if (made < PASSES * lines.length) throw new Error(`only ${made} of ${PASSES * lines.length} lines were parsed`);
  return made / seconds;
}

const perSecond = (lines: number) => `${Math.round(lines / 1000).toLocaleString("en")},000/s`;
