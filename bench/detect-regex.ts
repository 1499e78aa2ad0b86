import { EventFacts } from "../src/detection/matching/event-facts.ts";
import { RuleMatcher } from "../src/detection/matching/rule-matcher.ts";
import { RulePatterns } from "../src/detection/matching/rule-patterns.ts";
import { randomFrom } from "../src/demo/random.ts";
import type { Condition } from "../src/model/condition.ts";
import type { Event } from "../src/model/event.ts";
import { cpuMs, ms, type Measurement } from "./figures.ts";

// Worst-case patterns for each kind of engine on the largest text that a pattern searches; then many of them at once.

const TEXT_CHARACTERS = 65_536;
const ROUNDS = 25;
const MS_MAX = 10;
const RULES = 300;
const EVENT_MS_MAX = 50;
const PLAIN_RULES = 200;
const MATCHING = 20;
const PLAIN_MS_MAX = 10;

const PATTERNS = [
  "(x+x+)+y",
  "(a|b)*a(a|b){12}x",
  "a(a|b){20}x",
  "a[ab]{200}x",
  "a.{400}x$",
  "a.{900}b{600}x$",
  "(?:a.{30}){20}x$",
  "(a?){300}b$",
  "(?:.*a){20}c$",
  "(a.{20}|b.{30}|c.{40}|d.{50})x$",
  "\\b(?:\\w+\\s*){40}z$",
  "(?i)powershell.*-enc.*[a-z]{30}$",
];

export async function detectRegex(): Promise<readonly Measurement[]> {
  const random = randomFrom(1);
  const make = (letters: string) =>
    `xyzc ${Array.from({ length: TEXT_CHARACTERS - 5 }, () => letters[random.below(letters.length)]).join("")}`;
  const texts = [make("ab"), make("a"), make("abcdefgh 0123 _XYZ"), make("жшщaб")];
  let worst = { pattern: "", ms: 0, gaveUp: false };
  for (const pattern of PATTERNS) {
    const patterns = new RulePatterns();
    const own = patterns.acquire("raw.text", pattern, false);
    for (const text of texts) {
      let gaveUp = false;
      const took = fastestMs(() => {
        patterns.startEvent();
        gaveUp = own.test(text, text, 0) === "unknown";
      });
      if (took > worst.ms) worst = { pattern, ms: took, gaveUp };
    }
  }
  const hostile = Array.from({ length: RULES }, (_, i) => `${PATTERNS[i % PATTERNS.length]!}|never${i}`);
  const together = matchTogether(hostile, eventOf(texts[0]!));
  const marks = Array.from({ length: MATCHING }, (_, i) => `mark${i * 10}z`).join(" ");
  const padded = eventOf(`${texts[2]!.slice(0, 60 * 1024 - marks.length - 1)} ${marks}`);
  const plain = Array.from({ length: PLAIN_RULES }, (_, i) => `(?:evil|[mn]ark)${i}[a-z]`);
  const ordinary = matchTogether(plain, padded);
  return [
    {
      name: `worst of ${PATTERNS.length} hostile patterns on a field of ${TEXT_CHARACTERS.toLocaleString("en")} characters`,
      result: `${ms(worst.ms)} for ${worst.pattern}${worst.gaveUp ? ", abandoned" : ""}`,
      target: `at most ${MS_MAX} ms`,
      met: worst.ms <= MS_MAX,
      values: { ms: worst.ms },
    },
    {
      name: `one event of that size, ${RULES} rules with such patterns`,
      result: `${ms(together.ms)}; ${together.aborted} tests abandoned`,
      target: `at most ${EVENT_MS_MAX} ms`,
      met: together.ms <= EVENT_MS_MAX,
      values: together,
    },
    {
      name: `one padded event of 60 kB, ${PLAIN_RULES} rules without a common literal, ${MATCHING} of which match`,
      result: `${ms(ordinary.ms)}; ${ordinary.found} found`,
      target: `all found, within ${PLAIN_MS_MAX} ms`,
      met: ordinary.found === MATCHING && ordinary.ms <= PLAIN_MS_MAX,
      values: ordinary,
    },
  ];
}

function eventOf(text: string): Event {
  return {
    id: "evt_1",
    type: "process_creation",
    source: "custom",
    class: "security",
    severity: "low",
    timestamp: new Date(0).toISOString(),
    raw: { text },
    enrichment: {},
  };
}

function matchTogether(values: readonly string[], event: Event): { ms: number; aborted: number; found: number } {
  const facts = new EventFacts();
  const patterns = new RulePatterns();
  const matcher = new RuleMatcher<number>(facts, patterns);
  for (const [i, value] of values.entries()) {
    const condition: Condition = { kind: "test", field: "raw.text", operator: "regex", value, ignoreCase: false };
    matcher.add(`${i}`, "any", condition, i);
  }
  let aborted = 0;
  let found = 0;
  const took = fastestMs(() => {
    const before = patterns.aborted;
    facts.setEvent(event);
    patterns.startEvent();
    found = matcher.match().length;
    aborted = patterns.aborted - before;
  });
  return { ms: took, aborted, found };
}

/** CPU time of the fastest of several rounds. */
function fastestMs(work: () => void): number {
  let fastest = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = cpuMs();
    work();
    fastest = Math.min(fastest, cpuMs() - startedAt);
  }
  return fastest;
}
