import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KEYS_MAX, ENDED_KEYS_MAX, SCOPES } from "../model/key.ts";
import { openTestServer, type TestServer } from "../../test/api-server.ts";

// All tests share one server. Each test has its own keys, and the clock only moves forward.
let clock = Date.UTC(2026, 10, 15, 12);
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false }, now: () => clock });
});
afterAll(() => server.close());

const ask = async (key: string | null, path = "/v1/events") => (await server.call("GET", path, { key })).status;

describe("a key", () => {
  test("is required, and must be complete and known", async () => {
    const { secret } = server.key;
    expect(await ask(secret)).toBe(200);
    for (const wrong of [null, "x", secret.slice(0, -1), `${secret}0`, secret.replace(/.$/, "g"), `tsn_${secret}`]) {
      expect(await ask(wrong), String(wrong)).toBe(401);
    }
    const other = `${secret.slice(0, -64)}${"0".repeat(64)}`;
    const refused = await server.call("GET", "/v1/events", { key: other });
    expect(refused.body.error.code).toBe("unauthorized");
    expect(refused.headers["www-authenticate"]).toContain("Bearer");
    for (const authorization of [secret, `Basic ${secret}`, "Bearer", `Bearer ${secret} ${secret}`]) {
      expect((await server.call("GET", "/v1/events", { key: null, headers: { authorization } })).status).toBe(401);
    }
    expect(
      (await server.call("GET", "/v1/events", { key: null, headers: { authorization: `bearer ${secret}` } })).status,
    ).toBe(200);
  });

  test("opens only the calls of its scopes; the refusal names the missing scope", async () => {
    const calls = [
      ["GET", "/v1/events", "events:read"],
      ["GET", "/v1/events/evt_1", "events:read"],
      ["POST", "/v1/events/search", "events:read"],
      ["POST", "/v1/events/export", "events:read"],
      ["GET", "/v1/events/exports/exp_1", "events:read"],
      ["DELETE", "/v1/events/exports/exp_1", "events:read"],
      ["GET", "/v1/events/exports/exp_1/download", "events:read"],
      ["POST", "/v1/events", "events:write"],
      ["POST", "/v1/events/batch", "events:write"],
      ["GET", "/v1/keys", "keys:manage"],
      ["POST", "/v1/keys", "keys:manage"],
      ["POST", "/v1/keys/key_1/rotate", "keys:manage"],
      ["DELETE", "/v1/keys/key_1", "keys:manage"],
    ] as const;
    for (const [method, path, scope] of calls) {
      const without = await server.addKey({ scopes: SCOPES.filter((other) => other !== scope) });
      const refused = await server.call(method, path, { key: without.secret });
      expect(refused.status, `${method} ${path}`).toBe(403);
      expect(refused.body.error).toMatchObject({ code: "forbidden", message: expect.stringContaining(scope) });
      const withIt = await server.addKey({ scopes: [scope] });
      expect((await server.call(method, path, { key: withIt.secret })).status, `${method} ${path}`).not.toBe(403);
    }
  });

  test("is refused with a wrong secret and accepted with the right one, regardless of earlier attempts", async () => {
    const { secret } = server.key;
    const wrong = `${secret.slice(0, -1)}${secret.endsWith("0") ? "1" : "0"}`;
    const answers = [];
    for (const key of [secret, wrong, secret, wrong, wrong, secret]) answers.push(await ask(key));
    expect(answers).toEqual([200, 401, 200, 401, 401, 200]);
  });

  test("is refused from the moment it expires", async () => {
    const { secret } = await server.addKey({ expiresAt: clock + 1000 });
    expect(await ask(secret)).toBe(200);
    clock += 1000;
    expect(await ask(secret)).toBe(401);
  });
});

