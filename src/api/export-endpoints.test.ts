import { readdirSync, readlinkSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
  // More than sockets buffer, so that a download stays in flight while nobody reads it.
  const body = Array.from({ length: 10_000 }, (_, n) => ({
    type: "exported",
    source: "custom",
    data: { n, text: "x".repeat(1500) },
  }));
  expect((await server.call("POST", "/v1/events/batch", { body })).body.data.accepted).toBe(10_000);
});
afterAll(() => server.close());

const everything = { format: "ndjson", time_range: { from: "2000-01-01", to: "2100-01-01" } };
const ask = (body: unknown) => server.call("POST", "/v1/events/export", { body });

async function completed(body: object): Promise<any> {
  const { id } = (await ask(body)).body.data;
  for (;;) {
    const { data } = (await server.call("GET", `/v1/events/exports/${id}`)).body;
    if (data.status === "completed" || data.status === "failed") return data;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("an export", () => {
  test("is created, reported and downloaded; a time range in its query narrows it", async () => {
    const made = await ask(everything);
    expect(made.status).toBe(201);
    expect(made.headers.location).toBe(`/v1/events/exports/${made.body.data.id}`);
    const done = await completed({ ...everything, query: { bool: { must: [{ field: "raw.n", lt: 3 }] } } });
    expect(done).toMatchObject({ status: "completed", row_count: 3, error: null });
    const file = await server.call("GET", done.download_url);
    expect(file.status).toBe(200);
    expect(file.headers).toMatchObject({
      "content-type": expect.stringContaining("application/x-ndjson"),
      "content-length": String(done.size_bytes),
      "content-disposition": `attachment; filename="events-${done.id}.ndjson"`,
      "cache-control": "no-store",
      "x-ratelimit-limit": expect.any(String),
    });
    expect(
      file.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).raw.n),
    ).toEqual([0, 1, 2]);
    const none = await completed({ ...everything, query: { time_range: { to: "2000-01-02" } } });
    expect(none).toMatchObject({ status: "completed", row_count: 0 });
  });

  test.each([
    [{}, ["format", "time_range"]],
    [{ ...everything, format: "xml" }, ["format"]],
    [{ format: "csv", time_range: { from: "2026-11-15" } }, ["time_range.to"]],
    [{ format: "csv", time_range: { from: "2026-11-15", to: "2026-11-14" } }, ["time_range.from"]],
    [{ ...everything, fields: [] }, ["fields"]],
    [{ ...everything, fields: ["type", "nope"] }, ["fields[1]"]],
    [{ ...everything, fields: ["type", "type"] }, ["fields"]],
    [{ ...everything, query: { bool: { must: [{ field: "source", equals: "x" }] } } }, ["query.bool.must[0].equals"]],
    [{ ...everything, extra: 1 }, ["extra"]],
  ])("requested as %j is refused at %j", async (body, fields) => {
    const { status, body: refused } = await ask(body);
    expect(status).toBe(400);
    expect(refused.error.details.map(({ field }: { field: string }) => field)).toEqual(fields);
  });

  test("that does not exist is a 404 for every call", async () => {
    for (const [method, path] of [
      ["GET", "/v1/events/exports/exp_none"],
      ["DELETE", "/v1/events/exports/exp_none"],
      ["GET", "/v1/events/exports/exp_none/download"],
    ] as const) {
      expect((await server.call(method, path)).body.error.code).toBe("not_found");
    }
  });

  test("is gone once it is deleted", async () => {
    const { id } = await completed(everything);
    const deleted = await server.call("DELETE", `/v1/events/exports/${id}`);
    expect([deleted.status, deleted.body.data]).toEqual([200, { id, deleted: true }]);
    expect((await server.call("GET", `/v1/events/exports/${id}`)).status).toBe(404);
    expect((await server.call("GET", `/v1/events/exports/${id}/download`)).status).toBe(404);
  });

  test("is deleted only by the key that created it or one with keys:manage; any reader can download it", async () => {
    const reader = { scopes: ["events:read"] } as const;
    const [maker, other, manager] = [
      await server.addKey(reader),
      await server.addKey(reader),
      await server.addKey({ scopes: ["events:read", "keys:manage"] }),
    ];
    const by = ({ secret }: { secret: string }, method: string, path: string, body?: object) =>
      server.call(method, path, { key: secret, ...(body && { body }) });
    for (const remover of [maker, manager]) {
      const small = { ...everything, query: { bool: { must: [{ field: "raw.n", lt: 3 }] } } };
      const { id, download_url } = (await by(maker, "POST", "/v1/events/export", small)).body.data;
      await expect.poll(async () => (await by(other, "GET", download_url)).status).toBe(200);
      const refused = await by(other, "DELETE", `/v1/events/exports/${id}`);
      expect([refused.status, refused.body.error.code]).toEqual([403, "forbidden"]);
      expect(refused.body.error.message).toContain("another key");
      expect((await by(other, "GET", `/v1/events/exports/${id}`)).status).toBe(200);
      expect((await by(remover, "DELETE", `/v1/events/exports/${id}`)).status).toBe(200);
    }
  });

  test("stored without an owner is deleted by any reader, and survives a restart", async () => {
    const old = await openTestServer();
    const { id } = (await old.call("POST", "/v1/events/export", { body: everything })).body.data;
    await expect
      .poll(async () => (await old.call("GET", `/v1/events/exports/${id}`)).body.data.status)
      .toBe("completed");
    const { owner: _owner, ...before } = (await old.store.exports.get(id))!;
    await old.store.exports.put(before as typeof before & { owner: null });
    const again = await old.restart();
    expect((await again.call("GET", `/v1/events/exports/${id}/download`)).status).toBe(200);
    const { secret } = await again.addKey({ scopes: ["events:read"] });
    expect((await again.call("DELETE", `/v1/events/exports/${id}`, { key: secret })).status).toBe(200);
    await again.close();
  });

  test("past the limit of a key is a 429 with Retry-After, without affecting other keys", async () => {
    const [greedy, other] = [await server.addKey(), await server.addKey()];
    const by = ({ secret }: { secret: string }) =>
      server.call("POST", "/v1/events/export", { body: everything, key: secret });
    const answers = await Promise.all(Array.from({ length: 8 }, () => by(greedy)));
    const refused = answers.find(({ status }) => status === 429)!;
    expect(refused.body.error).toMatchObject({ code: "rate_limited", message: expect.stringContaining("exports") });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect((await by(other)).status).toBe(201);
  });

  test("whose client disconnects during the download leaves nothing open and logs no error", async () => {
    const { id, download_url } = await completed(everything);
    const before = server.log.length;
    await new Promise<void>((resolve) => {
      const headers = { authorization: `Bearer ${server.key.secret}` };
      const sent = request({ host: "127.0.0.1", port: server.port, path: download_url, headers }, (response) => {
        response.once("data", () => {
          response.on("error", () => {});
          response.on("close", resolve);
          sent.destroy();
        });
      });
      sent.on("error", () => {});
      sent.end();
    });
    const opened = () => readdirSync("/proc/self/fd").filter((fd) => linkOf(fd).includes(id));
    await expect.poll(opened).toEqual([]);
    const lines = () => server.log.slice(before);
    await expect.poll(() => lines().some(({ route, aborted }) => aborted && route.endsWith("/download"))).toBe(true);
    expect(lines().filter(({ level }) => level !== "info")).toEqual([]);
    const again = await server.call("GET", download_url);
    expect(again.text.trim().split("\n")).toHaveLength(10_000);
  });
});

