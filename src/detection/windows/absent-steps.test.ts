import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../../test/api-server.ts";
import { alertsOf, eventually, uniqueType } from "../../../test/detection.ts";
import { DetectionEngine } from "../detection-engine.ts";
import { ruleFileParser, toRule } from "../rules/rule-file.ts";
import { eventsOfTest } from "../rules/test-events.ts";
import { runFileTests } from "../rules/rule-file-tests.ts";

// Absent steps of a sequence.

const parse = ruleFileParser({ platform: "platform", timezone: "UTC" });

const step = (name: string, more = "") =>
  `  - { name: ${name}, conditions: [{ field: type, equals: ${name} }]${more && `, ${more}`} }`;

/** The faults of a test of a rule with these steps. Events have the form `a+0s`. */
function faultsOf(steps: readonly string[], events: string, wanted: string, window = "1m"): string[] {
  const list = events.split(" ").map((text) => {
    const [type, at] = text.split("+");
    return `      - { type: ${type}, at: +${at}, raw: { user: ann } }`;
  });
  const content = `
name: test.rule
description: Steps
severity: low
conditions: []
window: ${window}
group_by: raw.user
sequence:
${steps.join("\n")}
actions: [{ alert: { channels: [] } }]
tests:
  - name: it
    events:
${list.join("\n")}
${wanted}`;
  const { documents, faults } = parse({ name: "a.yaml", content });
  expect(faults).toEqual([]);
  return runFileTests(documents).flatMap((outcome) => outcome.faults);
}

const BETWEEN = [step("a"), step("b", "absent: true"), step("c")];
const AFTER = [step("a"), step("b", "absent: true")];
const BEFORE = [step("b", "absent: true"), step("a")];
const fires = (events: number) => `    alerts: 1\n    event_count: ${events}`;
const SILENT = "    alerts: 0";
const WAIT = "    wait: 2m\n";

test.each([
  ["between: nothing came between", BETWEEN, "a+0s c+10s", fires(2)],
  ["between: it came", BETWEEN, "a+0s b+5s c+10s", SILENT],
  ["between: it came before", BETWEEN, "b+0s a+1s c+10s", fires(2)],
  ["between: it came after one, not after the other", BETWEEN, "a+0s b+5s a+6s c+10s", fires(2)],
  ["between: it came at the same moment as the step before", BETWEEN, "a+0s b+0s c+10s", SILENT],
  ["between: it came at the same moment as the step after", BETWEEN, "a+0s b+10s c+10s", SILENT],
  ["between: it came late, but before the end did", BETWEEN, "a+0s x+8s b+5s c+10s", SILENT],
  ["between: too far apart", BETWEEN, "a+0s c+61s", SILENT],
  ["between: an earlier one of the steps after", [...BETWEEN, step("d")], "a+0s c+1s b+2s c+3s d+4s", fires(3)],
  ["after: it never came", AFTER, "a+0s", `${WAIT}${fires(1)}`],
  ["after: the window is not over", AFTER, "a+0s x+59s", SILENT],
  ["after: it came in the last moment", AFTER, "a+0s b+60s", `${WAIT}${SILENT}`],
  ["after: it came too late", AFTER, "a+0s b+61s", `${WAIT}${fires(1)}`],
  ["after: it came before", AFTER, "b+0s a+1s", `${WAIT}${fires(1)}`],
  ["after: it came for the first and not for the second", AFTER, "a+0s b+10s a+20s", `${WAIT}${fires(1)}`],
  ["after: two of them", AFTER, "a+0s a+20s", `${WAIT}${fires(2)}`],
  ["after: the window begins with the first step", [step("c"), ...AFTER], "c+0s a+50s b+61s", `${WAIT}${fires(2)}`],
  ["after: it came within that window", [step("c"), ...AFTER], "c+0s a+50s b+60s", `${WAIT}${SILENT}`],
  ["before: nothing came before", BEFORE, "a+0s", fires(1)],
  ["before: it came", BEFORE, "b+0s a+60s", SILENT],
  ["before: it came longer ago than the window", BEFORE, "b+0s a+61s", fires(1)],
  ["before and after: neither", [...BEFORE, step("c", "absent: true")], "b+0s a+61s", `${WAIT}${fires(1)}`],
  ["before and after: one of them", [...BEFORE, step("c", "absent: true")], "a+0s c+5s", `${WAIT}${SILENT}`],
])("%s", (_, steps, events, wanted) => {
  expect(faultsOf(steps, events, wanted)).toEqual([]);
});

test("before: events from before the rule was created are unknown, and nothing fires while they could matter", () => {
  const made = Date.UTC(2026, 10, 3, 12);
  const { documents } = parse({
    name: "a.yaml",
    content: `
name: test.rule
description: Steps
severity: low
conditions: []
window: 1m
sequence:
${BEFORE.join("\n")}
actions: [{ alert: { channels: [] } }]
tests:
  - { name: it, start: ${new Date(made).toISOString()}, events: [{ type: a, at: +59s }, { type: a, at: +61s }], alerts: 1 }`,
  });
  const { input } = documents[0]!;
  const engine = new DetectionEngine({ now: () => made });
  const activeAfter = `evt_${made.toString(16).padStart(12, "0")}${"0".repeat(20)}`;
  engine.setRule({ ...toRule(documents[0]!, { builtin: false }), activeAfter });
  const counts = [...eventsOfTest(input.tests[0]!, input)].map((event, i) => {
    const id = `evt_${(made + 1 + i).toString(16).padStart(12, "0")}${"0".repeat(20)}`;
    return engine.process([{ ...event, id }]).findings.length;
  });
  expect(counts).toEqual([0, 1]);
});

