import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { loadSettings } from "../config/config.ts";
import { createRule, faults } from "./rule-endpoints.fixture.ts";

const NOW = Date.UTC(2026, 10, 15, 12);
const folder = mkdtempSync(join(tmpdir(), "tocsin-list-api-"));
let server: TestServer;
let clock = NOW;
beforeAll(async () => {
  const file = join(folder, "blocked.txt");
  writeFileSync(file, "203.0.113.9\nbad.example\n");
  const environment = { TOCSIN_ENRICHMENT_LISTS: `filed=${file}` };
  const loaded = loadSettings({ environment, workingFolder: folder });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  const { enrichment } = loaded.settings;
  server = await openTestServer({ settings: { rateLimits: false, enrichment }, now: () => clock });
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

const call = (method: string, path: string, body?: unknown) => server.call(method, `/v1/lists${path}`, { body });
const create = async (name: string, more: object = {}) => {
  const answer = await call("POST", "", { name, ...more });
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data;
};
const entriesOf = async (name: string, query = "") => (await call("GET", `/${name}/entries${query}`)).body;
const valuesOf = async (name: string, query = "") =>
  (await entriesOf(name, query)).data.map(({ value }: { value: string }) => value);
/** The lists of a new event with this data. */
const listsOf = async (data: object) => {
  const body = { type: "listed", source: "custom", data };
  return (await server.call("POST", "/v1/events", { body })).body.data.enrichment.lists;
};

describe("a list", () => {
  test("is created, is in force at once, and survives a restart", async () => {
    expect(await listsOf({ src_ip: "192.0.2.17" })).toBeUndefined();
    const made = await call("POST", "", {
      name: "contractors",
      description: "External staff",
      entries: [
        { value: "192.0.2.16/28", note: "laptops" },
        { value: "Evil.Example", expires_at: "2027-01-01T00:00:00Z" },
      ],
    });
    expect(made.status, made.text).toBe(201);
    expect(made.headers.location).toBe("/v1/lists/contractors");
    expect(made.body.data).toEqual({
      name: "contractors",
      description: "External staff",
      kind: "any",
      origin: "api",
      read_only: false,
      entries: 2,
      created_at: "2026-11-15T12:00:00.000Z",
      updated_at: "2026-11-15T12:00:00.000Z",
      updated_by: "test",
      used_by: [],
    });
    expect(await listsOf({ src_ip: "192.0.2.17" })).toEqual(["contractors"]);
    expect(await listsOf({ query: "www.evil.example", src_ip: "203.0.113.9" })).toEqual(["filed", "contractors"]);
    server = await server.restart();
    expect((await call("GET", "/contractors")).body.data).toEqual(made.body.data);
    expect(await entriesOf("contractors")).toMatchObject({
      data: [
        {
          value: "192.0.2.16/28",
          type: "network",
          note: "laptops",
          expires_at: null,
          expired: false,
          added_at: "2026-11-15T12:00:00.000Z",
          added_by: "test",
        },
        { value: "evil.example", type: "domain", expires_at: "2027-01-01T00:00:00.000Z" },
      ],
      pagination: { total: 2 },
    });
    expect(await listsOf({ src_ip: "192.0.2.17" })).toEqual(["contractors"]);
  });

  test("gets and loses entries", async () => {
    await create("changing", { kind: "addresses", entries: [{ value: "198.51.100.1", note: "old" }] });
    clock += 1000;
    const added = await call("POST", "/changing/entries", {
      entries: [{ value: "198.51.100.1" }, { value: "198.51.100.2" }, { value: "198.51.100.10" }],
    });
    expect(added.body.data).toEqual({ added: 2, updated: 1, removed: 0, entries: 3 });
    const [first] = (await entriesOf("changing")).data;
    expect(first).toMatchObject({ value: "198.51.100.1", note: null, added_at: "2026-11-15T12:00:00.000Z" });
    expect(await listsOf({ src_ip: "198.51.100.2" })).toEqual(["changing"]);
    const removed = await call("POST", "/changing/entries/remove", { values: ["::ffff:198.51.100.2", "192.0.2.99"] });
    expect(removed.body.data).toEqual({ added: 0, updated: 0, removed: 1, entries: 2 });
    expect(await listsOf({ src_ip: "198.51.100.2" })).toBeUndefined();
    const replaced = await call("PUT", "/changing", { kind: "domains", entries: [{ value: "new.example" }] });
    expect(replaced.body.data).toMatchObject({ kind: "domains", description: "", entries: 1 });
    expect(await valuesOf("changing")).toEqual(["new.example"]);
    expect(await listsOf({ src_ip: "198.51.100.1" })).toBeUndefined();
    clock = NOW;
  });

  test("is imported from text, added or replaced; lines that it does not accept are reported", async () => {
    await create("imported", { kind: "addresses", entries: [{ value: "192.0.2.200" }] });
    const text = (path: string, body: string) =>
      server.call("POST", `/v1/lists/imported/import${path}`, { body, headers: { "content-type": "text/plain" } });
    const added = await text("", "192.0.2.200 # known\n192.0.2.201 # new\nevil.example\nnonsense\n");
    expect(added.body.data).toEqual({
      added: 1,
      updated: 1,
      removed: 0,
      entries: 2,
      bad_lines: 2,
      refused: [
        { line: 3, text: "evil.example", message: "is a domain, and the list accepts addresses only" },
        { line: 4, text: "nonsense", message: "has no address, network or domain" },
      ],
    });
    expect((await entriesOf("imported")).data.map(({ note }: { note: string }) => note)).toEqual(["known", "new"]);
    expect((await text("?mode=replace", "192.0.2.202")).body.data).toMatchObject({ added: 1, removed: 2, entries: 1 });
    expect(await valuesOf("imported")).toEqual(["192.0.2.202"]);
    for (const body of ["# nothing", "evil.example"]) {
      expect(faults(await text("?mode=replace", body))).toEqual(["body"]);
    }
    expect(faults(await text("?mode=other", "192.0.2.1"))).toEqual(["mode"]);
    expect(await valuesOf("imported")).toEqual(["192.0.2.202"]);
  });

  test("keeps a change of its description and kind that is made while an import is being sent", async () => {
    await create("sent", { kind: "any", description: "before" });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const importing = httpRequest(
      {
        host: "127.0.0.1",
        port: server.port,
        method: "POST",
        path: "/v1/lists/sent/import?mode=replace",
        headers: {
          authorization: `Bearer ${server.key.secret}`,
          "content-type": "text/plain",
          expect: "100-continue",
        },
      },
      (response) => void text(response).then(resolve, reject),
    );
    importing.on("error", reject);
    const isAwaited = new Promise((waiting) => importing.once("continue", waiting));
    importing.flushHeaders();
    await isAwaited;
    importing.write("192.0.2.204\n");
    await call("PUT", "/sent", { kind: "addresses", description: "after", entries: [] });
    importing.end("evil.example\n");
    expect(JSON.parse(await promise).data).toMatchObject({ entries: 1, bad_lines: 1 });
    expect((await call("GET", "/sent")).body.data).toMatchObject({ kind: "addresses", description: "after" });
  });

  test("is imported from JSON, which is all that a session can send", async () => {
    await create("pasted");
    const { headers } = await server.call("POST", "/v1/session", { body: { key: server.key.secret } });
    const cookie = String(headers["set-cookie"]).split(";", 1)[0]!;
    const session = { cookie, "sec-fetch-site": "same-origin" };
    const json = (body: object, path = "") =>
      server.call("POST", `/v1/lists/pasted/import${path}`, { key: null, body, headers: session });
    const added = await json({ content: "192.0.2.203 # new\nnonsense" });
    expect([added.status, added.body.data]).toMatchObject([200, { added: 1, bad_lines: 1 }]);
    expect(faults(await json({ content: "# nothing" }))).toEqual(["content"]);
    expect(faults(await json({ content: 1, entries: [] }, "?mode=other"))).toEqual(["mode", "content", "entries"]);
    expect(faults(await json({}))).toEqual(["content"]);
    expect(await valuesOf("pasted")).toEqual(["192.0.2.203"]);
  });

  test("is paged and searched by value and note", async () => {
    const entries = ["a", "b", "c", "d"].map((name) => ({ value: `${name}.paged.example`, note: `Note ${name}` }));
    await create("paged", { entries });
    expect(await valuesOf("paged", "?page=2&per_page=3")).toEqual(["d.paged.example"]);
    const first = await entriesOf("paged", "?limit=2");
    expect(first.pagination).toMatchObject({ total: 4, next_cursor: "b.paged.example" });
    expect(await valuesOf("paged", "?limit=5&after=b.paged.example")).toEqual(["c.paged.example", "d.paged.example"]);
    expect(await valuesOf("paged", "?search=C.PAGED")).toEqual(["c.paged.example"]);
    expect(await valuesOf("paged", "?search=note%20d")).toEqual(["d.paged.example"]);
    expect(faults(await call("GET", "/paged/entries?nope=1"))).toEqual(["nope"]);
  });

  test("has entries that expire", async () => {
    const expires_at = new Date(clock + 60_000).toISOString();
    await create("brief", { entries: [{ value: "198.51.100.77", expires_at }, { value: "198.51.100.78" }] });
    expect(await listsOf({ src_ip: "198.51.100.77" })).toEqual(["brief"]);
    clock += 60_000;
    await vi.waitFor(async () => expect(await listsOf({ src_ip: "198.51.100.77" })).toBeUndefined(), {
      timeout: 30_000,
      interval: 200,
    });
    expect(await listsOf({ src_ip: "198.51.100.78" })).toEqual(["brief"]);
    expect((await entriesOf("brief")).data[0]).toMatchObject({ value: "198.51.100.77", expired: true });
    clock = NOW;
  });

  test("that an enabled rule uses is only deleted on purpose, and the answer names the rules", async () => {
    await create("used", { entries: [{ value: "198.51.100.99" }] });
    const condition = (value: object) => ({ conditions: [{ field: "enrichment.lists", ...value }] });
    await createRule(server, { name: "test.uses_a", ...condition({ equals: "used" }) });
    await createRule(server, { name: "test.uses_b", ...condition({ not_in: ["other", "used"] }) });
    await createRule(server, { name: "test.uses_c", ...condition({ starts_with: "us" }) });
    await createRule(server, {
      name: "test.uses_d",
      conditions: [{ field: "type", equals: "x" }],
      window: "5m",
      sequence: [
        { name: "one", conditions: [{ field: "enrichment.lists", equals: "used" }] },
        { name: "two", conditions: [{ field: "type", equals: "y" }] },
      ],
    });
    await createRule(server, { name: "test.off", enabled: false, ...condition({ equals: "used" }) });
    await createRule(server, { name: "test.any", ...condition({ exists: true }) });
    await createRule(server, { name: "test.other", ...condition({ equals: "other" }) });
    const rules = ["test.uses_a", "test.uses_b", "test.uses_c", "test.uses_d"];
    expect((await call("GET", "/used")).body.data.used_by).toEqual(rules);
    const refused = await call("DELETE", "/used");
    expect(refused.status).toBe(409);
    expect(refused.body.error.message).toContain("4 enabled rules");
    expect(refused.body.error.details.map(({ message }: { message: string }) => message)).toEqual(
      rules.map((rule) => `is used by the rule ${rule}`),
    );
    expect((await call("DELETE", "/used?force=true")).body.data).toEqual({ name: "used", deleted: true });
    expect((await call("GET", "/used")).status).toBe(404);
    expect(await listsOf({ src_ip: "198.51.100.99" })).toBeUndefined();
    expect((await call("DELETE", "/changing")).status).toBe(200);
  });
});

describe("lists", () => {
  test("of files are listed beside the others and are read-only", async () => {
    const { body } = await call("GET", "");
    const names = body.data.map(({ name }: { name: string }) => name);
    expect(names).toEqual(names.toSorted());
    expect(body.data).toContainEqual(
      expect.objectContaining({
        name: "filed",
        origin: "file",
        read_only: true,
        entries: 2,
        description: "blocked.txt",
      }),
    );
    expect((await call("GET", "/filed")).body.data).toMatchObject({ name: "filed", used_by: [] });
    for (const [method, path, sent] of [
      ["PUT", "/filed", { entries: [] }],
      ["DELETE", "/filed", undefined],
      ["GET", "/filed/entries", undefined],
      ["POST", "/filed/entries", { entries: [{ value: "192.0.2.1" }] }],
      ["POST", "", { name: "filed" }],
    ] as const) {
      expect((await call(method, path, sent)).status, `${method} ${path}`).toBe(409);
    }
    const first = await call("GET", "?limit=1");
    expect(first.body.pagination).toMatchObject({ total: names.length, next_cursor: names[0] });
    const rest = await call("GET", `?limit=100&after=${names[0]}`);
    expect(rest.body.data.map(({ name }: { name: string }) => name)).toEqual(names.slice(1));
  });

  test("are part of the status of enrichment", async () => {
    const { lists } = (await server.call("GET", "/v1/enrichment")).body.data;
    expect(lists).toContainEqual(
      expect.objectContaining({ name: "contractors", from: "api", networks: 1, domains: 1 }),
    );
    const metrics = (await server.call("GET", "/metrics")).text;
    expect(metrics).toContain('tocsin_enrichment_list_entries{list="contractors"} 2');
    expect(metrics).not.toContain('list="used"');
  });

  test.each([
    [{}, ["name"]],
    [{ name: "Upper" }, ["name"]],
    [{ name: "x", nope: 1 }, ["nope"]],
    [{ name: "x", kind: "users" }, ["kind"]],
    [{ name: "x", entries: [{ value: "localhost" }, { note: "n" }] }, ["entries[0].value", "entries[1].value"]],
    [{ name: "x", entries: [{ value: "192.0.2.1", expires_at: "soon" }] }, ["entries[0].expires_at"]],
    [{ name: "x", kind: "domains", entries: [{ value: "192.0.2.1" }] }, ["entries[0].value"]],
    [{ name: "x", entries: [{ value: "192.0.2.1" }, { value: "::ffff:192.0.2.1" }] }, ["entries[1].value"]],
  ])("are refused with faults: %j", async (body, fields) => {
    const answer = await call("POST", "", body);
    expect(answer.status).toBe(400);
    expect(faults(answer)).toEqual(fields);
  });

  test("of a taken or unknown name are refused", async () => {
    expect((await call("POST", "", { name: "contractors" })).status).toBe(409);
    for (const [method, path, body] of [
      ["GET", "/unknown", undefined],
      ["GET", "/unknown/entries", undefined],
      ["PUT", "/unknown", { entries: [] }],
      ["DELETE", "/unknown", undefined],
      ["POST", "/unknown/entries", { entries: [{ value: "192.0.2.1" }] }],
      ["POST", "/unknown/entries/remove", { values: ["192.0.2.1"] }],
    ] as const) {
      expect((await call(method, path, body)).status, `${method} ${path}`).toBe(404);
    }
  });

  test("have a limit of entries", async () => {
    const values = (from: number, count: number) =>
      Array.from({ length: count }, (_, i) => `10.${(from + i) >> 16}.${((from + i) >> 8) & 255}.${(from + i) & 255}`);
    await create("full");
    const send = (lines: string[]) =>
      server.call("POST", "/v1/lists/full/import", {
        body: lines.join("\n"),
        headers: { "content-type": "text/plain" },
      });
    expect((await send(values(0, 20_000))).body.data.entries).toBe(20_000);
    const refused = await send(values(20_000, 1));
    expect(refused.status).toBe(409);
    expect(refused.body.error.message).toContain("20000");
    expect((await call("GET", "/full")).body.data.entries).toBe(20_000);
    expect(faults(await send(values(0, 20_001)))).toEqual(["body"]);
    expect(faults(await send(Array.from({ length: 100_001 }, () => "# a comment")))).toEqual(["body"]);
    const long = await send(["10.0.0.1", `0.0.0.0 ${"a.example ".repeat(1000)}`]);
    expect(long.body.data).toMatchObject({ updated: 1, bad_lines: 1, refused: [{ line: 2 }] });
    expect(await listsOf({ src_ip: "10.0.78.31" })).toEqual(["full"]);
  });

  test("need the scopes of rules", async () => {
    const { secret: reader } = await server.addKey({ scopes: ["rules:read"] });
    const { secret: other } = await server.addKey({ scopes: ["events:read"] });
    expect((await server.call("GET", "/v1/lists", { key: reader })).status).toBe(200);
    expect((await server.call("GET", "/v1/lists", { key: other })).status).toBe(403);
    const body = { name: "forbidden" };
    expect((await server.call("POST", "/v1/lists", { key: reader, body })).status).toBe(403);
    expect((await server.call("DELETE", "/v1/lists/contractors", { key: reader })).status).toBe(403);
  });
});
