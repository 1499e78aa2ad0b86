import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";
import { revokeKey, rotateKey, type NewKey } from "../model/key.ts";
import { hashSessionId, SESSIONS_PER_KEY_MAX } from "../model/session.ts";
import { rule } from "./rule-endpoints.fixture.ts";
import { openKeyDatabase } from "../store/sqlite/key-database.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const SAME_ORIGIN = { "sec-fetch-site": "same-origin" };

// All tests share one server. Each test has its own key, and the clock only moves forward.
let clock = Date.UTC(2026, 10, 15, 12);
let server: TestServer;
const options = { settings: { anonymousPerMinute: 10_000 }, now: () => clock };
beforeAll(async () => {
  server = await openTestServer(options);
});
afterAll(() => server.close());

const signIn = (key: string, headers = {}) => server.call("POST", "/v1/session", { key: null, body: { key }, headers });
const cookieOf = (answer: Answer) => answer.headers["set-cookie"]![0]!.split(";")[0]!;
const call = (
  cookie: string,
  method: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: object } = {},
) => server.call(method, path, { key: null, body, headers: { cookie, ...SAME_ORIGIN, ...headers } });
const statusOf = async (cookie: string, path = "/v1/session") => (await call(cookie, "GET", path)).status;

async function newSession(more: Partial<NewKey> = {}) {
  const made = await server.addKey(more);
  const answer = await signIn(made.secret);
  expect(answer.status).toBe(201);
  return { ...made, answer, cookie: cookieOf(answer) };
}

