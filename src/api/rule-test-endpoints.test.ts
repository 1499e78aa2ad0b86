import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { plainRule } from "../model/rule.fixture.ts";
import { createRule, faults, rule } from "./rule-endpoints.fixture.ts";
import { runInThread } from "./rule-test-endpoints.ts";

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
});
afterAll(() => server.close());

const failures = (repeat: number) => [
  { type: "login_failure", raw: { src_ip: "192.0.2.7", number: "{n}" }, repeat, every: "10s" },
];
const TESTS = [
  { name: "five fire", events: failures(5), alerts: 1, event_count: 5, title: "Logins from 192.0.2.7" },
  { name: "four do not", start: "2026-11-03T08:00:00Z", events: failures(4), wait: "1h", alerts: 0 },
];
const LOGINS = {
  title: "Logins from {{raw.src_ip}}",
  conditions: [{ field: "type", equals: "login_failure" }],
  window: "5m",
  threshold: { count: 5, group_by: "raw.src_ip" },
  tests: TESTS,
};
const create = (more: object = {}) => createRule(server, { ...LOGINS, ...more });
const read = async (id: string) => (await server.call("GET", `/v1/rules/${id}`)).body.data;
const run = (id: string) => server.call("POST", `/v1/rules/${id}/test`, {});
const runDraft = (draft: object) => server.call("POST", "/v1/rules/test", { body: { rule: draft } });

describe("the tests of a rule", () => {
  test("read back as they were sent, one rule at a time", async () => {
    const made = await create();
    expect(made.tests).toEqual(TESTS);
    expect((await read(made.id)).tests).toEqual(TESTS);
    expect((await createRule(server)).tests).toEqual([]);
    const listed = (await server.call("GET", `/v1/rules?limit=100&search="${made.name}"`)).body.data;
    expect(listed.find(({ id }: { id: string }) => id === made.id)).not.toHaveProperty("tests");
    const patched = await server.call("PATCH", `/v1/rules/${made.id}`, { body: { enabled: false } });
    expect(patched.body.data.tests).toEqual(TESTS);
  });

  test("stay when a client that does not know of them replaces the rule, and go with an empty list", async () => {
    const { tests: _, ...made } = await create();
    const replaced = await server.call("PUT", `/v1/rules/${made.id}`, { body: { ...made, severity: "high" } });
    expect(replaced.body.data).toMatchObject({ severity: "high", tests: TESTS });
    const one = await server.call("PUT", `/v1/rules/${made.id}`, { body: { ...made, tests: TESTS.slice(1) } });
    expect(one.body.data.tests).toEqual(TESTS.slice(1));
    const none = await server.call("PUT", `/v1/rules/${made.id}`, { body: { ...made, tests: [] } });
    expect([none.body.data.tests, (await read(made.id)).tests]).toEqual([[], []]);
  });

  test("are imported with the rule", async () => {
    const content = JSON.stringify(rule({ ...LOGINS, name: "imported.logins" }));
    const { data } = (await server.call("POST", "/v1/rules/import", { body: { format: "tocsin", content } })).body;
    expect((await read(data.imported[0].id)).tests).toEqual(TESTS);
  });

  test.each([
    [[{ name: "a", alerts: 1 }], "tests[0].events"],
    [[{ name: "", alerts: 1, events: [] }], "tests[0].name"],
    [[{ name: "a", alerts: -1, events: [] }], "tests[0].alerts"],
    [[{ name: "a", alerts: 1, event: [], events: [] }], "tests[0].event"],
    [[{ name: "a", alerts: 1, events: [{ type: "x", at: "90s" }] }], "tests[0].events[0].at"],
    [[{ name: "a", alerts: 1, events: [{ type: "x", at: "+367d" }] }], "tests[0].events[0].at"],
    [[{ name: "a", alerts: 1, events: [{ type: "x", source: "nowhere" }] }], "tests[0].events[0].source"],
    [[{ name: "a", alerts: 1, events: [{ type: "x", every: "1s" }] }], "tests[0].events[0].every"],
    [[{ name: "a", alerts: 1, events: [{ type: "x", repeat: 9999, every: "9d" }] }], "tests[0].events[0].every"],
    [[{ name: "a", alerts: 1, start: "9999-12-31", events: [] }], "tests[0].start"],
    [[{ name: "a", alerts: 1, events: ["a", "b", "c"].map((type) => ({ type, repeat: 4000 })) }], "tests[0].events"],
    [Array.from({ length: 101 }, () => ({ name: "a", alerts: 0, events: [] })), "tests"],
    [[{ name: "a", alerts: 0, title: "x".repeat(70_000), events: [] }], "tests"],
    ["none", "tests"],
  ])("%j is refused at %s", async (tests, field) => {
    const stored = await server.call("POST", "/v1/rules", { body: rule({ tests }) });
    expect([stored.status, faults(stored)]).toEqual([400, [field]]);
    const drafted = await runDraft(rule({ tests }));
    expect([drafted.status, faults(drafted)]).toEqual([400, [`rule.${field}`]]);
  });
});

