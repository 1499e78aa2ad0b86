import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { alertServer } from "../../test/alert-server.ts";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";
import { DAY_MS } from "../lib/time.ts";
import { createRule, rule } from "./rule-endpoints.fixture.ts";

describe("the stats of a rule", () => {
  const { clock, current, raise, post } = alertServer();
  const statsOf = async (path: string) => (await current.server.call("GET", `/v1/rules${path}`)).body.data;

  test("count its recent alerts and the share of false positives among the resolved ones", async () => {
    const noisy = await createRule(current.server);
    const quiet = await createRule(current.server);
    const resolve = async (resolution: string) =>
      expect((await post(`${await raise({ name: noisy.name })}/resolve`, { resolution })).status).toBe(200);
    clock.ms -= 100 * DAY_MS;
    await resolve("true_positive");
    clock.ms += 50 * DAY_MS;
    await resolve("false_positive");
    await resolve("true_positive");
    clock.ms += 50 * DAY_MS;
    await resolve("benign");
    await raise({ name: noisy.name });
    await raise({ name: noisy.name });
    const stats = { alerts_7d: 3, false_positive_share: 0.333 };
    expect((await statsOf(`/${noisy.id}`)).stats).toMatchObject(stats);
    const listed = await statsOf("?search=rule");
    const row = (id: string) => listed.find((one: { id: string }) => one.id === id).stats;
    expect(row(noisy.id)).toMatchObject(stats);
    expect(row(quiet.id)).toMatchObject({ alerts_7d: 0, false_positive_share: null });
    clock.ms += 7 * DAY_MS + 1;
    expect((await statsOf(`/${noisy.id}`)).stats).toMatchObject({ alerts_7d: 0, false_positive_share: 0.333 });
  });
});

describe("a rule that names a channel", () => {
  let server: TestServer;
  beforeAll(async () => {
    const environment = { TOCSIN_NOTIFICATIONS_SLACK_URL: "https://hooks.example.com/services/T0/B0/x" };
    const loaded = loadSettings({ environment, workingFolder: "/" });
    if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
    server = await openTestServer({ settings: { notifications: loaded.settings.notifications } });
  });
  afterAll(() => server.close());

  test("is answered with a warning if the channel is not configured", async () => {
    const body = rule({ actions: [{ alert: { channels: ["slack", "email"] } }] });
    const warnings = [
      {
        field: "actions[0].alert.channels[1]",
        message: "the channel email is not configured, so alerts are not sent to it",
        suggestion: null,
      },
    ];
    const created = await server.call("POST", "/v1/rules", { body });
    expect(created.body.meta.warnings).toEqual(warnings);
    const path = `/v1/rules/${created.body.data.id}`;
    expect((await server.call("GET", path)).body.meta.warnings).toEqual(warnings);
    expect((await server.call("PATCH", path, { body: { enabled: false } })).body.meta.warnings).toEqual(warnings);
    const replace = (channels: string[]) =>
      server.call("PUT", path, { body: { ...body, enabled: true, actions: [{ alert: { channels } }] } });
    expect((await replace(["email"])).body.meta.warnings).toMatchObject([{ field: "actions[0].alert.channels[0]" }]);
    expect((await replace(["slack"])).body.meta.warnings).toBeUndefined();
    expect((await server.call("GET", path)).body.meta.warnings).toBeUndefined();
  });
});