describe("signing in", () => {
  test("answers the caller and sets a cookie that stands for the key", async () => {
    const { key, answer, cookie } = await newSession({ name: "ann", scopes: ["alerts:read"], plan: "pro" });
    expect(answer.headers["set-cookie"]).toEqual([
      expect.stringMatching(/^tocsin_session=tsn_session_[0-9a-f]{64}; HttpOnly; SameSite=Strict; Path=\/$/),
    ]);
    const at = (ms: number) => new Date(ms).toISOString();
    const told = {
      key: { id: key.id, name: "ann", scopes: ["alerts:read"], plan: "pro", expires_at: null },
      session: { created_at: at(clock), idle_ends_at: at(clock + 12 * HOUR_MS), ends_at: at(clock + 7 * DAY_MS) },
    };
    const usage = (used: number) => ({
      enforced: true,
      minute: { limit: 300, used, remaining: 300 - used, resets_at: at(clock + 60_000) },
      day: { limit: 100_000, used, remaining: 100_000 - used, resets_at: "2026-11-16T00:00:00.000Z" },
    });
    expect(answer.body.data).toEqual({ ...told, usage: usage(0) });
    const shown = await call(cookie, "GET", "/v1/session");
    expect(shown.body.data).toEqual({ ...told, usage: usage(1) });
    expect(shown.headers["x-ratelimit-limit"]).toBe("300");
    expect(await statusOf(cookie, "/v1/alerts")).toBe(200);
    const refused = await call(cookie, "GET", "/v1/events");
    expect(refused.status).toBe(403);
    expect(refused.body.error.message).toContain("events:read");
  });

  test("with a key that is not valid is refused and counts against the address", async () => {
    const { secret } = await server.addKey({ expiresAt: clock + 1 });
    clock += 1;
    for (const key of ["x", "tsn_key_1", secret, `${secret} `]) {
      const refused = await signIn(key);
      expect(refused.status, key).toBe(401);
      expect(refused.headers["x-ratelimit-limit"]).toBe("10000");
      expect(refused.headers["set-cookie"]).toBeUndefined();
    }
    const valid = await server.addKey();
    expect((await signIn(` ${valid.secret} `)).status, "only the key itself, without spaces").toBe(401);
    const other = await server.call("POST", "/v1/session", { body: { key: "x", more: 1 } });
    expect(other.status).toBe(400);
    expect(other.headers["x-ratelimit-limit"], "also with a valid key in the header").toBe("10000");
  });

  test("is refused past the limit of the address", async () => {
    const small = await openTestServer({ settings: { anonymousPerMinute: 3 } });
    const statuses = [];
    for (let i = 0; i < 4; i++) {
      const answer = await small.call("POST", "/v1/session", { body: { key: "x" } });
      statuses.push(answer.status);
    }
    await small.close();
    expect(statuses).toEqual([401, 401, 401, 429]);
  });

  test("over TLS at a trusted proxy, the cookie is secure and bound to the host", async () => {
    const behind = await openTestServer({ settings: { trustedProxies: ["loopback"] } });
    const headers = { "x-forwarded-proto": "https" };
    const answer = await behind.call("POST", "/v1/session", { key: null, body: { key: behind.key.secret }, headers });
    const cookie = cookieOf(answer);
    expect(answer.headers["set-cookie"]![0]).toMatch(
      /^__Host-tocsin_session=tsn_session_\w+; HttpOnly; SameSite=Strict; Path=\/; Secure$/,
    );
    const ask = async (more: object) =>
      (await behind.call("GET", "/v1/session", { key: null, headers: { ...headers, ...more } })).status;
    expect(await ask({ cookie })).toBe(200);
    expect(await ask({ cookie: cookie.replace("__Host-", "") }), "without the prefix").toBe(401);
    expect(await ask({ cookie, "x-forwarded-proto": "http" }), "without TLS").toBe(401);
    await behind.close();
    const untrusted = await signIn(server.key.secret, headers);
    expect(untrusted.headers["set-cookie"]![0], "a proxy that is not trusted").toMatch(/^tocsin_session=.*Path=\/$/);
  });

  test("again ends the earlier session of the same browser", async () => {
    const { secret, cookie } = await newSession();
    expect((await signIn("wrong", { cookie })).status).toBe(401);
    expect(await statusOf(cookie)).toBe(200);
    const again = await signIn(secret, { cookie });
    expect(await statusOf(cookie)).toBe(401);
    expect(await statusOf(cookieOf(again))).toBe(200);
  });

  test("from a page of another site is refused", async () => {
    const { secret } = await server.addKey();
    const own = `127.0.0.1:${server.port}`;
    const sites: [object, number][] = [
      [{ "sec-fetch-site": "cross-site" }, 403],
      [{ "sec-fetch-site": "same-site", origin: `http://${own}` }, 403],
      [{ origin: "http://evil.example" }, 403],
      [{ origin: "null" }, 403],
      [{ origin: `http://${own}` }, 201],
      [SAME_ORIGIN, 201],
      [{}, 201],
    ];
    for (const [headers, status] of sites)
      expect((await signIn(secret, headers)).status, JSON.stringify(headers)).toBe(status);
    expect((await signIn(secret, { "content-type": "text/plain" })).status).toBe(415);
  });
});