/** One letter for each second. */
const everySecond = (letters: string) => [...letters].map((type, i) => `${type}+${i}s`).join(" ");

test.each([
  ["the steps before it", `${"a".repeat(1000)}bc`, SILENT],
  ["the steps before it, and one after it", `${"a".repeat(1000)}bac`, fires(2)],
  ["it and the steps before it, alternating", `${"ab".repeat(500)}c`, SILENT],
  ["it and the steps before it alternating, one of the others last", `${"ab".repeat(500)}ac`, fires(2)],
  ["it", `a${"b".repeat(1000)}c`, SILENT],
])("a flood of %s evicts nothing relevant", (_, letters, wanted) => {
  expect(faultsOf(BETWEEN, everySecond(letters), wanted, "1h")).toEqual([]);
});

test.each([
  [`${AFTER.join("\n")}\nsequence_order: any`, "sequence[1].absent"],
  [[step("a"), step("b", "absent: true, count: 2")].join("\n"), "sequence[1].count"],
  [[step("a", "absent: true"), step("b", "absent: true")].join("\n"), "sequence"],
])("a rule is refused at its fault: %s", (sequence, path) => {
  const content = `
name: test.rule
description: Steps
severity: low
conditions: []
window: 1m
actions: [{ alert: { channels: [] } }]
sequence:
${sequence}`;
  expect(parse({ name: "a.yaml", content }).faults.map((fault) => fault.path)).toEqual([path]);
});

describe("an absent last step", () => {
  let shift = 0;
  let server: TestServer;
  beforeAll(async () => {
    server = await openTestServer({ now: () => Date.now() + shift });
  });
  afterAll(() => server.close());

  const make = async (type: string) => {
    const body = {
      name: `test.${type}`,
      description: "Started and never finished",
      title: "{{raw.job}} never finished",
      severity: "high",
      conditions: [{ field: "type", equals: type }],
      sequence: [
        { name: "started", conditions: [{ field: "raw.state", equals: "started" }] },
        { name: "finished", conditions: [{ field: "raw.state", equals: "finished" }], absent: true },
      ],
      group_by: "raw.job",
      window: "1m",
      actions: [{ alert: { channels: [] } }],
    };
    const answer = await server.call("POST", "/v1/rules", { body });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.data.sequence[1]).toMatchObject({ absent: true });
    return answer.body.data as { id: string; name: string };
  };
  const send = async (type: string, job: string, state: string) => {
    const answer = await server.call("POST", "/v1/events", { body: { type, source: "custom", data: { job, state } } });
    expect(answer.status, answer.text).toBe(201);
  };
  const lookedAt = (rule: { id: string }, count: number) =>
    eventually(
      async () => (await server.call("GET", `/v1/rules/${rule.id}`)).body.data.stats,
      (stats) => expect(stats.matches_7d).toBe(count),
    );
  const jobsOf = async (rule: { name: string }) => (await alertsOf(server, rule)).map(({ title }) => title).sort();
  const found = (rule: { name: string }, jobs: readonly string[]) =>
    eventually(
      () => jobsOf(rule),
      (titles) => expect(titles).toEqual(jobs.map((job) => `${job} never finished`)),
    );

  test("fires once when its deadline passes, regardless of restarts before and after", async () => {
    const type = uniqueType();
    const rule = await make(type);
    for (const [job, state] of [
      ["disk", "started"],
      ["mail", "started"],
      ["mail", "finished"],
    ] as const) {
      await send(type, job, state);
    }
    await lookedAt(rule, 3);
    server = await server.restart();
    expect(await jobsOf(rule)).toEqual([]);
    shift += 70_000;
    await found(rule, ["disk"]);
    server = await server.restart();
    await send(type, "tape", "started");
    await lookedAt(rule, 4);
    shift += 70_000;
    await found(rule, ["disk", "tape"]);
    const alerts = await alertsOf(server, rule);
    expect(alerts.map(({ event_count }) => event_count)).toEqual([1, 1]);
  });

  test("does not fire if the step happens in time after a restart", async () => {
    const type = uniqueType();
    const [rule, witness] = [await make(type), await make(uniqueType())];
    await send(type, "disk", "started");
    await lookedAt(rule, 1);
    server = await server.restart();
    shift += 30_000;
    await send(type, "disk", "finished");
    await lookedAt(rule, 2);
    await send(witness.name.slice("test.".length), "tape", "started");
    shift += 120_000;
    await found(witness, ["tape"]);
    expect(await jobsOf(rule)).toEqual([]);
  });
});