describe("/v1/keys", () => {
  const make = (body: object, key = server.key.secret) => server.call("POST", "/v1/keys", { body, key });

  test("creates a key, shows it once, and lists it without its secret", async () => {
    clock += 1000;
    const made = await make({ name: " ci ", scopes: ["events:read", "events:read"], plan: "pro" });
    expect(made.status).toBe(201);
    expect(made.body.data).toMatchObject({
      name: "ci",
      scopes: ["events:read"],
      plan: "pro",
      expires_at: null,
      revoked_at: null,
      last_used_at: null,
    });
    expect(made.body.data.key).toMatch(new RegExp(`^tsn_${made.body.data.id}_[0-9a-f]{64}$`));
    clock += 5000;
    expect(await ask(made.body.data.key)).toBe(200);
    const total = (await server.store.keys.list()).length;
    const listed = await server.call("GET", "/v1/keys?per_page=100");
    expect(listed.body.pagination).toEqual({ total, page: 1, per_page: 100, total_pages: 1 });
    const shown = listed.body.data.find(({ id }: { id: string }) => id === made.body.data.id);
    const { key: _key, ...view } = made.body.data;
    expect(shown).toEqual({ ...view, last_used_at: new Date(clock).toISOString() });
    expect(listed.text).not.toContain(made.body.data.key.slice(-64));
    const last = await server.call("GET", `/v1/keys?page=${total}&per_page=1`);
    expect(last.body.data.map(({ id }: { id: string }) => id)).toEqual([made.body.data.id]);
  });

  test("refuses invalid values of a key, with every fault at once", async () => {
    const refused = await make({ name: "", scopes: ["events:all"], plan: "gold", expires_at: "tomorrow", extra: 1 });
    expect(refused.status).toBe(400);
    expect(refused.body.error.details.map(({ field }: { field: string }) => field)).toEqual([
      "name",
      "scopes[0]",
      "plan",
      "expires_at",
      "extra",
    ]);
    expect((await make({ name: "x", scopes: [] })).status).toBe(400);
    expect(
      (await make({ name: "x", scopes: ["events:read"], expires_at: "2020-01-01" })).body.error.details[0].field,
    ).toBe("expires_at");
  });

  test.each([
    ["system", /must not be system/],
    [" System ", /must not be system/],
    ["SYS TEM", /must not be system/],
    ["\uff53\uff59\uff53\uff54\uff45\uff4d", /must not be system/],
    ["syste\u034fm", /must not be system/],
    ["system\u200b", /control or format/],
    ["two\nlines", /control or format/],
    ["nul\0", /control or format/],
    ["\u001b[31mred", /control or format/],
    ["turned\u202eround", /control or format/],
    ["line\u2028break", /control or format/],
  ])("refuses the name %j, which would look like another one", async (name, message) => {
    const refused = await make({ name, scopes: ["events:read"] });
    expect([refused.status, refused.body.error?.details]).toEqual([
      400,
      [{ field: "name", message: expect.stringMatching(message) }],
    ]);
  });

  test("accepts names in any script, and shows one stored before names were checked", async () => {
    for (const name of ["file system", "Büro 2", "玄関", "סוכן"]) {
      expect((await make({ name, scopes: ["events:read"] })).body.data.name).toBe(name);
    }
    const { key } = await server.addKey({ name: "system\u200b" });
    const shown = (await server.call("GET", "/v1/keys?per_page=100")).body.data;
    expect(shown.find(({ id }: { id: string }) => id === key.id).name).toBe("system\u200b");
    expect((await server.call("POST", `/v1/keys/${key.id}/rotate`)).status).toBe(200);
  });

  test("does not let a key grant a scope that it lacks, by creating or rotating", async () => {
    const clerk = await server.addKey({ scopes: ["keys:manage", "events:read"] });
    expect((await make({ name: "x", scopes: ["events:read"] }, clerk.secret)).status).toBe(201);
    const refused = await make({ name: "x", scopes: ["events:read", "events:write"] }, clerk.secret);
    expect(refused.status).toBe(403);
    expect(refused.body.error.message).toContain("events:write");
    const rotated = await server.call("POST", `/v1/keys/${server.key.key.id}/rotate`, { key: clerk.secret });
    expect(rotated.status).toBe(403);
    expect(await ask(server.key.secret)).toBe(200);
  });

  test("rotates immediately without a body, and with a grace period if one is given", async () => {
    const first = await server.addKey();
    const second = (await server.call("POST", `/v1/keys/${first.key.id}/rotate`)).body.data.key as string;
    expect(await ask(first.secret)).toBe(401);
    expect(await ask(second)).toBe(200);
    const answer = await server.call("POST", `/v1/keys/${first.key.id}/rotate`, { body: { grace_seconds: 60 } });
    const third = answer.body.data.key as string;
    expect([await ask(second), await ask(third)]).toEqual([200, 200]);
    clock += 60_000;
    expect([await ask(second), await ask(third)]).toEqual([401, 200]);
    for (const body of [{ grace_seconds: -1 }, { grace_seconds: 1.5 }, { grace: 1 }, [], "null"]) {
      expect((await server.call("POST", `/v1/keys/${first.key.id}/rotate`, { body })).status).toBe(400);
    }
    expect((await server.call("POST", "/v1/keys/key_none/rotate")).status).toBe(404);
  });

  test("keeps every grace period, reports the last one, and limits their number", async () => {
    const first = await server.addKey();
    const rotate = (body?: object) =>
      server.call("POST", `/v1/keys/${first.key.id}/rotate`, body === undefined ? {} : { body });
    const at = (ms: number) => new Date(clock + ms).toISOString();
    const second = (await rotate({ grace_seconds: 3600 })).body.data;
    expect(second.previous_until).toBe(at(3_600_000));
    const third = (await rotate({ grace_seconds: 60 })).body.data;
    expect(third.previous_until).toBe(at(3_600_000));
    const fourth = (await rotate()).body.data;
    const secrets = [first.secret, second.key, third.key, fourth.key] as string[];
    const answers = () => Promise.all(secrets.map((secret) => ask(secret)));
    expect(await answers()).toEqual([200, 200, 401, 200]);
    clock += 60_000;
    expect(await answers()).toEqual([200, 401, 401, 200]);
    for (let n = 0; n < 4; n++) expect((await rotate({ grace_seconds: 7200 })).status).toBe(200);
    const refused = await rotate({ grace_seconds: 1 });
    expect(refused.body.error).toMatchObject({
      code: "conflict",
      message: expect.stringContaining(`rotate it without a grace period, or after ${at(3_540_000)}`),
    });
    expect((await rotate()).status).toBe(200);
    const shown = (await server.call("GET", "/v1/keys?per_page=100")).body.data;
    const own = shown.find(({ id }: { id: string }) => id === first.key.id);
    expect(own.previous_until).toBe(at(7_200_000));
    await server.call("DELETE", `/v1/keys/${first.key.id}`);
    expect(await answers()).toEqual([401, 401, 401, 401]);
  });

  test("does not revoke a key if the request has an unknown body", async () => {
    const { key, secret } = await server.addKey();
    const revoke = (body: string) => {
      const headers = { "content-length": String(body.length) };
      return server.call("DELETE", `/v1/keys/${key.id}`, { body, headers });
    };
    const refused = await revoke('{"a":1}');
    expect([refused.status, refused.body.error.details]).toEqual([400, [{ field: "a", message: "is unknown" }]]);
    expect((await revoke("{")).body.error.code).toBe("malformed_json");
    expect(await ask(secret)).toBe(200);
    expect((await revoke("{}")).status).toBe(200);
    expect(await ask(secret)).toBe(401);
  });

  test("revokes a key with effect on the next request, and keeps it in the list", async () => {
    const { key, secret } = await server.addKey();
    expect(await ask(secret)).toBe(200);
    const revoked = await server.call("DELETE", `/v1/keys/${key.id}`);
    expect([revoked.status, revoked.body.data]).toEqual([200, { id: key.id, revoked: true }]);
    expect(await ask(secret)).toBe(401);
    clock += 1000;
    expect((await server.call("DELETE", `/v1/keys/${key.id}`)).status).toBe(200);
    const listed = await server.call("GET", "/v1/keys?per_page=100");
    const shown = listed.body.data.find(({ id }: { id: string }) => id === key.id);
    expect(shown.revoked_at).toBe(new Date(clock - 1000).toISOString());
    expect((await server.call("POST", `/v1/keys/${key.id}/rotate`)).body.error.code).toBe("conflict");
    expect((await server.call("DELETE", "/v1/keys/key_none")).status).toBe(404);
  });
});