describe("a session ends", () => {
  test("12 hours after its last request, even across a restart", async () => {
    const { cookie } = await newSession();
    clock += 12 * HOUR_MS - 1;
    expect(await statusOf(cookie)).toBe(200);
    server = await server.restart();
    clock += 12 * HOUR_MS - 1;
    expect(await statusOf(cookie)).toBe(200);
    clock += 12 * HOUR_MS;
    const refused = await call(cookie, "GET", "/v1/session");
    expect(refused.status).toBe(401);
    expect(refused.body.error.message).toBe("the session has ended; sign in again");
  });

  test("7 days after the sign-in, however busy it is", async () => {
    const { cookie } = await newSession();
    for (let hours = 0; hours < 7 * 24 - 8; hours += 8) {
      clock += 8 * HOUR_MS;
      expect(await statusOf(cookie)).toBe(200);
    }
    clock += 8 * HOUR_MS;
    expect(await statusOf(cookie)).toBe(401);
  });

  test("when its key is revoked, here or by another process", async () => {
    const here = await newSession();
    expect((await server.call("DELETE", `/v1/keys/${here.key.id}`)).status).toBe(200);
    expect(await statusOf(here.cookie)).toBe(401);
    const there = await newSession();
    expect(await statusOf(there.cookie)).toBe(200);
    const other = await openKeyDatabase(server.dataDir);
    await other.change(there.key.id, (key) => revokeKey(key, clock));
    other.close();
    expect(await statusOf(there.cookie)).toBe(401);
  });

  test("when its key expires", async () => {
    const { answer, cookie } = await newSession({ expiresAt: clock + HOUR_MS });
    const end = new Date(clock + HOUR_MS).toISOString();
    expect(answer.body.data.session).toMatchObject({ idle_ends_at: end, ends_at: end });
    expect(answer.body.data.key.expires_at).toBe(end);
    clock += HOUR_MS;
    expect(await statusOf(cookie)).toBe(401);
  });

  test("when its key is rotated without a grace period; otherwise with that period", async () => {
    const { key, cookie } = await newSession();
    const rotate = (grace: number) =>
      server.call("POST", `/v1/keys/${key.id}/rotate`, { body: { grace_seconds: grace } });
    await rotate(60);
    expect((await call(cookie, "GET", "/v1/session")).body.data.key.expires_at).toBe(
      new Date(clock + 60_000).toISOString(),
    );
    clock += 60_000;
    expect(await statusOf(cookie)).toBe(401);
    const other = await newSession();
    await server.call("POST", `/v1/keys/${other.key.id}/rotate`);
    expect(await statusOf(other.cookie)).toBe(401);
  });

  test("when the browser signs out, and signing out never fails", async () => {
    const { cookie } = await newSession();
    const out = await call(cookie, "DELETE", "/v1/session");
    expect(out.body.data).toEqual({ ended: true });
    expect(out.headers["set-cookie"]).toEqual(["tocsin_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"]);
    expect(await statusOf(cookie)).toBe(401);
    for (const headers of [{ cookie }, {}]) {
      const again = await server.call("DELETE", "/v1/session", { key: null, headers });
      expect(again.status).toBe(200);
      expect(again.body.data).toEqual({ ended: false });
      expect(again.headers["set-cookie"]![0]).toContain("Max-Age=0");
    }
  });

  test("when its key has more than the maximum: the oldest one", async () => {
    const { secret, cookie } = await newSession();
    const others: string[] = [];
    for (let i = 0; i < SESSIONS_PER_KEY_MAX; i++) {
      clock += 1;
      expect(await statusOf(cookie)).toBe(200);
      others.push(cookieOf(await signIn(secret)));
    }
    expect(await statusOf(cookie)).toBe(401);
    expect(await statusOf(others[0]!)).toBe(200);
    expect(await statusOf(others.at(-1)!)).toBe(200);
  });
});

