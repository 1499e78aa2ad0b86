import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { makeKey, startServer, type ServerOptions, type ServerProcess } from "../server-process.ts";
import { makeSmallDisk } from "../small-disk.ts";

// People's work on alerts after a kill or with a full disk: acknowledged changes are kept, refused ones leave no trace.

const PATIENCE_MS = 100_000;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-alerts-crash-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function serve(options: ServerOptions): Promise<ServerProcess> {
  const server = await startServer(options);
  onTestFinished(async () => {
    await server.end("SIGKILL");
  });
  return server;
}

const RULE = {
  name: "crash.any",
  description: "Any event of the test",
  severity: "low",
  conditions: [{ field: "type", equals: "alerts_crash" }],
  actions: [{ alert: { channels: [] } }],
};

function client({ address }: ServerProcess, key: string) {
  return async (path: string, body?: unknown): Promise<{ status: number; retryAfter: number; body: any }> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const response = await fetch(address + path, request);
    return {
      status: response.status,
      retryAfter: Number(response.headers.get("retry-after")),
      body: await response.json(),
    };
  };
}
type Ask = ReturnType<typeof client>;

async function makeAlert(ask: Ask): Promise<string> {
  expect((await ask("/v1/rules", RULE)).status).toBe(201);
  expect((await ask("/v1/events", { type: "alerts_crash", source: "custom", data: {} })).status).toBe(201);
  const until = performance.now() + PATIENCE_MS;
  while (performance.now() < until) {
    const { body } = await ask(`/v1/alerts?rule_name=${RULE.name}`);
    if (body.data.length === 1) return body.data[0].id;
    await sleep(20);
  }
  throw new Error("there is no alert");
}

const commentsOf = async (ask: Ask, id: string): Promise<string[]> =>
  (await ask(`/v1/alerts/${id}`)).body.data.timeline.flatMap(({ comment }: any) => (comment ? [comment.id] : []));

it("every acknowledged comment survives repeated kills", async () => {
  const dataDir = join(folder, "killed");
  const key = await makeKey(dataDir);
  let server = await serve({ dataDir });
  const id = await makeAlert(client(server, key));
  const answered: string[] = [];
  for (let round = 0; round < 3; round++) {
    const ask = client(server, key);
    const commenting = Array.from({ length: 4 }, async () => {
      for (;;) {
        const answer = await ask(`/v1/alerts/${id}/comments`, { body: "seen" }).catch(() => undefined);
        if (answer?.status !== 201) return;
        answered.push(answer.body.data.id);
      }
    });
    await sleep(150 + 130 * round);
    await server.end("SIGKILL");
    await Promise.all(commenting);
    server = await serve({ dataDir });
    const kept = await commentsOf(client(server, key), id);
    expect(kept).toEqual(expect.arrayContaining(answered));
    expect(new Set(kept).size).toBe(kept.length);
  }
  expect(answered.length).toBeGreaterThan(0);
});

it("answers 503 while the disk is full, loses nothing, and recovers once there is space", async ({ skip }) => {
  const disk = await makeSmallDisk(folder);
  if (!disk) return skip("this process may neither mount a small disk nor limit the size of files");
  const { dataDir, shellBefore } = disk;
  const key = await makeKey(dataDir);
  let server = await serve({ dataDir, ...(shellBefore ? { shellBefore } : {}) });
  const ask = client(server, key);
  const id = await makeAlert(ask);
  const answered: string[] = [];
  const comment = async () => {
    const answer = await ask(`/v1/alerts/${id}/comments`, { body: "x".repeat(60_000) });
    if (answer.status === 201) answered.push(answer.body.data.id);
    return answer;
  };
  await comment();

  await disk.fill(server);
  let refused = await comment();
  while (refused.status === 201) refused = await comment();
  expect([refused.status, refused.body.error.code]).toEqual([503, "unavailable"]);
  expect(refused.retryAfter).toBeGreaterThan(0);
  // Reads still work and show nothing that was refused.
  expect(await commentsOf(ask, id)).toEqual(answered);

  await disk.makeRoom(server);
  const until = performance.now() + PATIENCE_MS;
  while ((await comment()).status !== 201 && performance.now() < until) await sleep(200);
  expect((await comment()).status).toBe(201);
  expect(await commentsOf(ask, id)).toEqual(answered);
  expect(await server.end()).toBe(0);
  server = await serve({ dataDir });
  expect(await commentsOf(client(server, key), id)).toEqual(answered);
});
