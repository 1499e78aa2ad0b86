import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { KEY, scoreOf, startAbusePeer } from "../abuse-ipdb.ts";
import { makeKey, startServer, type ServerProcess } from "../server-process.ts";
import { tocsin } from "../tocsin.ts";

// Enrichment that was added after events were stored, when the service is killed.

const WAIT = { timeout: 100_000, interval: 50 };
const ADDRESSES = Array.from({ length: 12 }, (_, i) => `8.8.${i}.8`);

test("enrichment added to stored events survives a kill and a rebuild of the columns, in every read", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-amended-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const peer = await startAbusePeer();
  onTestFinished(() => peer.close());
  const dataDir = join(folder, "data");
  const key = await makeKey(dataDir);
  const variables = { TOCSIN_ENRICHMENT_ABUSEIPDB_KEY: KEY, TOCSIN_ENRICHMENT_ABUSEIPDB_URL: peer.url };
  const serve = async (more: Record<string, string> = {}) => {
    const server = await startServer({ dataDir, variables: { ...variables, ...more } });
    onTestFinished(async () => void (await server.end("SIGKILL")));
    return server;
  };
  const ask = async ({ address }: ServerProcess, path: string, body?: unknown): Promise<any> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(
      address + path,
      body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) },
    );
    return ((await response.json()) as { data: unknown }).data;
  };
  const scores = async (server: ServerProcess) => {
    const query = { bool: { must: [{ field: "enrichment.abuse_ipdb.score", exists: true }] } };
    const aggs = { stats: { stats: { field: "enrichment.abuse_ipdb.score" } } };
    const found = await ask(server, "/v1/events/search", { query, aggs, limit: 1000 });
    const events = await Promise.all(found.results.map(({ id }: { id: string }) => ask(server, `/v1/events/${id}`)));
    return {
      total: found.total as number,
      sum: found.aggregations.stats.sum as number,
      texts: events.map(({ enrichment, raw }) => [raw.src_ip, enrichment.abuse_ipdb.score]).sort(),
    };
  };
  const expected = {
    total: 5 * ADDRESSES.length,
    sum: 5 * ADDRESSES.reduce((sum, address) => sum + scoreOf(address), 0),
    texts: ADDRESSES.flatMap((address) => Array.from({ length: 5 }, () => [address, scoreOf(address)])).sort(),
  };

  let server = await serve();
  const release = peer.hold();
  const events = ADDRESSES.flatMap((src_ip) =>
    Array.from({ length: 5 }, () => ({ type: "seen", source: "custom", data: { src_ip } })),
  );
  await ask(server, "/v1/events/batch", events);
  expect((await scores(server)).total).toBe(0);
  release();
  await vi.waitFor(async () => expect((await scores(server)).total).toBe(expected.total), WAIT);
  await server.end("SIGKILL");
  server = await serve();
  expect(await scores(server)).toEqual(expected);
  // Cached reputations are added at once, without another lookup.
  await ask(server, "/v1/events", { type: "again", source: "custom", data: { src_ip: ADDRESSES[3] } });
  const after = await scores(server);
  expect([after.total, after.sum]).toEqual([expected.total + 1, expected.sum + scoreOf(ADDRESSES[3]!)]);
  expect(peer.asked).toEqual(ADDRESSES);
  expect((await ask(server, "/v1/enrichment")).abuse_ipdb).toMatchObject({ used_today: 12, known: 12 });
  await server.end("SIGKILL");
  expect((await tocsin(["rebuild", "--data-dir", dataDir])).code).toBe(0);
  server = await serve({ TOCSIN_ENRICHMENT_ABUSEIPDB_KEY: "off" });
  expect(await scores(server)).toEqual(after);
});