describe("POST /v1/rules/:id/test", () => {
  test("says in words what was expected and what came", async () => {
    const { id } = await create({
      tests: [...TESTS, { name: "wrong", events: failures(5), alerts: 2, event_count: 9 }],
    });
    const { status, body } = await run(id);
    expect(status).toBe(200);
    expect(body.data).toEqual({
      passed: 2,
      failed: 1,
      tests: [
        {
          name: "five fire",
          passed: true,
          expected: '1 alert with 5 events, titled "Logins from 192.0.2.7"',
          actual: '1 alert with 5 events, titled "Logins from 192.0.2.7"',
        },
        { name: "four do not", passed: true, expected: "no alerts", actual: "no alerts" },
        {
          name: "wrong",
          passed: false,
          expected: "2 alerts with 9 events",
          actual: '1 alert with 5 events, titled "Logins from 192.0.2.7"',
        },
      ],
    });
    expect((await server.call("GET", "/v1/alerts")).body.data).toEqual([]);
  });

  test("runs the tests of built-in rules, which are read with the rule", async () => {
    const { data } = (await server.call("GET", "/v1/rules?search=network.brute_force")).body;
    const builtin = await read(data[0].id);
    expect(builtin.tests.length).toBeGreaterThan(1);
    expect(JSON.stringify(builtin.tests)).not.toContain("{platform}");
    expect((await run(builtin.id)).body.data).toMatchObject({ passed: builtin.tests.length, failed: 0 });
  });

  test("applies exceptions that are in force to all events, and no others", async () => {
    const conditions = [{ field: "raw.src_ip", equals: "192.0.2.7" }];
    const { id } = await create({ exceptions: [{ conditions, reason: "ours", expires_at: "2999-01-01T00:00:00Z" }] });
    expect((await run(id)).body.data.tests[0]).toMatchObject({ passed: false, actual: "no alerts" });
  });

  test("needs a rule and the scope rules:read; a rule without tests has nothing to run", async () => {
    expect((await run("rule_none")).status).toBe(404);
    const { id } = await createRule(server);
    expect((await run(id)).body.data).toEqual({ passed: 0, failed: 0, tests: [] });
    const { secret } = await server.addKey({ name: "events", scopes: ["events:read"] });
    for (const path of [`/v1/rules/${id}/test`, "/v1/rules/test"]) {
      expect((await server.call("POST", path, { key: secret, body: {} })).status).toBe(403);
    }
  });
});

describe("POST /v1/rules/test", () => {
  test("runs a draft without storing it, also as a stored rule was read", async () => {
    const drafted = await runDraft(rule({ ...LOGINS, name: "draft.logins" }));
    expect(drafted.body.data).toMatchObject({ passed: 2, failed: 0 });
    expect((await server.call("GET", "/v1/rules?search=draft.logins")).body.data).toEqual([]);
    const made = await create();
    expect((await runDraft(await read(made.id))).body.data).toMatchObject({ passed: 2 });
  });

  test("runs one at a time per key", async () => {
    const answers = await Promise.all([1, 2].map(() => runDraft(rule(LOGINS))));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 429]);
  });
});

describe("a run", () => {
  const heavy = (more: object = {}) => [
    { name: "much", alerts: 0, events: [{ type: "x", raw: { text: "{n}".repeat(1000) }, repeat: 10_000 }], ...more },
  ];
  const matching = plainRule({ conditions: [{ field: "type", equals: "x" }] });

  test("that takes too long is refused at its field, and so is its thread ended", async () => {
    const { signal } = new AbortController();
    const late = runInThread(matching, Array(100).fill(heavy()[0]), { signal, field: "rule.tests", msMax: 1 });
    await expect(late).rejects.toMatchObject({ status: 400, details: [{ field: "rule.tests" }] });
  });

  test("stops when the caller disconnects", async () => {
    const gone = new AbortController();
    const running = runInThread(matching, heavy(), { signal: gone.signal, field: "tests" });
    gone.abort(new Error("hung up"));
    await expect(running).rejects.toThrow("hung up");
  });
});
