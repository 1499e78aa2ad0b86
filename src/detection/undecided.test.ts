import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { alertsOf, eventually } from "../../test/detection.ts";
import { UndecidedReports } from "./undecided.ts";

const HOUR_MS = 3_600_000;

describe("over the real server", () => {
  // In the middle of an hour, so that a test does not cross the boundary.
  const now = () => Math.floor(Date.now() / HOUR_MS) * HOUR_MS + HOUR_MS / 2;
  let server: TestServer;
  beforeEach(async () => {
    server = await openTestServer({ now });
  });
  afterEach(() => server.close());

  const WATCHER = { name: "detection.rule_undecided" };
  const padding = Array.from({ length: 60_000 }, (_, i) => "ab"[((i * i + i) >> 3) & 1]).join("");

  async function submit(type: string, data: object): Promise<string> {
    const answer = await server.call("POST", "/v1/events", { body: { type, source: "custom", data } });
    expect(answer.status, answer.text).toBe(201);
    return answer.body.data.id;
  }

  async function makeRule(name: string): Promise<void> {
    const body = {
      name,
      description: "A rule whose pattern is too wide for long values",
      severity: "high",
      conditions: [
        { field: "type", equals: "process_creation" },
        { field: "raw.command", regex: "a.{900}b{600}x$" },
      ],
      actions: [{ alert: { channels: [] } }],
    };
    expect((await server.call("POST", "/v1/rules", { body })).status).toBe(201);
  }

  test.each([
    ["contains_field", false],
    ["starts_with_field", false],
    // Decided by lookup.
    ["equals_field", true],
  ])(
    "two long lists compared with %s do not delay other events, and are reported if undecided",
    async (name, isDecided) => {
      const body = {
        name: "test.fields",
        description: "A rule that compares two fields",
        severity: "high",
        conditions: [
          { field: "type", equals: "process_creation" },
          { field: "raw.a", [name]: "raw.b" },
        ],
        actions: [{ alert: { channels: [] } }],
      };
      expect((await server.call("POST", "/v1/rules", { body })).status).toBe(201);
      const list = (letter: string) => Array.from({ length: 30_000 }, (_, i) => `${letter}${i}`);
      await submit("process_creation", { a: list("a"), b: list("b") });
      // Processed after it.
      await submit("process_creation", { a: ["x1"], b: ["x1"] });
      await eventually(
        () => alertsOf(server, { name: "test.fields" }),
        (alerts) => expect(alerts).toHaveLength(1),
      );
      expect((await reports()).map(({ raw }) => raw.detection_rule)).toEqual(isDecided ? [] : ["test.fields"]);
    },
  );

  const reports = async () => (await server.call("GET", "/v1/events?type=detection_rule_undecided")).body.data as any[];

  test("a padded value that a rule cannot decide raises one alert that names the rule and the event", async () => {
    await makeRule("test.padded");
    await submit("other", { command: padding });
    const first = await submit("process_creation", { command: padding });
    const [alert] = await eventually(
      () => alertsOf(server, WATCHER),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    expect(alert).toMatchObject({
      title: `Rule test.padded could not be decided on event ${first}`,
      severity: "high",
      event_count: 1,
    });
    for (let i = 0; i < 5; i++) await submit("process_creation", { command: padding });
    server = await server.restart();
    await makeRule("test.padded_too");
    await submit("process_creation", { command: padding });
    const alerts = await eventually(
      () => alertsOf(server, WATCHER),
      (found) => expect(found).toHaveLength(2),
    );
    expect(alerts.map(({ event_count }) => event_count)).toEqual([1, 1]);
    expect((await reports()).map(({ raw }) => raw.detection_rule).sort()).toEqual(["test.padded", "test.padded_too"]);
    const { text } = await server.call("GET", "/metrics");
    expect(text).toMatch(/^tocsin_detection_undecided_total [1-9]/m);
  });
});

describe("reports", () => {
  const undecided = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      ruleId: `rule_${i}`,
      ruleName: `test.rule_${i}`,
      reason: "patterns" as const,
      eventId: "evt_1",
      events: 3,
    }));

  test("name a rule once per hour", () => {
    const reports = new UndecidedReports();
    expect(reports.reportsOf(undecided(2), 0)).toHaveLength(2);
    expect(reports.reportsOf(undecided(3), HOUR_MS - 1)).toMatchObject([
      { draft: { raw: { detection_rule_id: "rule_2" } } },
    ]);
    expect(reports.reportsOf(undecided(2), HOUR_MS)).toHaveLength(2);
  });

  test("name it again for another reason", () => {
    const reports = new UndecidedReports();
    const [one] = undecided(1);
    expect(reports.reportsOf([one!, { ...one!, reason: "values" }], 0)).toMatchObject([
      { draft: { raw: { reason: "patterns", message: expect.stringContaining("too long for its patterns") } } },
      { draft: { raw: { reason: "values", message: expect.stringContaining("more values") } } },
    ]);
  });

  test("have the same token for the same rule and hour, also after a restart", () => {
    const tokenAt = (ms: number) => new UndecidedReports().reportsOf(undecided(1), ms)[0]!.idempotencyToken;
    expect(tokenAt(5)).toBe(tokenAt(HOUR_MS - 1));
    expect(tokenAt(5)).not.toBe(tokenAt(HOUR_MS));
  });

  test("are limited to a hundred per hour", () => {
    const reports = new UndecidedReports();
    expect(reports.reportsOf(undecided(150), 0)).toHaveLength(100);
    expect(reports.reportsOf(undecided(150), 1)).toEqual([]);
  });
});
