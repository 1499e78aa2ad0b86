import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import type { Scope } from "../model/key.ts";
import { VIEWS_PER_KEY_MAX } from "../model/view.ts";
import { faults } from "./rule-endpoints.fixture.ts";

// All tests share one server; each has its own keys.
let clock = Date.UTC(2026, 10, 15, 12);
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false }, now: () => clock });
});
afterAll(() => server.close());

const keyWith = async (name: string, ...scopes: Scope[]) => (await server.addKey({ name, scopes })).secret;
const body = (name: string, more: object = {}) => ({ screen: "alerts", name, search: "status=open", ...more });
const save = (key: string, name: string, more: object = {}) =>
  server.call("POST", "/v1/views", { key, body: body(name, more) });
const saved = async (key: string, name: string, more: object = {}) => {
  const answer = await save(key, name, more);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.data;
};
const names = async (key: string, query = "") =>
  (await server.call("GET", `/v1/views${query}`, { key })).body.data.map(({ name }: { name: string }) => name);

describe("a saved view", () => {
  test("is created with defaults, read, changed, replaced and deleted by its owner", async () => {
    const key = await keyWith("ann", "events:read");
    const answer = await save(key, " Doors ");
    const view = answer.body.data;
    const now = new Date(clock).toISOString();
    expect(answer.headers.location).toBe(`/v1/views/${view.id}`);
    expect(view).toEqual({
      id: expect.stringMatching(/^view_[0-9a-f]{32}$/),
      screen: "alerts",
      name: "Doors",
      search: "status=open",
      columns: null,
      density: null,
      grouping: null,
      shared: false,
      position: 0,
      owner: "ann",
      own: true,
      editable: true,
      created_at: now,
      updated_at: now,
    });
    const path = `/v1/views/${view.id}`;
    expect((await server.call("GET", path, { key })).body.data).toEqual(view);
    clock += 1000;
    const patch = { columns: ["title"], density: "compact", grouping: "rule" };
    const patched = await server.call("PATCH", path, { key, body: patch });
    expect(patched.body.data).toEqual({ ...view, ...patch, updated_at: new Date(clock).toISOString() });
    const replaced = await server.call("PUT", path, { key, body: body("Gates") });
    expect(replaced.body.data).toMatchObject({ name: "Gates", columns: null, density: null, grouping: null });
    expect((await server.call("DELETE", path, { key })).body.data).toEqual({ id: view.id, deleted: true });
    for (const method of ["GET", "DELETE"]) expect((await server.call(method, path, { key })).status).toBe(404);
    expect((await server.call("PATCH", path, { key, body: { name: "x" } })).status).toBe(404);
  });

  test("that is not shared does not exist for others, whatever their scopes", async () => {
    const { id } = await saved(await keyWith("ann"), "Mine");
    for (const [method, sent] of [["GET"], ["DELETE"], ["PATCH", { name: "x" }], ["PUT", body("x")]] as const) {
      expect((await server.call(method, `/v1/views/${id}`, { body: sent })).status, method).toBe(404);
    }
    expect(await names(server.key.secret, "?per_page=100")).not.toContain("Mine");
  });

  test("that is shared is seen by all, and changed by its owner and by keys:manage only", async () => {
    const owner = await keyWith("ann", "alerts:write");
    const other = await keyWith("ben", "alerts:write", "rules:write");
    const manager = await keyWith("eve", "keys:manage");
    const { id } = await saved(owner, "Ours", { shared: true });
    const path = `/v1/views/${id}`;
    const seen = (await server.call("GET", path, { key: other })).body.data;
    expect(seen).toMatchObject({ name: "Ours", owner: "ann", own: false, editable: false });
    for (const [method, sent] of [["DELETE"], ["PATCH", { name: "x" }], ["PUT", body("x")]] as const) {
      const refused = await server.call(method, path, { key: other, body: sent });
      expect(refused.status, method).toBe(403);
      expect(refused.body.error.message).toContain("keys:manage");
    }
    const changed = await server.call("PATCH", path, { key: manager, body: { name: "Everybody's" } });
    expect(changed.body.data).toMatchObject({ name: "Everybody's", owner: "ann", own: false, editable: true });
    expect((await server.call("PATCH", path, { key: owner, body: { shared: false } })).status).toBe(200);
    expect((await server.call("GET", path, { key: manager })).status).toBe(404);
    await server.call("PATCH", path, { key: owner, body: { shared: true } });
    expect((await server.call("DELETE", path, { key: manager })).status).toBe(200);
  });

  test("is shared, and changed while shared, only with alerts:write or keys:manage", async () => {
    const reader = await keyWith("reader", "alerts:read", "rules:write", "events:write");
    const refused = await save(reader, "x", { shared: true });
    expect(refused.status).toBe(403);
    expect(refused.body.error.message).toContain("alerts:write or keys:manage");
    const { id } = await saved(reader, "x");
    expect((await server.call("PATCH", `/v1/views/${id}`, { key: reader, body: { shared: true } })).status).toBe(403);
    expect((await server.call("PATCH", `/v1/views/${id}`, { key: reader, body: { name: "y" } })).status).toBe(200);
    for (const scope of ["alerts:write", "keys:manage"] as const) {
      expect((await save(await keyWith("x", scope), "z", { shared: true })).status).toBe(201);
    }
  });

  test("is refused with every fault at once", async () => {
    const wrong = {
      ...body("a\u202eb"),
      screen: "cellar",
      columns: ["a", "a"],
      density: "tiny",
      grouping: "",
      position: -1,
      more: 1,
    };
    const refused = await server.call("POST", "/v1/views", { body: wrong });
    expect(refused.status).toBe(400);
    expect(faults(refused).sort()).toEqual(["columns", "density", "grouping", "more", "name", "position", "screen"]);
    const { id } = await saved(server.key.secret, "x");
    const path = `/v1/views/${id}`;
    expect(faults(await server.call("PUT", path, { body: { ...body("x"), screen: "events" } }))).toEqual(["screen"]);
    expect((await server.call("PATCH", path, { body: {} })).status).toBe(400);
    expect(faults(await server.call("PATCH", path, { body: { screen: "events" } }))).toContain("screen");
    expect((await save(server.key.secret, "x", { search: "x".repeat(4097) })).status).toBe(400);
    expect((await server.call("GET", "/v1/views?screen=cellar")).status).toBe(400);
    expect((await server.call("GET", "/v1/views?sort=name")).status).toBe(400);
    expect((await server.call("GET", "/v1/views", { key: null })).status).toBe(401);
  });

  test("past the maximum of a key is refused until one is deleted", async () => {
    const key = await keyWith("ann");
    const { id } = await saved(key, "first");
    for (let i = 1; i < VIEWS_PER_KEY_MAX; i++) await saved(key, `${i}`, { screen: i % 2 ? "events" : "flows" });
    const refused = await save(key, "more");
    expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
    expect(refused.body.error.message).toContain("100 views");
    await server.call("DELETE", `/v1/views/${id}`, { key });
    expect((await save(key, "more")).status).toBe(201);
  });

  test("changed by several requests at once has all of their fields", async () => {
    const key = await keyWith("ann");
    const { id } = await saved(key, "x");
    const patches = [{ name: "y" }, { search: "a=b" }, { density: "compact" }];
    const answers = await Promise.all(
      patches.map((patch) => server.call("PATCH", `/v1/views/${id}`, { key, body: patch })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    const { data } = (await server.call("GET", `/v1/views/${id}`, { key })).body;
    expect(data).toMatchObject({ name: "y", search: "a=b", density: "compact" });
  });
});

describe("the order of views", () => {
  test("is by position, and changes for one or for many at once", async () => {
    const key = await keyWith("ann");
    const ids: Record<string, string> = {};
    for (const name of ["a", "b", "c", "d"]) ids[name] = (await saved(key, name)).id;
    await saved(key, "flows", { screen: "flows" });
    await saved(key, "first", { position: 0 });
    expect(await names(key, "?screen=flows")).toEqual(expect.arrayContaining(["flows"]));
    const own = async () => (await names(key, "?screen=alerts")).slice(0, 5).join(" ");
    expect(await own()).toBe("first a b c d");
    await server.call("PATCH", `/v1/views/${ids["d"]}`, { key, body: { position: 1 } });
    expect(await own()).toBe("first d a b c");
    const order = { screen: "alerts", ids: [ids["c"], ids["a"]] };
    const arranged = await server.call("PUT", "/v1/views/order", { key, body: order });
    expect(arranged.body.data.map(({ name, position }: any) => `${name}${position}`)).toEqual([
      "c0",
      "a1",
      "first2",
      "d3",
      "b4",
    ]);
    expect(await own()).toBe("c a first d b");
    const wrong = { screen: "flows", ids: [ids["c"], "view_none"] };
    expect(faults(await server.call("PUT", "/v1/views/order", { key, body: wrong }))).toEqual(["ids[0]", "ids[1]"]);
    const twice = { screen: "alerts", ids: [ids["c"], ids["c"]] };
    expect(faults(await server.call("PUT", "/v1/views/order", { key, body: twice }))).toEqual(["ids"]);
    expect(await own()).toBe("c a first d b");
    for (const method of ["GET", "POST", "DELETE"]) {
      expect((await server.call(method, "/v1/views/order", { key })).status, method).toBe(405);
    }
  });

  test("has pages with the true total", async () => {
    const fresh = await openTestServer();
    for (const name of ["a", "b", "c"]) {
      await fresh.call("POST", "/v1/views", { body: body(name) });
    }
    const page = await fresh.call("GET", "/v1/views?page=2&per_page=2");
    await fresh.close();
    expect(page.body.data).toMatchObject([{ name: "c" }]);
    expect(page.body.pagination).toEqual({ total: 3, page: 2, per_page: 2, total_pages: 2 });
  });
});
