import { mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { appendFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRule } from "../../src/api/rule-endpoints.fixture.ts";
import { loadSettings } from "../../src/config/config.ts";
import { DAY_MS, formatTime } from "../../src/lib/time.ts";
import { dailyIndexName } from "../../src/store/opensearch/daily-index.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { openTestServerIn, type Answer, type TestServer } from "../api-server.ts";
import { clusterOf } from "./cluster-of-folder.ts";
import { openGate, type Gate } from "./gate.ts";

// The whole service while OpenSearch fails: what senders and readers are told, and that nothing acknowledged is lost.

await withEventEngines("a service whose OpenSearch fails", (url) => {
  let server: TestServer;
  let gate: Gate;
  let prefix: string;
  let eveFile: string;
  let syslogPort: number;

  beforeAll(async () => {
    gate = await openGate(url);
    const dataDir = await mkdtemp(join(tmpdir(), "tocsin-failures-"));
    eveFile = join(dataDir, "eve.json");
    writeFileSync(eveFile, "");
    const loaded = loadSettings({ environment: {}, workingFolder: dataDir });
    if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
    const { indexPrefix, settings } = await clusterOf(dataDir);
    prefix = indexPrefix;
    const { opensearch } = settings(loaded.settings);
    server = await openTestServerIn(dataDir, {
      usesCluster: true,
      settings: {
        opensearch: { ...opensearch, addresses: [gate.url], retriesMax: 1, timeoutSeconds: 6 },
        eveFile,
        syslogPort: 0,
        collectors: { ...loaded.settings.collectors, addresses: ["127.0.0.1"] },
      },
    });
    const { listeners } = (await server.call("GET", "/v1/collectors")).body.data;
    syslogPort = listeners.find((one: any) => one.name === "syslog" && one.transport === "tcp").port;
  });
  afterAll(async () => {
    gate.open();
    await server.close();
    gate.close();
  });

  const submit = (type: string, more: object = {}, token?: string) =>
    server.call("POST", "/v1/events", {
      body: { type, source: "custom", data: {}, ...more },
      ...(token !== undefined && { headers: { "idempotency-key": token } }),
    });
  const idsBy = async (query: string): Promise<string[]> => {
    const { status, body, text } = await server.call("GET", `/v1/events?${query}`);
    expect(status, text).toBe(200);
    return body.data.map((event: { id: string }) => event.id);
  };
  const expectUnavailable = ({ status, headers, body, text }: Answer, message: RegExp) => {
    expect(status, text).toBe(503);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(body.error.message).toMatch(message);
  };
  const metric = async (name: string, ...labels: string[]) => {
    const { text } = await server.call("GET", "/metrics");
    const lines = text
      .split("\n")
      .filter((line) => line.startsWith(name) && labels.every((part) => line.includes(part)));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  };
  const engine = async (method: string, path: string, body?: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    expect(answer.ok, await answer.clone().text()).toBe(true);
  };
  const today = () => dailyIndexName(`${prefix}-events`, Date.now());
  const syslogLines = (...texts: string[]) =>
    new Promise<void>((resolve) => {
      const socket = connect(syslogPort, "127.0.0.1");
      const lines = texts.map((text) => `<13>1 ${new Date().toISOString()} host app - - - ${text}\n`);
      socket.end(lines.join(""), () => resolve());
    });
  const eveLine = (signature: string) =>
    `${JSON.stringify({
      timestamp: new Date().toISOString(),
      event_type: "alert",
      src_ip: "192.0.2.1",
      dest_ip: "192.0.2.2",
      alert: { signature, signature_id: 1, severity: 2, category: "x" },
    })}\n`;

  test("lines whose storing was answered into the void are stored once", async () => {
    await submit("first");
    // Every attempt of the first call, so that the collector has to repeat it.
    gate.lostAnswers = 2;
    await syslogLines("voidone", "voidtwo", "voidthree");
    await expect.poll(() => gate.lostAnswers).toBe(0);
    await expect.poll(async () => (await idsBy("search=voidthree")).length).toBeGreaterThan(0);
    await expect.poll(() => metric("tocsin_collect_waiting_lines")).toBe(0);
    for (const word of ["voidone", "voidtwo", "voidthree"]) expect(await idsBy(`search=${word}`), word).toHaveLength(1);
    gate.lostAnswers = 2;
    appendFileSync(eveFile, eveLine("fileone") + eveLine("filetwo"));
    await expect.poll(() => gate.lostAnswers).toBe(0);
    await expect.poll(async () => (await idsBy("search=filetwo")).length).toBeGreaterThan(0);
    await expect.poll(() => metric("tocsin_collect_file_lag_bytes")).toBe(0);
    for (const word of ["fileone", "filetwo"]) expect(await idsBy(`search=${word}`), word).toHaveLength(1);
  });

  const block = (isOn: boolean) =>
    engine("PUT", `${today()}/_settings`, { "index.blocks.read_only_allow_delete": isOn ? true : null });

  test("at the disk watermark writes are refused and reads go on; collectors keep their lines", async () => {
    const kept = (await submit("watermark")).body.data.id;
    await block(true);
    const refused = await submit("watermark");
    expectUnavailable(refused, /does not accept writes: its disk may be full/);
    expect(refused.headers["retry-after"]).toBe("30");
    expectUnavailable(await server.call("GET", "/readyz"), /OpenSearch does not accept writes/);
    await syslogLines("heldback");
    appendFileSync(eveFile, eveLine("unread"));
    await expect.poll(() => metric("tocsin_collect_file_lag_bytes")).toBeGreaterThan(0);
    expect(await idsBy("type=watermark")).toEqual([kept]);
    await block(false);
    for (const word of ["heldback", "unread"]) await expect.poll(() => idsBy(`search=${word}`)).toHaveLength(1);
    expect((await submit("watermark")).status).toBe(201);
    expect((await server.call("GET", "/readyz")).status).toBe(200);
    expect(await metric("tocsin_opensearch_failures_total", 'reason="read_only"')).toBeGreaterThan(0);
    expect(await metric("tocsin_intake_refused_total", 'reason="disk_full"')).toBeGreaterThan(0);
  });

  test("an index whose primary is gone refuses writes within seconds, and has everything when it is back", async () => {
    const { name } = await createRule(server, { conditions: [{ field: "type", equals: "red" }] });
    const kept = (await submit("red")).body.data.id;
    const storage = async () => (await server.call("GET", "/readyz")).body.data.storage;
    const timestamp = formatTime(Date.now() - DAY_MS);
    const index = dailyIndexName(`${prefix}-events`, Date.parse(timestamp));
    const setting = (node: string | null) => ({ "index.routing.allocation.require._name": node });
    await engine("PUT", `${index}?wait_for_active_shards=0`, { settings: setting("nobody") });
    expectUnavailable(await submit("red", { timestamp }, "red-1"), /has no copy on a running OpenSearch node/);
    expect(await storage()).toMatchObject({
      status: "incomplete",
      messages: [expect.stringMatching(/has no copy on a running OpenSearch node/)],
    });
    // A day of its own, which has its primary.
    expect((await submit("green")).status).toBe(201);
    await syslogLines("waitsforprimary");
    await engine("PUT", `${index}/_settings`, setting(null));
    await expect.poll(storage).toMatchObject({ status: "complete" });
    const again = await submit("red", { timestamp }, "red-1");
    expect(again.status, again.text).toBe(201);
    expect((await idsBy("type=red")).sort()).toEqual([kept, again.body.data.id].sort());
    await expect.poll(() => idsBy("search=waitsforprimary")).toHaveLength(1);
    const counts = async () =>
      (await server.call("GET", `/v1/alerts?rule_name=${name}`)).body.data.map((alert: any) => alert.event_count);
    // A day apart, so each has an alert of its own.
    await expect.poll(counts).toEqual([1, 1]);
    expect(await metric("tocsin_opensearch_failures_total", 'reason="no_shard"')).toBeGreaterThan(0);
  });

  test("an index with other mappings refuses its own day only, and loses nothing of a batch that is repeated", async () => {
    const timestamp = formatTime(Date.now() - 2 * DAY_MS);
    const index = dailyIndexName(`${prefix}-events`, Date.parse(timestamp));
    await engine("PUT", index, { mappings: { properties: { severity_rank: { type: "ip" } } } });
    const body = ["conflict_today", "conflict_old"].map((type, nth) => ({
      type,
      source: "custom",
      data: {},
      ...(nth === 1 && { timestamp }),
    }));
    const send = () => server.call("POST", "/v1/events/batch", { body, headers: { "idempotency-key": "conflict" } });
    expectUnavailable(await send(), /has other mappings than the template/);
    expect((await submit("conflict_beside")).status).toBe(201);
    expect((await server.call("GET", "/readyz")).status).toBe(200);
    expect(await metric("tocsin_opensearch_failures_total", 'reason="mapping"')).toBeGreaterThan(0);
    expect(server.log.some(({ msg, index: named }) => named === index && /refuses events/.test(msg))).toBe(true);
    await engine("DELETE", index);
    const stored = await send();
    expect(stored.body.data.accepted, stored.text).toBe(2);
    for (const type of ["conflict_today", "conflict_old"]) expect(await idsBy(`type=${type}`)).toHaveLength(1);
  });

  test("a poisoned event in a batch is stored as its text alone, is found, and is counted", async () => {
    const timestamp = formatTime(Date.now() - 3 * DAY_MS);
    const index = dailyIndexName(`${prefix}-events`, Date.parse(timestamp));
    await engine("PUT", index, { mappings: { properties: { words: { type: "integer" } } } });
    const body = [1, 2, 3].map((n) => ({
      type: "poisoned",
      source: "custom",
      data: { user: "ada", n },
      ...(n === 2 && { timestamp }),
    }));
    const stored = await server.call("POST", "/v1/events/batch", { body });
    expect(stored.body.data.accepted, stored.text).toBe(3);
    const query = {
      bool: {
        must: [
          { field: "type", equals: "poisoned" },
          { field: "raw.user", equals: "ada" },
        ],
      },
    };
    const found = await server.call("POST", "/v1/events/search", { body: { query } });
    expect(found.body.data.results.map(({ id }: { id: string }) => id).sort(), found.text).toEqual(
      stored.body.data.ids.toSorted(),
    );
    expect(await metric("tocsin_opensearch_documents_total", 'kind="events"', 'outcome="refused"')).toBeGreaterThan(0);
    // Words of that day cannot be searched.
    expectUnavailable(await server.call("GET", "/v1/events?search=ada"), new RegExp(`other mappings.*${index}`));
    await engine("DELETE", index);
    expect(await idsBy("type=poisoned&search=ada")).toHaveLength(2);
  });

  test("a node that is slow is unavailable, and what was sent meanwhile is stored once", async () => {
    gate.stall();
    const gone = new AbortController();
    const abandoned = fetch(`${server.address}/v1/events?type=slow`, {
      headers: { authorization: `Bearer ${server.key.secret}` },
      signal: gone.signal,
    }).catch((error: unknown) => error);
    const [submitted, listed, ready] = await Promise.all([
      submit("slow", {}, "slow-1"),
      server.call("GET", "/v1/events?type=slow"),
      server.call("GET", "/readyz"),
      new Promise((resolve) => setTimeout(resolve, 500)).then(() => gone.abort()),
    ]);
    for (const answer of [submitted, listed, ready]) expectUnavailable(answer, /OpenSearch did not answer in time/);
    expect(await abandoned).toMatchObject({ name: "AbortError" });
    await syslogLines("sentwhileslow");
    gate.open();
    await expect.poll(async () => (await submit("slow", {}, "slow-1")).status).toBe(201);
    expect(await idsBy("type=slow")).toHaveLength(1);
    await expect.poll(() => idsBy("search=sentwhileslow")).toHaveLength(1);
    expect(await metric("tocsin_opensearch_failures_total", 'reason="timeout"')).toBeGreaterThan(0);
  });

  test("an OpenSearch that is gone is told at once, and detection goes on when it is back", async () => {
    const { name } = await createRule(server, { conditions: [{ field: "raw.message", contains: "sentwhilegone" }] });
    gate.cut();
    expectUnavailable(await submit("gone"), /OpenSearch cannot be reached/);
    expectUnavailable(await server.call("GET", "/v1/events"), /OpenSearch cannot be reached/);
    expectUnavailable(await server.call("GET", "/readyz"), /OpenSearch cannot be reached/);
    await syslogLines("sentwhilegone");
    await expect
      .poll(() => metric("tocsin_opensearch_failures_total", 'operation="bulk"', "unreachable"))
      .toBeGreaterThan(1);
    gate.open();
    const counts = async () =>
      (await server.call("GET", `/v1/alerts?rule_name=${name}`)).body.data.map((alert: any) => alert.event_count);
    await expect.poll(counts).toEqual([1]);
    expect(await idsBy("search=sentwhilegone")).toHaveLength(1);
  });
});
