import { connect } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Settings } from "../config/settings.ts";
import { DAY_MS } from "../lib/time.ts";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

const plans: Settings["plans"] = {
  starter: { perMinute: 3, perDay: 5 },
  pro: { perMinute: 4, perDay: 100 },
  enterprise: { perMinute: 5, perDay: null },
};

// All tests share one server. Each test has its own keys and its own day.
let midnight = Date.UTC(2026, 10, 16);
let clock = midnight;
let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { plans, anonymousPerMinute: 2 }, now: () => clock });
});
beforeEach(() => {
  midnight += 2 * DAY_MS;
  clock = midnight - 3_600_000;
});
afterAll(() => server.close());

const limitsOf = ({ status, headers }: Answer) => [
  status,
  Number(headers["x-ratelimit-limit"]),
  Number(headers["x-ratelimit-remaining"]),
  Number(headers["x-ratelimit-reset"]),
];
const ask = async (key: string | null, path = "/v1/events") => limitsOf(await server.call("GET", path, { key }));
const seconds = (ms: number) => Math.ceil(ms / 1000);

describe("rate limits", () => {
  test("allow a key the requests per minute of its plan, and start over when the minute ends", async () => {
    const { secret } = await server.addKey({ plan: "enterprise" });
    const reset = seconds(clock + 60_000);
    for (const remaining of [4, 3, 2, 1, 0]) expect(await ask(secret)).toEqual([200, 5, remaining, reset]);
    clock += 20_500;
    const refused = await server.call("GET", "/v1/events", { key: secret });
    expect(limitsOf(refused)).toEqual([429, 5, 0, reset]);
    expect(refused.headers["retry-after"]).toBe("40");
    expect(refused.body.error.code).toBe("rate_limited");
    expect(refused.body.error.message).toBe("the limit of 5 requests per minute is exhausted; try again in 40 s");
    clock += 39_500;
    expect(await ask(secret)).toEqual([200, 5, 4, seconds(clock + 60_000)]);
  });

  test("report the window with the fewest requests remaining; a refused request does not count", async () => {
    const { secret } = await server.addKey({ plan: "starter" });
    const minute = seconds(clock + 60_000);
    const day = midnight / 1000;
    expect(await ask(secret)).toEqual([200, 3, 2, minute]);
    expect(await ask(secret)).toEqual([200, 3, 1, minute]);
    expect(await ask(secret)).toEqual([200, 3, 0, minute]);
    for (let i = 0; i < 10; i++) expect(await ask(secret)).toEqual([429, 3, 0, minute]);
    clock += 60_000;
    expect(await ask(secret)).toEqual([200, 5, 1, day]);
    expect(await ask(secret)).toEqual([200, 5, 0, day]);
    expect(await ask(secret)).toEqual([429, 5, 0, day]);
    clock = midnight - 1;
    expect(await ask(secret)).toEqual([429, 5, 0, day]);
    clock = midnight;
    expect(await ask(secret)).toEqual([200, 3, 2, seconds(midnight - 1 + 60_000)]);
  });

  test("report the window that ends later if both are exhausted", async () => {
    const { secret } = await server.addKey({ plan: "starter" });
    for (let i = 0; i < 2; i++) await ask(secret);
    clock += 60_000;
    for (const remaining of [2, 1, 0]) expect((await ask(secret))[2]).toBe(remaining);
    const refused = await server.call("GET", "/v1/events", { key: secret });
    expect(limitsOf(refused)).toEqual([429, 5, 0, midnight / 1000]);
    expect(refused.headers["retry-after"]).toBe(String((midnight - clock) / 1000));
    expect(refused.body.error.message).toContain("the limit of 5 requests per day is exhausted");
  });

  test("count requests of a key regardless of the response", async () => {
    const { secret } = await server.addKey({ plan: "pro", scopes: ["events:read"] });
    expect((await ask(secret, "/v1/keys"))[0]).toBe(403);
    expect((await ask(secret, "/v1/nothing"))[0]).toBe(404);
    expect((await ask(secret, "/v1/events?nope=1"))[0]).toBe(400);
    expect(await ask(secret)).toEqual([200, 4, 0, seconds(clock + 60_000)]);
  });

  test("are separate for keys and addresses: anonymous requests do not lock out a key", async () => {
    const { secret } = await server.addKey({ plan: "pro" });
    const reset = seconds(clock + 60_000);
    expect(await ask(null)).toEqual([401, 2, 1, reset]);
    expect(await ask("tsn_wrong")).toEqual([401, 2, 0, reset]);
    expect(await ask(null)).toEqual([429, 2, 0, reset]);
    expect(await ask(null, "/v1/nothing")).toEqual([429, 2, 0, reset]);
    expect(await ask(secret)).toEqual([200, 4, 3, reset]);
  });

  test("count malformed requests against their address, and refuse those too", async () => {
    const broken = () =>
      new Promise<string>((resolve) => {
        let heard = "";
        const socket = connect(server.port, "127.0.0.1", () => socket.write("FOO / HTTP/1.1\r\n\r\n"));
        socket.on("data", (chunk) => (heard += chunk.toString()));
        socket.on("close", () => resolve(heard));
      });
    const reset = `X-RateLimit-Reset: ${seconds(clock + 60_000)}\r\n`;
    for (const remaining of [1, 0]) {
      const answer = await broken();
      expect(answer).toMatch(/^HTTP\/1.1 400 /);
      expect(answer).toContain(`X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: ${remaining}\r\n${reset}`);
    }
    expect(await broken()).toMatch(/^HTTP\/1.1 429 Too Many Requests\r\n.*\r\nRetry-After: 60\r\n.*"rate_limited"/s);
    expect((await ask(null))[0]).toBe(429);
  });

  test("do not apply to health, metrics and docs", async () => {
    await ask(null);
    await ask(null);
    for (const path of ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"]) {
      const answer = await server.call("GET", path, { key: null });
      expect(answer.status, path).toBe(200);
      expect(answer.headers["x-ratelimit-limit"]).toBeUndefined();
    }
  });

  test("keep the count of the day across a restart", async () => {
    const { secret } = await server.addKey({ plan: "starter" });
    for (let i = 0; i < 3; i++) await ask(secret);
    clock += 60_000;
    server = await server.restart();
    expect(await ask(secret)).toEqual([200, 5, 1, midnight / 1000]);
    expect(await ask(secret)).toEqual([200, 5, 0, midnight / 1000]);
    expect((await ask(secret))[0]).toBe(429);
    server = await server.restart();
    expect((await ask(secret))[0]).toBe(429);
  });

  test("keep the count of the minute across a restart", async () => {
    const { secret } = await server.addKey({ plan: "enterprise" });
    const reset = seconds(clock + 60_000);
    for (let i = 0; i < 3; i++) await ask(secret);
    clock += 10_000;
    server = await server.restart();
    expect(await ask(secret)).toEqual([200, 5, 1, reset]);
    expect(await ask(secret)).toEqual([200, 5, 0, reset]);
    expect(await ask(secret)).toEqual([429, 5, 0, reset]);
    server = await server.restart();
    expect(await ask(secret)).toEqual([429, 5, 0, reset]);
    clock += 50_000;
    server = await server.restart();
    expect(await ask(secret)).toEqual([200, 5, 4, seconds(clock + 60_000)]);
  });

  test("lose nothing of a minute when the process is killed, and count at most a tenth of it too many", async () => {
    const big = await openTestServer({
      settings: { plans: { ...plans, enterprise: { perMinute: 50, perDay: null } } },
      now: () => clock,
    });
    const { secret, key } = await big.addKey({ plan: "enterprise" });
    for (let i = 1; i <= 50; i++) {
      expect((await big.call("GET", "/v1/events", { key: secret })).status).toBe(200);
      const written = (await big.store.keys.usage()).find(({ keyId }) => keyId === key.id)!;
      expect(written.minuteEndsAt).toBe(clock + 60_000);
      expect(written.minuteCount).toBeGreaterThanOrEqual(i);
      expect(written.minuteCount).toBeLessThanOrEqual(i + 5);
    }
    expect((await big.call("GET", "/v1/events", { key: secret })).status).toBe(429);
    await big.close();
  });

  test("lose nothing of a day when the process is killed, and count at most a hundredth of it too many", async () => {
    const { secret, key } = await server.addKey({ plan: "pro" });
    for (let i = 0; i < 37; i++) {
      expect((await ask(secret))[0]).toBe(200);
      clock += 20_000;
      // The stored counts at this moment are those that a restart after a kill would read.
      const written = (await server.store.keys.usage()).find(({ keyId }) => keyId === key.id)!;
      expect(written.dayCount).toBeGreaterThanOrEqual(i + 1);
      expect(written.dayCount).toBeLessThanOrEqual(i + 2);
    }
    server = await server.restart();
    expect((await ask(secret)).slice(0, 2)).toEqual([200, 4]);
    expect((await server.store.keys.usage()).find(({ keyId }) => keyId === key.id)!.dayCount).toBeLessThanOrEqual(39);
  });

  test("refuse nothing when disabled, and keep their headers", async () => {
    const open = await openTestServer({ settings: { plans, rateLimits: false }, now: () => clock });
    const { secret } = await open.addKey({ plan: "starter" });
    for (let i = 0; i < 10; i++) {
      const answer = await open.call("GET", "/v1/events", { key: secret });
      expect(limitsOf(answer).slice(0, 3)).toEqual([200, 3, 3]);
    }
    await open.close();
  });
});

describe("behind a proxy", () => {
  test("the address of the client counts if the proxy is trusted, and only then", async () => {
    const from = (address: string) => ({ key: null, headers: { "x-forwarded-for": address } });
    await server.call("GET", "/v1/events", from("192.0.2.1"));
    await server.call("GET", "/v1/events", from("192.0.2.2"));
    expect((await server.call("GET", "/v1/events", from("192.0.2.3"))).status).toBe(429);
    const trusting = await openTestServer({
      settings: { anonymousPerMinute: 1, trustedProxies: ["127.0.0.0/8"] },
      now: () => clock,
    });
    expect((await trusting.call("GET", "/v1/events", from("192.0.2.1"))).status).toBe(401);
    expect((await trusting.call("GET", "/v1/events", from("192.0.2.2"))).status).toBe(401);
    expect((await trusting.call("GET", "/v1/events", from("192.0.2.1"))).status).toBe(429);
    expect((await trusting.call("GET", "/v1/events", from("2001:db8::1"))).status).toBe(401);
    expect((await trusting.call("GET", "/v1/events", from("2001:db8::2"))).status).toBe(429);
    await trusting.close();
  });
});
