import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { openAlerts, type Alerts } from "../alerts/alerts.ts";
import { idMaker } from "../lib/id.ts";
import type { Alert } from "../model/alert.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/ports/store.ts";
import { Analyst, type AnalystOptions, type AnalystSettings } from "./analyst.ts";
import { someAlert } from "./evidence.fixture.ts";

const KEY = "sk-a-very-secret-key";
const GOOD = {
  summary: "Somebody guesses passwords.",
  threat_score: 71,
  reasoning: ["Five failures from one address."],
  suggested_actions: ["Lock the account."],
};

let dataDir: string;
let store: Store;
let alerts: Alerts;
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-analysis-"));
  const log = pino({ level: "silent" });
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry: new Registry(), log });
  alerts = openAlerts({ store, addException: () => Promise.reject(new Error("unasked")) });
});
afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly path: string;
  readonly body: any;
}

/** Response of a service: a status and a body, or none at all. */
type Service = (
  asked: Asked,
  before: number,
) => { status?: number; body: string; headers?: Record<string, string> } | undefined;

async function startService(answer: Service) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const each = { headers: request.headers, path: request.url!, body: JSON.parse(Buffer.concat(chunks).toString()) };
    const said = answer(each, asked.push(each) - 1);
    if (said)
      response.writeHead(said.status ?? 200, { "content-type": "application/json", ...said.headers }).end(said.body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/` };
}

const completion = (content: unknown, more: object = {}) =>
  JSON.stringify({
    choices: [
      { message: { content: typeof content === "string" ? content : JSON.stringify(content) }, finish_reason: "stop" },
    ],
    usage: { total_tokens: 1234 },
    ...more,
  });

const logged: string[] = [];
async function startAnalyst(settings: Partial<AnalystSettings>, more: Partial<AnalystOptions> = {}) {
  const log = pino({ level: "info" }, { write: (line: string) => void logged.push(line) });
  const registry = new Registry();
  const analyst = new Analyst({
    settings: {
      automaticFrom: "off",
      url: null,
      model: "some-model",
      key: KEY,
      timeoutSeconds: 5,
      monthlyTokensMax: 1_000_000,
      ...settings,
    },
    store,
    annotate: (...annotation) => alerts.annotate(...annotation),
    registry,
    log,
    delayMs: 1,
    ...more,
  });
  closing.push(() => analyst.close());
  await analyst.begin();
  return { analyst, registry };
}

const newAlertId = idMaker("alt_");
async function makeAlert(more: Partial<Alert> = {}): Promise<Alert> {
  const alert = someAlert({ id: newAlertId(), createdAt: Date.now(), ...more });
  expect(await store.alerts.commit({ alerts: [alert], timeline: [] })).toEqual([]);
  return alert;
}

const month = () => new Date().toISOString().slice(0, 7);

async function analyseWith(service: Service, settings: Partial<AnalystSettings> = {}) {
  const { url, asked } = await startService(service);
  const { analyst, registry } = await startAnalyst({ url, ...settings });
  const alert = await makeAlert();
  const analysed = await analyst.analyse(alert.id, "anna");
  return { alert, analysed: analysed!, analysis: analysed!.aiAnalysis!, asked, registry };
}

test("a model gets a schema and its key, and its analysis is stored with the provider", async () => {
  const before = await store.analysis.tokensUsed(month());
  const { analysis, asked, alert, registry } = await analyseWith(() => ({ body: completion(GOOD) }));
  expect(analysis).toEqual({
    ...GOOD,
    provider: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    model: "some-model",
    analysed_at: expect.any(String),
  });
  expect(asked).toHaveLength(1);
  const { path, headers, body } = asked[0]!;
  expect([path, headers.authorization, body.model]).toEqual(["/v1/chat/completions", `Bearer ${KEY}`, "some-model"]);
  expect(body.response_format.json_schema.strict).toBe(true);
  expect(body.messages.map(({ role }: any) => role)).toEqual(["system", "user"]);
  expect((await store.alerts.get(alert.id))!.aiAnalysis).toEqual(analysis);
  expect((await store.alerts.withTimeline(alert.id))!.timeline).toEqual([
    expect.objectContaining({ kind: "analysed", provider: analysis.provider, actor: "anna" }),
  ]);
  const used = await store.analysis.tokensUsed(month());
  expect(used - before).toBe(1234);
  expect(await registry.metrics()).toMatch(new RegExp(`^tocsin_analysis_month_tokens ${used}$`, "m"));
});

test("a service that refuses schemas gets requests without one from then on", async () => {
  const { url, asked } = await startService(({ body }) =>
    body.response_format
      ? { status: 400, body: "{}" }
      : { body: completion("```json\n" + JSON.stringify(GOOD) + "\n```") },
  );
  const { analyst } = await startAnalyst({ url });
  for (let i = 0; i < 2; i++) {
    const { id } = await makeAlert();
    expect((await analyst.analyse(id, "anna"))!.aiAnalysis).toMatchObject(GOOD);
  }
  expect(asked.map(({ body }) => body.response_format !== undefined)).toEqual([true, false, false]);
});

const WRONG: [string, Service, RegExp][] = [
  ["is not JSON", () => ({ body: "<html>" }), /not a chat completion/],
  ["has no choices", () => ({ body: "{}" }), /not a chat completion/],
  ["is prose", () => ({ body: completion("I think it is fine.") }), /does not fit the schema/],
  ["lacks a field", () => ({ body: completion({ ...GOOD, reasoning: undefined }) }), /reasoning/],
  ["has a score of 1000", () => ({ body: completion({ ...GOOD, threat_score: 1000 }) }), /threat_score/],
  ["has a score as text", () => ({ body: completion({ ...GOOD, threat_score: "71" }) }), /threat_score/],
  ["has a summary that is too long", () => ({ body: completion({ ...GOOD, summary: "x".repeat(1001) }) }), /summary/],
  [
    "sets additional fields",
    () => ({ body: completion({ ...GOOD, status: "resolved", severity: "info" }) }),
    /does not fit the schema/,
  ],
  ["is cut off", () => ({ body: completion(GOOD).replace('"stop"', '"length"') }), /cut off at the token limit/],
  [
    "is a refusal",
    () => ({ body: JSON.stringify({ choices: [{ message: { content: null, refusal: "I cannot." } }] }) }),
    /refused/,
  ],
  ["is huge", () => ({ body: completion({ ...GOOD, summary: "x".repeat(2_000_000) }) }), /longer than/],
  ["is an error", () => ({ status: 500, body: `{"error":"bad key ${KEY}"}` }), /^answered 500$/],
  [
    "rejects the key",
    () => ({ status: 401, body: `{"error":"bad key ${KEY}"}` }),
    /^answered 401 \(is analysis\.key right\?\)$/,
  ],
  ["denies access", () => ({ status: 403, body: "" }), /^answered 403 \(is analysis\.key right\?\)$/],
  ["is 404", () => ({ status: 404, body: "" }), /^answered 404 \(are analysis\.url and analysis\.model right\?\)$/],
];
test.each(WRONG)("if the response %s, the built-in scorer takes over and says why", async (_, service, reason) => {
  const { analysis, analysed, alert } = await analyseWith(service);
  expect(analysis.provider).toBe("builtin");
  expect(analysis.provider_error).toMatch(reason);
  expect(analysis.model).toBeUndefined();
  expect(analysis.reasoning[0]).toBe("+24: severity medium (up to 50)");
  expect([analysed.status, analysed.severity, analysed.version]).toEqual([alert.status, alert.severity, 2]);
  expect(JSON.stringify([analysis, logged])).not.toContain(KEY);
});

test("a slow or unreachable model is abandoned", async () => {
  const slow = await analyseWith(() => undefined, { timeoutSeconds: 0.2 });
  expect(slow.analysis.provider_error).toBe("no answer within 0.2 s");
  const { analyst } = await startAnalyst({ url: "http://127.0.0.1:1/v1" });
  const { id } = await makeAlert();
  expect((await analyst.analyse(id, "anna"))!.aiAnalysis!.provider_error).toContain("ECONNREFUSED");
});

test("markup and control characters in a response are neutralised", async () => {
  const summary = "<script>alert(1)</script>\u0000\u202e [click](javascript:alert(1))";
  const { analysis } = await analyseWith(() => ({ body: completion({ ...GOOD, summary, reasoning: ["a\r\nb"] }) }));
  expect(analysis.summary).toBe("<script>alert(1)</script> [click](javascript:alert(1))");
  expect(analysis.reasoning).toEqual(["a b"]);
});

test("limits count characters, not UTF-16 units", async () => {
  const summary = "😀".repeat(1000);
  const reasoning = ["😀".repeat(500)];
  const { analysis } = await analyseWith(() => ({ body: completion({ ...GOOD, summary, reasoning }) }));
  expect(analysis).toMatchObject({ summary, reasoning });
  const long = await analyseWith(() => ({ body: completion({ ...GOOD, summary: `${summary}x` }) }));
  expect(long.analysis).toMatchObject({ provider: "builtin", provider_error: expect.stringContaining("summary") });
});

test("without a model the built-in scorer is used, and no failure is reported", async () => {
  const { analyst } = await startAnalyst({ url: null });
  const { id } = await makeAlert();
  const { aiAnalysis } = (await analyst.analyse(id, "anna"))!;
  expect(aiAnalysis!.provider).toBe("builtin");
  expect(aiAnalysis).not.toHaveProperty("provider_error");
  expect(await analyst.analyse("alt_0", "anna")).toBeUndefined();
});

test("the scorer considers stored reputation, spread and history", async () => {
  const drafts = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"].map((address) => ({
    draft: {
      type: "login_failure",
      source: "custom",
      severity: "low" as const,
      class: "security" as const,
      timestampMs: Date.now(),
      raw: { src_ip: address, user: "root" },
      enrichment: { abuse_ipdb: { score: 75 }, lists: ["bad"] },
    },
  }));
  const events = await store.events.append(drafts);
  const rule = { id: "rule_h", name: "site.history", description: "", tags: [] };
  for (let i = 0; i < 3; i++) {
    await makeAlert({
      rule,
      createdAt: Date.now() - 1000,
      status: "resolved",
      resolution: "true_positive",
      resolvedAt: Date.now(),
    });
  }
  const relatedEvents = events.map(({ id }) => ({ id, timestampMs: Date.now() }));
  const { id } = await makeAlert({ rule, relatedEvents, createdAt: Date.now() + 1000 });
  const { analyst } = await startAnalyst({});
  const { reasoning, threat_score } = (await analyst.analyse(id, "anna"))!.aiAnalysis!;
  expect(reasoning).toEqual([
    "+24: severity medium (up to 50)",
    "+20: reputation: an address has an abuse score of 75 of 100; on the list bad (up to 20)",
    "+2: spread: 4 senders, 1 target, 1 source of events in the newest events (up to 10)",
    "+0: novelty: 3 alerts of the rule in the 30 days before",
    "+10: history: earlier alerts of the rule were resolved as 3 true, 0 false, 0 benign, 0 duplicates",
  ]);
  expect(threat_score).toBe(56);
});

test("the monthly token budget survives a restart and is renewed each month", async () => {
  const { url, asked } = await startService(() => ({ body: completion(GOOD, { usage: { total_tokens: 4000 } }) }));
  let nowMs = Date.UTC(2031, 0, 15);
  const settings = { url, monthlyTokensMax: 8000 };
  const analyse = async () => {
    // A new analyst each time, so that the usage cannot come from its memory.
    const { analyst } = await startAnalyst(settings, { now: () => nowMs });
    const { id } = await makeAlert();
    return (await analyst.analyse(id, "anna"))!.aiAnalysis!;
  };
  const providers: string[] = [];
  for (let i = 0; i < 3; i++) providers.push((await analyse()).provider);
  expect(providers.map((name) => name === "builtin")).toEqual([false, false, true]);
  expect((await analyse()).provider_error).toBe("the monthly token budget is used up");
  expect([asked.length, await store.analysis.tokensUsed("2031-01")]).toEqual([2, 8000]);
  nowMs = Date.UTC(2031, 1, 1);
  expect((await analyse()).provider).not.toBe("builtin");
});

test("concurrent analyses share the monthly token budget", async () => {
  const { url, asked } = await startService(() => ({ body: completion(GOOD, { usage: { total_tokens: 2000 } }) }));
  const { analyst } = await startAnalyst({ url, monthlyTokensMax: 5000 }, { now: () => Date.UTC(2032, 0, 15) });
  const ids = (await Promise.all(Array.from({ length: 4 }, () => makeAlert()))).map(({ id }) => id);
  const analysed = await Promise.all(ids.map((id) => analyst.analyse(id, "anna")));
  const errors = analysed.map((alert) => alert!.aiAnalysis!.provider_error);
  expect(errors.filter((error) => error === "the monthly token budget is used up")).toHaveLength(2);
  expect([asked.length, await store.analysis.tokensUsed("2032-01")]).toEqual([2, 4000]);
});

test("a response without a token count is charged the maximum cost of its prompt", async () => {
  const before = await store.analysis.tokensUsed(month());
  await analyseWith(() => ({ body: completion(GOOD, { usage: undefined }) }));
  expect((await store.analysis.tokensUsed(month())) - before).toBeGreaterThan(1500);
});

const analysedOf = async (ids: readonly string[]) =>
  (await store.alerts.getMany(ids)).map((alert) => alert!.aiAnalysis !== null);

test("alerts at or above a severity are analysed automatically, others are not", async () => {
  const { analyst } = await startAnalyst({ automaticFrom: "high" });
  const made = [];
  for (const severity of ["critical", "high", "medium"] as const) made.push(await makeAlert({ severity }));
  for (const alert of made) analyst.enqueue(alert);
  const ids = made.map(({ id }) => id);
  await vi.waitFor(async () => expect(await analysedOf(ids)).toEqual([true, true, false]), { timeout: 100_000 });
  expect((await store.alerts.withTimeline(ids[0]!))!.timeline[0]).toMatchObject({
    kind: "analysed",
    actor: "system",
    provider: "builtin",
  });
});

test("the next start analyses alerts that were left over, except old and resolved ones", async () => {
  const severity = "critical" as const;
  const lost = await makeAlert({ severity });
  const old = await makeAlert({ severity, createdAt: Date.now() - 2 * 86_400_000 });
  const resolved = await makeAlert({ severity, status: "resolved", resolution: "benign", resolvedAt: Date.now() });
  await startAnalyst({ automaticFrom: "critical" });
  const ids = [lost.id, old.id, resolved.id];
  await vi.waitFor(async () => expect(await analysedOf(ids)).toEqual([true, false, false]), { timeout: 100_000 });
});

test("in a flood, some alerts are dropped, counted and caught up later", async () => {
  const { analyst, registry } = await startAnalyst({ automaticFrom: "critical" }, { waitingMax: 2 });
  const made: Alert[] = [];
  for (let i = 0; i < 5; i++) made.push(await makeAlert({ severity: "critical" }));
  for (const alert of made) analyst.enqueue(alert);
  expect(await registry.metrics()).toContain("tocsin_analysis_dropped_total 3");
  const ids = made.map(({ id }) => id);
  await vi.waitFor(async () => expect((await analysedOf(ids)).every(Boolean)).toBe(true), { timeout: 100_000 });
});

test("automatic analysis backs off from a failing model for longer each time, until it recovers", async () => {
  let isThere = false;
  const { url, asked } = await startService(() => (isThere ? { body: completion(GOOD) } : { status: 500, body: "" }));
  let nowMs = Date.UTC(2032, 0, 1);
  const { analyst } = await startAnalyst({ url }, { now: () => nowMs });
  const analyse = async (actor = "system") => {
    const { id } = await makeAlert();
    return (await analyst.analyse(id, actor))!.aiAnalysis!;
  };
  for (let i = 0; i < 3; i++) expect((await analyse()).provider_error).toBe("answered 500");
  const paused = await analyse();
  expect(paused.provider).toBe("builtin");
  expect(paused.provider_error).toBe("backing off until 2032-01-01T00:01:00.000Z: answered 500");
  expect(asked).toHaveLength(3);
  // One request probes the model.
  nowMs += 60_000;
  expect((await analyse()).provider_error).toBe("answered 500");
  expect((await analyse()).provider_error).toContain("backing off until 2032-01-01T00:03:00.000Z");
  // A person's request is still sent and does not prolong the backoff.
  expect((await analyse("anna")).provider_error).toBe("answered 500");
  expect((await analyse()).provider_error).toContain("backing off until 2032-01-01T00:03:00.000Z");
  expect(asked).toHaveLength(5);
  isThere = true;
  expect((await analyse("anna")).provider).not.toBe("builtin");
  expect((await analyse()).provider).not.toBe("builtin");
  isThere = false;
  for (let i = 0; i < 2; i++) expect((await analyse()).provider_error).toBe("answered 500");
  isThere = true;
  expect((await analyse()).provider).not.toBe("builtin");
});

test.each([401, 403, 429])("one %i starts a backoff of the length that the service asks for", async (status) => {
  const { url, asked } = await startService(() => ({ status, body: "", headers: { "retry-after": "600" } }));
  let nowMs = Date.UTC(2032, 1, 1);
  const { analyst } = await startAnalyst({ url }, { now: () => nowMs });
  const { id } = await makeAlert();
  const errorFor = async (actor: string) => (await analyst.analyse(id, actor))!.aiAnalysis!.provider_error;
  expect(await errorFor("system")).toContain(`answered ${status}`);
  nowMs += 599_000;
  // The service's own Retry-After also holds for a person's request.
  for (const actor of ["system", "anna"])
    expect(await errorFor(actor)).toContain("backing off until 2032-02-01T00:10:00.000Z");
  expect(asked).toHaveLength(1);
  nowMs += 1000;
  expect(await errorFor("system")).toContain(`answered ${status}`);
  expect(asked).toHaveLength(2);
});

test("a silent model delays three alerts at most", async () => {
  const { url, asked } = await startService(() => undefined);
  const { analyst } = await startAnalyst({ url, timeoutSeconds: 0.2, automaticFrom: "critical" });
  const made: Alert[] = [];
  for (let i = 0; i < 6; i++) made.push(await makeAlert({ severity: "critical" }));
  for (const alert of made) analyst.enqueue(alert);
  const ids = made.map(({ id }) => id);
  await vi.waitFor(async () => expect((await analysedOf(ids)).every(Boolean)).toBe(true), { timeout: 100_000 });
  expect(asked).toHaveLength(3);
  const errors = (await store.alerts.getMany(ids)).map((alert) => alert!.aiAnalysis!.provider_error);
  expect(errors[0]).toBe("no answer within 0.2 s");
  expect(errors[5]).toMatch(/^backing off until .*: no answer within 0\.2 s$/);
});

test("bad responses to some alerts do not start a backoff, which senders of events could provoke", async () => {
  const { url, asked } = await startService((_, before) => ({ body: completion(before < 5 ? "I will not." : GOOD) }));
  const { analyst } = await startAnalyst({ url });
  const providers: string[] = [];
  for (let i = 0; i < 6; i++) {
    const { id } = await makeAlert();
    providers.push((await analyst.analyse(id, "system"))!.aiAnalysis!.provider);
  }
  expect(providers.map((name) => name === "builtin")).toEqual([true, true, true, true, true, false]);
  expect(asked).toHaveLength(6);
});

test("a group outside the searched alerts of a noisy rule does not count as new", async () => {
  const rule = { id: "rule_n", name: "site.noisy", description: "", tags: [] };
  const groupOf = (value: string) => ({ field: "raw.src_ip", value });
  const nowMs = Date.now();
  await makeAlert({ rule, group: groupOf("192.0.2.1"), createdAt: nowMs - 5000 });
  for (let i = 0; i < 99; i++) await makeAlert({ rule, group: groupOf("192.0.2.2"), createdAt: nowMs - 4000 + i });
  const { analyst } = await startAnalyst({});
  const noveltyFor = async (value: string) => {
    const { id } = await makeAlert({ rule, group: groupOf(value), createdAt: nowMs });
    return (await analyst.analyse(id, "anna"))!.aiAnalysis!.reasoning[3];
  };
  // All hundred were searched.
  expect(await noveltyFor("192.0.2.3")).toBe("+5: novelty: the rule's first alert for 192.0.2.3 in 30 days");
  await makeAlert({ rule, group: groupOf("192.0.2.2"), createdAt: nowMs - 1 });
  expect(await noveltyFor("192.0.2.1")).toMatch(
    /^\+0: novelty: 192\.0\.2\.1 is not among the last 100 of 10[12] alerts of the rule in the 30 days before/,
  );
});