describe("the cookie", () => {
  test("does not count beside a key, on /v1/collect, or with another value", async () => {
    const { cookie, secret } = await newSession();
    const beside = await server.call("GET", "/v1/session", { key: `${secret}0`, headers: { cookie } });
    expect(beside.status).toBe(401);
    const withKey = await server.call("GET", "/v1/session", { key: secret, headers: { cookie } });
    expect(withKey.body.data).toMatchObject({ key: { name: "test" }, session: null });
    expect((await call(cookie, "POST", "/v1/collect/talk", { body: {} })).status).toBe(401);
    expect(await statusOf(cookie, "/v1/collectors")).toBe(200);
    expect(await statusOf(cookie, "/api/v1/flows")).toBe(200);
    expect(await statusOf(`a=b; ${cookie}; c=d`)).toBe(200);
    for (const wrong of [`${cookie}0`, cookie.slice(0, -1), "tocsin_session=", `x${cookie}`, "tocsin_session"]) {
      expect(await statusOf(wrong), wrong).toBe(401);
    }
    const value = cookie.split("=")[1]!;
    expect((await server.call("GET", "/v1/session", { key: value })).status, "as a key").toBe(401);
  });

  test("changes something only from a page of this service and with JSON", async () => {
    const { cookie } = await newSession();
    const own = `127.0.0.1:${server.port}`;
    const body = { type: "login_failure", source: "custom", severity: "low", data: {} };
    const submit = async (headers: object, sent: unknown = body) => {
      const answer = await server.call("POST", "/v1/events", {
        key: null,
        body: sent,
        headers: { cookie, ...headers },
      });
      if (answer.status === 403) expect(answer.body.error).toMatchObject({ code: "forbidden" });
      return answer.status;
    };
    expect(await submit(SAME_ORIGIN)).toBe(201);
    expect(await submit({ origin: `http://${own}` })).toBe(201);
    expect(await submit({ host: "tocsin.example", origin: "https://tocsin.example" })).toBe(201);
    expect(await submit({ host: "tocsin.example:443", origin: "https://tocsin.example" })).toBe(201);
    for (const site of ["cross-site", "same-site", "none", ""]) {
      expect(await submit({ "sec-fetch-site": site, origin: `http://${own}` }), site).toBe(403);
    }
    for (const origin of ["http://evil.example", `http://${own}.evil.example`, "null", "", `http://${own}0`]) {
      expect(await submit({ origin }), origin).toBe(403);
    }
    expect(await submit({})).toBe(403);
    expect(await submit({ ...SAME_ORIGIN, "content-type": "text/plain" }, JSON.stringify(body))).toBe(403);
    expect(await submit({ ...SAME_ORIGIN, "content-type": "application/x-ndjson" }, JSON.stringify(body))).toBe(403);
    expect(await submit({ ...SAME_ORIGIN, "content-type": "application/json; charset=utf-8" })).toBe(201);
    const foreign = { cookie, "sec-fetch-site": "cross-site" };
    expect((await server.call("DELETE", "/v1/session", { key: null, headers: foreign })).status).toBe(403);
    expect(await statusOf(cookie), "the session is still there").toBe(200);
    const program = await server.call("POST", "/v1/events", {
      body,
      headers: { cookie, "sec-fetch-site": "cross-site" },
    });
    expect(program.status, "a key needs no page").toBe(201);
  });

  test("names the key as the author, and neither reaches the log or the disk", async () => {
    const { key, secret, cookie } = await newSession({ name: "ben" });
    const exceptions = [{ conditions: [{ field: "raw.user", equals: "me" }], reason: "it is me" }];
    const made = await call(cookie, "POST", "/v1/rules", { body: rule({ exceptions }) });
    expect(made.body.data.exceptions[0].author).toBe("ben");
    expect(server.log.at(-1)).toMatchObject({ key: key.id, route: "/v1/rules" });
    const value = cookie.split("=")[1]!;
    const kept = [value, value.split("_").at(-1)!, secret.split("_").at(-1)!];
    const files = ["keys.db", "keys.db-wal"].map((name) => readFileSync(join(server.dataDir, name), "latin1")).join("");
    for (const text of kept) {
      expect(JSON.stringify(server.log)).not.toContain(text);
      expect(files).not.toContain(text);
    }
  });
});

describe("a stream", () => {
  const open = (cookie: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { cookie };
      httpRequest({ host: "127.0.0.1", port: server.port, path: "/v1/stream", headers }, resolve)
        .on("error", reject)
        .end();
    });

  test("opens with the cookie and ends with the session, the key or its secret", async () => {
    const ends: ((session: Awaited<ReturnType<typeof newSession>>) => Promise<unknown>)[] = [
      ({ cookie }) => call(cookie, "DELETE", "/v1/session"),
      ({ key }) => server.store.keys.change(key.id, (stored) => revokeKey(stored, clock)),
      ({ key }) => server.store.keys.change(key.id, (stored) => rotateKey(stored, { graceMs: 0, now: clock }).key),
    ];
    for (const end of ends) {
      const session = await newSession();
      const response = await open(session.cookie);
      expect(response.statusCode).toBe(200);
      response.resume();
      const closed = new Promise((resolve) => response.on("close", resolve));
      await end(session);
      await closed;
    }
    expect((await open("tocsin_session=tsn_session_0")).statusCode).toBe(401);
  });
});

test("expired sessions are removed at the next sign-in", async () => {
  const { cookie } = await newSession();
  const idHash = hashSessionId(cookie.split("=")[1]!)!;
  expect(await server.store.sessions.find(idHash)).toBeDefined();
  clock += 12 * HOUR_MS;
  await newSession();
  expect(await server.store.sessions.find(idHash)).toBeUndefined();
});
