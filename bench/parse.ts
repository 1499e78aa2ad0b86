import { readEve } from "../src/collectors/formats/eve/eve.ts";
import { readLine } from "../src/collectors/formats/read-line.ts";
import type { ReadContext, Reading } from "../src/collectors/formats/reading.ts";
import { CEF_LINES, EVE_LINES, FIREWALL_LINE } from "../src/collectors/formats/samples.fixture.ts";
import type { Answer } from "./figures.ts";
import { threadSeconds } from "./flows-decode.ts";

// How many lines one core reads in a second. By the time that the processor spent: other work on the machine does not
// count. Beside it the least that anybody could do with the same lines.

/** So few that they stay in the processor's caches, as lines do that have just come in. */
const LINES = 5000;
const PASSES = 3;
/** Many short ones: the best of them is what it takes when nothing else has the core. */
const ROUNDS = 15;
const PER_SECOND_MIN = 150_000;

interface Subject {
  readonly name: string;
  readonly lines: readonly string[];
  readonly read: (line: string, context: ReadContext) => Reading;
  readonly plain: { readonly name: string; readonly read: (line: string) => unknown };
  readonly hasReach: boolean;
}

const SUBJECTS: readonly Subject[] = [
  {
    name: "CEF",
    lines: CEF_LINES,
    read: readLine,
    plain: { name: "a split by a pattern", read: splitByPattern },
    hasReach: true,
  },
  {
    name: "EVE",
    lines: EVE_LINES,
    read: readEve,
    plain: { name: "JSON.parse alone", read: (line) => JSON.parse(line) as unknown },
    hasReach: true,
  },
  {
    name: "firewall",
    lines: [FIREWALL_LINE],
    read: readLine,
    plain: { name: "a split by a pattern", read: splitByPattern },
    hasReach: false,
  },
];

/** Key and value of what looks like one, and nothing else: no header, no escapes, no types. */
function splitByPattern(line: string): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [, key, value] of line.matchAll(/(\w+)=(.*?)(?= \w+=|$)/g)) fields[key!] = value!;
  return fields;
}

export async function parse(): Promise<readonly Answer[]> {
  return SUBJECTS.map(({ name, lines, read, plain, hasReach }) => {
    const context = { nowMs: Date.now(), sender: "192.0.2.1", timezone: "UTC" };
    // No two lines are the same, so each has its own number at its end; and all come out of buffers, as from a socket.
    const fresh = Array.from({ length: LINES }, (_, index) =>
      Buffer.from(distinct(lines[index % lines.length]!, index)).toString(),
    );
    let ours = 0;
    let least = 0;
    // By turns, so that both have the same share of a busy machine.
    for (let round = 0; round < ROUNDS; round++) {
      ours = Math.max(
        ours,
        rate(fresh, (line) => read(line, context)),
      );
      least = Math.max(least, rate(fresh, plain.read));
    }
    return {
      question: `read ${name} lines, one core`,
      figure: perSecond(ours),
      baseline: `${plain.name} ${perSecond(least)}`,
      ratio: ours / least,
      reach: hasReach ? `at least ${perSecond(PER_SECOND_MIN)}` : "none",
      met: !hasReach || ours >= PER_SECOND_MIN,
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
  if (made < PASSES * lines.length) throw new Error(`${made} lines of ${PASSES * lines.length} were read`);
  return made / seconds;
}

const perSecond = (lines: number) => `${Math.round(lines / 1000).toLocaleString("en")},000/s`;
