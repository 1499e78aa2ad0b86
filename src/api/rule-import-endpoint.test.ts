import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { importInThread } from "./rule-import-endpoint.ts";
import type { RuleStore } from "../store/ports/rule-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const sigma = (title: string, detection = "{ s: { Image: odd }, condition: s }") =>
  `title: ${title}\nlevel: high\nlogsource: { category: process_creation }\ndetection: ${detection}\n`;

const importing = (body: unknown, key?: string) =>
  server.call("POST", "/v1/rules/import", { body, ...(key !== undefined && { key }) });

describe("POST /v1/rules/import", () => {
  test("creates rules from Sigma and reports a reason for each refused one", async () => {
    const content = `${sigma("Good one")}---\n${sigma("Bad one", "{ s: { a|nope: 1 }, condition: s }")}`;
    const { status, body } = await importing({ format: "sigma", content });
    expect(status).toBe(200);
    expect(body.data).toEqual({
      imported: [{ id: expect.stringMatching(/^rule_[0-9a-f]{32}$/), name: "sigma.good_one" }],
      refused: [{ name: "Bad one", place: "content:6", reasons: ["detection.s.a|nope: unknown modifier nope"] }],
      remarks: [],
    });
    const made = await server.call("GET", `/v1/rules/${body.data.imported[0].id}`);
    expect(made.body.data).toMatchObject({
      name: "sigma.good_one",
      title: "Good one",
      severity: "high",
      enabled: true,
    });

    const again = await importing({ format: "sigma", content: sigma("Good one") });
    expect(again.body.data).toMatchObject({
      imported: [],
      refused: [{ name: "sigma.good_one", reasons: [expect.stringMatching(/already/)] }],
    });
  });

  test("an imported rule matches the next event", async () => {
    const { body } = await importing({
      format: "sigma",
      content: sigma("Finds it", "{ s: { Image: found-by-import }, condition: s }"),
    });
    const event = { type: "process_creation", source: "custom", data: { Image: "Found-By-Import" } };
    expect((await server.call("POST", "/v1/events", { body: event })).status).toBe(201);
    const path = `/v1/alerts?rule_name=${body.data.imported[0].name}`;
    await expect.poll(async () => (await server.call("GET", path)).body.pagination.total).toBe(1);
  });

  test("a later filter becomes an exception of the rules imported before it, once", async () => {
    const made = await importing({ format: "sigma", content: `${sigma("Filtered later")}id: 11-22\n` });
    const { id } = made.body.data.imported[0];
    const other = await importing({ format: "sigma", content: sigma("Not filtered") });
    const filter = (rules: string, logsource = "{ category: process_creation }") =>
      `title: Ours\nlogsource: ${logsource}\nfilter: { rules: ${rules}, s: { User: root }, condition: not s }\n`;
    const exceptionsOf = async (ruleId: string) =>
      (await server.call("GET", `/v1/rules/${ruleId}`)).body.data.exceptions;
    const tried = await importing({ format: "sigma", content: filter("[11-22]"), dry_run: true });
    expect(tried.body.data.remarks).toEqual([
      { name: "Ours", place: "content:1", message: "added as an exception to previously imported rules: 1" },
    ]);
    expect(await exceptionsOf(id)).toEqual([]);
    for (let i = 0; i < 2; i++) {
      const { body } = await importing({ format: "sigma", content: filter("[11-22]") });
      expect(body.data).toMatchObject({ imported: [], refused: [], remarks: [{ name: "Ours" }] });
      expect(await exceptionsOf(id)).toMatchObject([
        { reason: 'Sigma filter "Ours"', conditions: [{ field: "raw.User", equals: "root", ignore_case: true }] },
      ]);
    }
    expect(await exceptionsOf(other.body.data.imported[0].id)).toEqual([]);
    const elsewhere = await importing({ format: "sigma", content: filter("[11-22]", "{ category: dns }") });
    expect(elsewhere.body.data.refused).toMatchObject([
      { name: "Ours", reasons: [expect.stringMatching(/^logsource/)] },
    ]);
    // Replacing the rule without its origin does not change the origin.
    const { name, description, severity, conditions, actions } = (await server.call("GET", `/v1/rules/${id}`)).body
      .data;
    const put = { name, description, severity, conditions, actions, enabled: true };
    expect((await server.call("PUT", `/v1/rules/${id}`, { body: put })).status).toBe(200);
    await importing({ format: "sigma", content: filter("any") });
    expect(await exceptionsOf(id)).toHaveLength(1);
    expect(await exceptionsOf(other.body.data.imported[0].id)).toHaveLength(1);
  });

  test("supports rule files, a mapping, a dry run that creates nothing, and disabled rules", async () => {
    const own = `name: site.own_rule\ndescription: D\nseverity: low\nconditions: [{ field: type, equals: x }]\nactions: [{ alert: { channels: [] } }]\n`;
    const dry = await importing({ format: "tocsin", content: own, dry_run: true });
    expect(dry.body.data.imported).toEqual([{ id: null, name: "site.own_rule" }]);
    const made = await importing({ format: "tocsin", content: own, enabled: false });
    const mapping = "prefix: raw.log.\nlogsources: [{ category: process_creation, source: '{platform}_network' }]";
    const mapped = await importing({ format: "sigma", content: sigma("Mapped"), mapping });
    const view = async ({ body }: typeof made) =>
      (await server.call("GET", `/v1/rules/${body.data.imported[0].id}`)).body.data;
    expect(await view(made)).toMatchObject({ name: "site.own_rule", enabled: false });
    expect(await view(mapped)).toMatchObject({ source: "platform_network", conditions: [{ field: "raw.log.Image" }] });
  });

  test("a dry run reports the result of the import, including names that are taken", async () => {
    const content = `${sigma("Tried first")}---\n${sigma("Tried second")}`;
    const own = (name: string) =>
      `name: ${name}\ndescription: D\nseverity: low\nconditions: [{ field: type, equals: x }]\nactions: [{ alert: { channels: [] } }]\n`;
    const untaken = await importing({ format: "sigma", content, dry_run: true });
    expect(untaken.body.data.imported.map(({ name }: { name: string }) => name)).toHaveLength(2);
    await importing({ format: "sigma", content: sigma("Tried second") });
    const dry = await importing({ format: "sigma", content, dry_run: true });
    expect(dry.body.data).toEqual({
      imported: [{ id: null, name: "sigma.tried_first" }],
      refused: [
        {
          name: "sigma.tried_second",
          place: "content:6",
          reasons: [expect.stringMatching(/^a rule named sigma\.tried_second already exists: .*PUT \/v1\/rules\/:id/)],
        },
      ],
      remarks: [],
    });
    // One name for the first and the last of more rules than one chunk.
    const names = ["site.same", ...Array.from({ length: 120 }, (_, i) => `site.number_${i}`), "site.same"];
    const twice = { format: "tocsin", content: names.map(own).join("---\n") };
    const { imported, refused } = (await importing({ ...twice, dry_run: true })).body.data;
    expect([imported.length, refused.length]).toEqual([121, 1]);
    expect((await server.call("GET", "/v1/rules?search=site.number_")).body.pagination.total).toBe(0);
  });

  test("a native rule is refused once, under its name, with all its faults", async () => {
    const content = "---\nname: site.wrong\nseverity: odd\nconditions: [{ field: type, eqals: x }]\n---\n- no rule\n";
    const { body } = await importing({ format: "tocsin", content });
    expect(body.data.refused).toEqual([
      {
        name: "site.wrong",
        place: "content:2",
        reasons: expect.arrayContaining([
          expect.stringMatching(/^severity: /),
          "conditions[0].eqals: is unknown; did you mean equals?",
          "description: is required",
        ]),
      },
      { name: "content", place: "content:6", reasons: ["is not a rule"] },
    ]);
  });

  test("remarks refer only to rules that were created", async () => {
    const content = (title: string) => sigma(title).replace("_creation", "_creation, product: beos");
    const bad = content("Remarked and bad").replace("condition: s", "condition: t");
    const first = await importing({ format: "sigma", content: `${content("Remarked")}---\n${bad}` });
    expect(first.body.data.remarks).toEqual([expect.objectContaining({ name: "Remarked", place: "content:1" })]);
    const again = await importing({ format: "sigma", content: content("Remarked") });
    expect(again.body.data).toMatchObject({ refused: [{ name: "sigma.remarked" }], remarks: [] });
  });

  test("content that is not YAML is refused with its line, not an error", async () => {
    const { status, body } = await importing({ format: "sigma", content: "title: [\n" });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ imported: [], refused: [{ name: "content", place: "content:2" }] });
  });

  test.each([
    [{ format: "xml", content: "a" }, "format"],
    [{ format: "sigma" }, "content"],
    [{ format: "sigma", content: "" }, "content"],
    [{ format: "sigma", content: "a: 1", mappings: "" }, "mappings"],
    [{ format: "sigma", content: "a: 1", mapping: "fields: { a: b }" }, "mapping"],
    [[], "body"],
  ])("%j is refused", async (body, field) => {
    const answer = await importing(body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.map((detail: { field: string }) => detail.field)).toEqual([field]);
  });

  test("requires a body and the scope rules:write", async () => {
    expect((await server.call("POST", "/v1/rules/import")).status).toBe(400);
    const reader = await server.addKey({ scopes: ["rules:read"] });
    const { status, body } = await importing({ format: "sigma", content: sigma("Not allowed") }, reader.secret);
    expect(status).toBe(403);
    expect(body.error.message).toContain("rules:write");
  });
});

