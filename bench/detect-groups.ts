import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DetectionEngine } from "../src/detection/detection-engine.ts";
import { formatTime } from "../src/lib/time.ts";
import type { Event } from "../src/model/event.ts";
import { plainRule } from "../src/model/rule.fixture.ts";
import { randomFrom } from "../src/demo/random.ts";
import { cpuMs, type Measurement } from "./figures.ts";

// One threshold rule with a million addresses as groups; then an attacker who forges ten million.

const GROUPS = 1_000_000;
const ATTACK_GROUPS = 10_000_000;
const BATCH = 1000;
const MEGABYTE = 1_000_000;
const MEGABYTES_MAX = 100;
const MICROSECONDS_MAX = 2;
const PAUSE_MS_MAX = 50;

const RULE = plainRule({
  description: "Many failures from {{raw.src_ip}}",
  conditions: [{ field: "type", equals: "login_failure" }],
  window: "1h",
  threshold: { count: 10, group_by: "raw.src_ip" },
});

const addressOf = (n: number) => `10.${(n >>> 16) & 255}.${(n >>> 8) & 255}.${n & 255}/${n >>> 24}`;

export async function detectGroups(): Promise<readonly Measurement[]> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const startMs = Date.now();
  let count = 0;
  const nextId = () => `evt_${(count++).toString(16).padStart(32, "0")}`;
  const random = randomFrom(1);
  const engine = new DetectionEngine({ now: Date.now });
  engine.setRule(RULE);
  const memory = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  /** Returns the time per event and the longest batch; generating the events is not timed. */
  const run = (events: number, groupOf: (i: number) => number) => {
    let spentMs = 0;
    let longestMs = 0;
    for (let at = 0; at < events; at += BATCH) {
      const timestamp = formatTime(startMs + at / BATCH);
      const made = Array.from({ length: BATCH }, (_, i): Event => {
        const raw = { src_ip: addressOf(groupOf(at + i)) };
        return {
          id: nextId(),
          type: "login_failure",
          source: "custom",
          class: "security",
          severity: "low",
          timestamp,
          raw,
          enrichment: {},
        };
      });
      // Parsed from text, as from the journal: concatenated strings would still have to be flattened.
      const batch = JSON.parse(JSON.stringify(made)) as Event[];
      const startedAt = cpuMs();
      engine.process(batch);
      const took = cpuMs() - startedAt;
      spentMs += took;
      longestMs = Math.max(longestMs, took);
    }
    return { microseconds: (spentMs / events) * 1000, longestMs };
  };
  run(50_000, (i) => i % 1000);
  engine.setRule(RULE);
  const before = memory();
  const filling = run(GROUPS, (i) => i);
  const megabytes = (memory() - before) / MEGABYTE;
  const live = engine.metrics()["groups"]!;
  const using = run(GROUPS, () => random.below(GROUPS));
  const attacked = run(ATTACK_GROUPS, (i) => GROUPS + i);
  const after = (memory() - before) / MEGABYTE;
  const metrics = engine.metrics();
  return [
    {
      name: `one rule, ${live.toLocaleString("en")} live groups`,
      result: `${megabytes.toFixed(0)} MB; ${using.microseconds.toFixed(2)} µs per event, ${filling.microseconds.toFixed(2)} to create a group`,
      target: `at most ${MEGABYTES_MAX} MB and ${MICROSECONDS_MAX} µs per event`,
      met:
        megabytes <= MEGABYTES_MAX &&
        using.microseconds <= MICROSECONDS_MAX &&
        filling.microseconds <= MICROSECONDS_MAX,
      values: { live, megabytes, using: using.microseconds, filling: filling.microseconds },
    },
    {
      name: `${ATTACK_GROUPS.toLocaleString("en")} more groups by an attacker`,
      result: `${after.toFixed(0)} MB; ${attacked.microseconds.toFixed(2)} µs per event; slowest batch of ${BATCH}: ${attacked.longestMs.toFixed(0)} ms`,
      baseline: `${megabytes.toFixed(0)} MB before`,
      ratio: after / megabytes,
      target: `at most twice the memory, no pause above ${PAUSE_MS_MAX} ms`,
      met: after <= 2 * megabytes && attacked.longestMs <= PAUSE_MS_MAX,
      values: { after, ...attacked, live: metrics["groups"]!, evicted: metrics["evicted_single"]! },
    },
  ];
}