describe("a key with keys:manage", () => {
  const make = (key: string, body: object) =>
    server.call("POST", "/v1/keys", { body: { name: "x", scopes: ["keys:manage"], ...body }, key });
  const rotate = (key: string, id: string) => server.call("POST", `/v1/keys/${id}/rotate`, { key });
  const revoke = (key: string, id: string) => server.call("DELETE", `/v1/keys/${id}`, { key });
  const at = (ms: number) => new Date(ms).toISOString();

  test("creates none with a higher plan than its own", async () => {
    const { secret } = await server.addKey({ scopes: ["keys:manage"], plan: "pro" });
    for (const plan of ["starter", "pro"]) expect((await make(secret, { plan })).status, plan).toBe(201);
    const refused = await make(secret, { plan: "enterprise" });
    expect([refused.status, refused.body.error.code]).toEqual([403, "forbidden"]);
    expect(refused.body.error.message).toMatch(/plan pro.*not enterprise/);
  });

  test("creates none that outlives it; one without an expiry gets its own", async () => {
    const expiresAt = clock + 60_000;
    const { secret } = await server.addKey({ scopes: ["keys:manage"], expiresAt });
    expect((await make(secret, { expires_at: at(expiresAt) })).status).toBe(201);
    expect((await make(secret, {})).body.data.expires_at).toBe(at(expiresAt));
    for (const expires_at of [null, at(expiresAt + 1)]) {
      const refused = await make(secret, { expires_at });
      expect(refused.status).toBe(403);
      expect(refused.body.error.message).toContain(at(expiresAt));
    }
    expect((await make(server.key.secret, {})).body.data.expires_at).toBeNull();
  });

  test("rotates and revokes none that is stronger in scopes, plan or expiry", async () => {
    const own = { scopes: ["keys:manage", "events:read"] as const, plan: "pro", expiresAt: clock + 60_000 } as const;
    const clerk = await server.addKey(own);
    for (const [more, message] of [
      [{ scopes: [...own.scopes, "rules:write"] }, /the scope rules:write/],
      [{ plan: "enterprise" }, /plan pro.*not enterprise/],
      [{ expiresAt: clock + 60_001 }, /expires/],
      [{ expiresAt: null }, /expires/],
    ] as const) {
      const strong = await server.addKey({ ...own, ...more });
      for (const answer of [await rotate(clerk.secret, strong.key.id), await revoke(clerk.secret, strong.key.id)]) {
        expect([answer.status, answer.body.error.code]).toEqual([403, "forbidden"]);
        expect(answer.body.error.message).toMatch(message);
      }
      expect(await ask(strong.secret)).toBe(200);
    }
    const weak = await server.addKey({ ...own, scopes: ["events:read"], plan: "starter" });
    expect((await rotate(clerk.secret, weak.key.id)).status).toBe(200);
    expect((await revoke(clerk.secret, weak.key.id)).status).toBe(200);
    const rotated = await rotate(clerk.secret, clerk.key.id);
    expect(rotated.status).toBe(200);
    expect((await revoke(rotated.body.data.key, clerk.key.id)).status).toBe(200);
  });

  test("used with an old secret is limited to the grace period: it neither renews itself nor creates a key that lasts longer", async () => {
    const { key, secret: old } = await server.addKey();
    await server.call("POST", `/v1/keys/${key.id}/rotate`, { body: { grace_seconds: 60 }, key: old });
    expect((await rotate(old, key.id)).status).toBe(403);
    expect((await make(old, { expires_at: null })).status).toBe(403);
    expect((await make(old, {})).body.data.expires_at).toBe(at(clock + 60_000));
    expect((await revoke(old, (await server.addKey()).key.id)).status).toBe(403);
    expect((await revoke(old, key.id)).status).toBe(200);
  });

  test("cannot exceed the limit of keys: ended keys do not count, and the oldest of them are removed", async () => {
    const crowded = await openTestServer({ settings: { rateLimits: false }, now: () => clock });
    const ended = await Promise.all(
      Array.from({ length: ENDED_KEYS_MAX }, (_, n) => crowded.addKey({ expiresAt: clock - 10_000 + n })),
    );
    const view = { name: "x", search: "", screen: "alerts", columns: null, density: null, grouping: null } as const;
    const times = { position: 0, createdAt: 1, updatedAt: 1, revision: 1 };
    for (const [id, shared] of [
      ["own", false],
      ["shared", true],
    ] as const) {
      const saved = { ...view, ...times, id, shared, owner: ended[0]!.key.id, ownerName: "test" };
      await crowded.store.views.add(saved, { perKeyMax: 9, sharedMax: 9 });
    }
    // One key exists from the start, and one is still to be created.
    for (let n = 2; n < KEYS_MAX; n++) await crowded.addKey();
    const add = () =>
      crowded.call("POST", "/v1/keys", { body: { name: "x", scopes: ["events:read"], plan: "starter" } });
    const last = await add();
    expect(last.status).toBe(201);
    const refused = await add();
    expect([refused.status, refused.body.error.code]).toEqual([409, "conflict"]);
    expect(refused.body.error.message).toContain(`${KEYS_MAX} keys`);
    expect((await crowded.call("DELETE", `/v1/keys/${last.body.data.id}`)).status).toBe(200);
    expect((await add()).status).toBe(201);
    expect(await crowded.store.keys.find(ended[0]!.key.id)).toBeUndefined();
    expect(await crowded.store.views.get("own"), "its views go with it").toBeUndefined();
    expect(await crowded.store.views.get("shared"), "but not those that others use").toBeDefined();
    expect(await crowded.store.keys.find(ended[1]!.key.id)).toBeDefined();
    expect(await crowded.store.keys.find(last.body.data.id)).toBeDefined();
    expect(await crowded.store.keys.list()).toHaveLength(ENDED_KEYS_MAX + KEYS_MAX);
    await crowded.close();
  });
});