describe("a long import", () => {
  const question = () => ({
    files: [{ name: "content", content: sigma("Never read"), format: "sigma" as const }],
    enabled: true,
    platform: "platform",
    timezone: "UTC",
  });
  const except = () => Promise.reject(new Error("nothing may be changed"));
  const create = () => Promise.reject(new Error("nothing may be made"));
  const { signal } = new AbortController();

  test("is aborted at the deadline with a message that says so", async () => {
    const reading = importInThread({ input: question, create, except, signal, parseMsMax: 1 });
    await expect(reading).rejects.toMatchObject({ code: "validation_error", details: [{ field: "content" }] });
    await expect(importInThread({ input: question, create, except, signal, parseMsMax: 1 })).rejects.toThrow(
      /send it in parts/,
    );
  });

  test("ends when its client disconnects, and the next one runs", async () => {
    const document = `${sigma("Long")}x: [${"1, ".repeat(300_000)}]\n`;
    const body = JSON.stringify({ format: "sigma", content: Array(30).fill(document).join("---\n"), dry_run: true });
    const head = `POST /v1/rules/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key.secret}\r\n`;
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => undefined);
    const sent = `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    await new Promise<void>((resolve) => socket.write(sent, () => resolve()));
    socket.destroy();
    const next = await importing({ format: "sigma", content: sigma("In turn"), dry_run: true });
    expect(next.body.data.imported).toHaveLength(1);
  });

  test("lets few others wait and refuses the rest", async () => {
    // A server on which no other import can be in flight.
    const idle = await openTestServer();
    try {
      const body = { format: "sigma", content: sigma("One of many"), dry_run: true };
      const call = ({ secret: key }: { secret: string }) => idle.call("POST", "/v1/rules/import", { body, key });
      const answers = await Promise.all(Array.from({ length: 12 }, async () => call(await idle.addKey())));
      const refused = answers.filter(({ status }) => status === 503);
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(4);
      expect(refused.length).toBeGreaterThan(0);
      expect(refused[0]).toMatchObject({
        headers: { "retry-after": "10" },
        body: { error: { message: expect.stringContaining("4 imports are in flight") } },
      });
      // A key with several concurrent imports gets two of them accepted and leaves the other slots.
      const own = await Promise.all([1, 2, 3, 4].map(() => call(idle.key)));
      const statuses = own.map(({ status }) => status).sort();
      expect([statuses[0], statuses.at(-1)]).toEqual([200, 429]);
      expect(own.find(({ status }) => status === 429)!.headers["retry-after"]).toBe("10");
    } finally {
      await idle.close();
    }
  });
});

test("if the store stops accepting rules midway, the response reports created and refused ones", async () => {
  let puts = 0;
  const failing = (rules: RuleStore): RuleStore => ({
    list: () => rules.list(),
    put: (rule) => rules.put(rule),
    putMany: (many) =>
      ++puts > 1 ? Promise.reject(new StoreUnavailable("disk_full", "the disk is full")) : rules.putMany(many),
    remove: (id) => rules.remove(id),
    stats: (ids, nowMs) => rules.stats(ids, nowMs),
  });
  const full = await openTestServer({
    around: (store) => Object.create(store, { rules: { value: failing(store.rules) } }),
  });
  try {
    const content = Array.from({ length: 150 }, (_, i) => sigma(`Rule ${i}`)).join("---\n");
    const { status, body } = await full.call("POST", "/v1/rules/import", { body: { format: "sigma", content } });
    expect(status).toBe(200);
    const { imported, refused } = body.data;
    expect(imported.length + refused.length).toBe(150);
    expect(imported.length).toBeGreaterThan(0);
    expect(refused.at(-1)).toEqual({
      name: "sigma.rule_149",
      place: expect.stringMatching(/^content:/),
      reasons: ["the disk is full"],
    });
    const listed = await full.call("GET", "/v1/rules?search=sigma.rule_");
    expect(listed.body.pagination.total).toBe(imported.length);
    // If nothing was created, the whole request is refused.
    const again = await full.call("POST", "/v1/rules/import", {
      body: { format: "sigma", content: sigma("One more") },
    });
    expect(again.status).toBe(503);
  } finally {
    await full.close();
  }
});