test("a download is complete once its client has every byte, even if it disconnects immediately", async () => {
  const rows = { bool: { must: [{ field: "raw.n", lt: 200 }] } };
  const { download_url, size_bytes } = await completed({ ...everything, query: rows });
  const before = server.log.length;
  const downloads = 100;
  const head = `GET ${download_url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key.secret}\r\n\r\n`;
  for (let n = 0; n < downloads; n++) {
    await new Promise<void>((resolve) => {
      const socket = connect(server.port, "127.0.0.1", () => socket.write(head));
      let heard = Buffer.alloc(0);
      socket.on("data", (chunk: Buffer) => {
        heard = Buffer.concat([heard, chunk]);
        const end = heard.indexOf("\r\n\r\n");
        if (end >= 0 && heard.length === end + 4 + size_bytes) socket.destroy();
      });
      socket.on("close", () => resolve());
    });
  }
  const logged = () => server.log.slice(before).filter(({ route }) => route?.endsWith("/download"));
  await expect.poll(logged).toHaveLength(downloads);
  expect(logged().filter(({ aborted }) => aborted)).toEqual([]);
});

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // Closed since it was listed.
    return "";
  }
}

describe("the list of exports", () => {
  test("has the key's own exports, newest first, by page or by cursor, also after a restart", async () => {
    const { secret: key } = await server.addKey({ scopes: ["events:read"] });
    const { secret: other } = await server.addKey({ scopes: ["events:read"] });
    const made: string[] = [];
    const list = (query = "", secret = key) => server.call("GET", `/v1/events/exports${query}`, { key: secret });
    const idsOf = (answer: Awaited<ReturnType<typeof list>>) => answer.body.data.map(({ id }: { id: string }) => id);
    expect((await list()).body).toMatchObject({ data: [], pagination: { total: 0 } });
    for (let i = 0; i < 3; i++) {
      const body = { ...everything, query: { bool: { must: [{ field: "raw.n", lt: 1 }] } } };
      made.unshift((await server.call("POST", "/v1/events/export", { key, body })).body.data.id);
    }
    expect(idsOf(await list())).toEqual(made);
    expect((await list()).body.data[0]).toMatchObject({ format: "ndjson", download_url: expect.any(String) });
    expect(idsOf(await list("?page=2&per_page=2"))).toEqual(made.slice(2));
    const first = await list("?limit=2");
    expect(first.body.pagination).toMatchObject({ total: 3, next_cursor: made[1] });
    const last = await list(`?limit=2&after=${made[1]}`);
    expect(idsOf(last)).toEqual(made.slice(2));
    expect(last.body.pagination.next_cursor).toBeNull();
    expect((await list("", other)).body.data).toEqual([]);
    await server.call("DELETE", `/v1/events/exports/${made[1]}`, { key });
    expect(idsOf(await list(`?after=${made[1]}`))).toEqual(made.slice(2));
    server = await server.restart();
    expect(idsOf(await list())).toEqual([made[0], made[2]]);
    for (const query of ["?page=1&limit=2", "?nope=1", "?limit=0", "?after=exp_1"])
      expect((await list(query)).status).toBe(400);
    const { secret: without } = await server.addKey({ scopes: ["alerts:read"] });
    expect((await list("", without)).status).toBe(403);
  });
});
