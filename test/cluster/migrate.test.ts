import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { Client } from "pg";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { plainRule } from "../../src/model/rule.fixture.ts";
import { withEventEngines } from "../../src/store/opensearch/opensearch-events.fixture.ts";
import { LeasedRole } from "../../src/store/leases/leased-role.ts";
import { openStore } from "../../src/store/open-store.ts";
import { postgresSettings } from "../../src/store/postgres/postgres-store.fixture.ts";
import type { Store } from "../../src/store/ports/store.ts";
import { idsOf, placesOf } from "../../src/store/testing/contract.ts";
import { main, makeFolder, tocsin } from "../tocsin.ts";
import { clusterOf, type FolderCluster } from "./cluster-of-folder.ts";

const EVENTS = 3000;
const FLOWS = 2000;
const END = "2026-11-17T12:00:00Z";
/** All of the demo, and later. */
const RANGE = { fromMs: Date.parse(END) - 7 * 86_400_000, toMs: Date.parse(END) + 86_400_000 };

await withEventEngines("tocsin migrate", () => {
  const folder = makeFolder();
  const back = makeFolder();
  let cluster: FolderCluster;
  const env = (dataDir: string, { postgresUrl, openSearchUrl, indexPrefix } = cluster) => ({
    TOCSIN_POSTGRES_URL: postgresUrl,
    TOCSIN_OPENSEARCH_ADDRESSES: openSearchUrl,
    TOCSIN_OPENSEARCH_REPLICAS: "0",
    TOCSIN_INDEX_PREFIX: indexPrefix,
    TOCSIN_DATA_DIR: dataDir,
  });
  const migrate = (from: string, to: string, dataDir: string, ...more: string[]) =>
    tocsin(["migrate", "--from", from, "--to", to, ...more], env(dataDir));
  const shared = () => ({
    platform: "platform",
    indexPrefix: cluster.indexPrefix,
    registry: new Registry(),
    log: pino({ level: "silent" }),
  });
  const inFolder = async <T>(dataDir: string, work: (store: Store) => Promise<T>) =>
    using(await openStore({ dataDir, ...shared() }), work);
  const inCluster = async <T>(work: (store: Store) => Promise<T>) => {
    const dataDir = makeFolder();
    const opensearch = { addresses: [cluster.openSearchUrl], shards: 1, replicas: 0 };
    const postgres = postgresSettings(cluster.postgresUrl);
    const store = await openStore({ dataDir, ...shared(), postgres, opensearch });
    try {
      return await using(store, work);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  };

  beforeAll(async () => {
    cluster = await clusterOf(folder);
    const made = await tocsin(
      ["demo", "--days", "3", "--events", `${EVENTS}`, "--flows", `${FLOWS}`, "--end", END, "--data-dir", folder],
      env(folder),
    );
    expect(made, made.stderr).toMatchObject({ code: 0 });
    await inFolder(folder, async (store) => {
      // Detection has not processed the last events, and a rule applies to the last but a few.
      const events = Array.from({ length: 10 }, (_, n) => ({
        draft: {
          type: "after",
          source: "custom",
          severity: "info" as const,
          class: "security" as const,
          timestampMs: Date.parse(END) + n,
          raw: { n },
          enrichment: {},
        },
        ...(n === 0 && { idempotencyToken: "token 0" }),
      }));
      const stored = await store.events.append(events);
      const activeAfter = (await placesOf(store)).get(stored[4]!.id)!;
      await store.rules.put(plainRule({ id: "rule_migrated", name: "site.migrated", activeAfter }));
    });
  });
  afterAll(async () => {
    await cluster.end();
    for (const dataDir of [folder, back]) rmSync(dataDir, { recursive: true, force: true });
  });

  test("is refused with a reason and writes nothing", async () => {
    const same = await migrate("cluster", "cluster", folder);
    expect(same).toMatchObject({ code: 2, stderr: expect.stringContaining("the same store") });
    const around = await migrate("postgres", "cluster", folder);
    expect(around).toMatchObject({ code: 2, stderr: expect.stringContaining("migrate to embedded first") });
    const unknown = await migrate("embedded", "clouds", folder);
    expect(unknown).toMatchObject({ code: 2 });
    const word = await migrate("embedded", "cluster", folder, "--platform", "other");
    expect(word).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/platform word of embedded is \w+, not other/),
    });
    await inFolder(folder, async () => {
      const busy = await migrate("embedded", "cluster", folder);
      expect(busy).toMatchObject({ code: 1, stderr: expect.stringContaining("in use by another tocsin") });
    });
    await inCluster(async ({ leases }) => {
      const node = new LeasedRole({
        name: "detector",
        holder: "node",
        leases,
        registry: new Registry(),
        log: pino({ level: "silent" }),
        work: async (_lease, signal, begun) => {
          begun();
          await once(signal, "abort");
        },
      });
      try {
        await node.begun;
        const busy = await migrate("embedded", "cluster", folder);
        expect(busy).toMatchObject({ code: 1, stderr: expect.stringContaining("in use by another tocsin (node)") });
      } finally {
        await node.close();
      }
    });
  });

  test("copies nothing with --dry-run, and says what it would copy", async () => {
    const { code, stdout, stderr } = await migrate("embedded", "cluster", folder, "--dry-run");
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/events +3,010/);
    expect(stdout).toMatch(/alerts +\d/);
    expect(stdout).toMatch(/target is empty\. Nothing was copied/);
  });

  test("goes on after kill -9 and gives the same answers, in the cluster and back in a folder", async () => {
    for (const [step, pauseMs] of [
      ["Copying events", 60],
      ["Copying flows", 20],
      ["Copying alerts", 30],
      ["Verifying", 0],
    ] as const) {
      await killedAt(step, pauseMs, ["migrate", "--from", "embedded", "--to", "cluster"], env(folder));
      if (step !== "Copying flows") continue;
      await expect(inCluster(async () => undefined)).rejects.toThrow(/migration that is not complete/);
      const other = await migrate("embedded", "postgres", folder);
      expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("another migration") });
    }
    const done = await migrate("embedded", "cluster", folder);
    expect(done.code, done.stderr).toBe(0);
    expect(done.stdout).toMatch(/Copied and verified [\d,]+ rows from embedded to cluster/);
    expect(done.stdout).toMatch(/store\.data: opensearch/);

    const before = await inFolder(folder, answersOf);
    expect(before.unprocessed.length).toBeGreaterThanOrEqual(10);
    expect(before.active).toHaveLength(5);
    expect(before.alerts.total).toBeGreaterThan(0);
    expect(await inCluster(answersOf)).toEqual(before);

    const away = await migrate("cluster", "embedded", back);
    expect(away.code, away.stderr).toBe(0);
    expect(await inFolder(back, answersOf)).toEqual(before);
    const again = await migrate("cluster", "embedded", back);
    // The service on the folder has changed nothing that is copied.
    expect(again.stdout, again.stderr).toMatch(/was complete already/);
  });

  test("finds what differs in the target", async () => {
    const client = new Client({ connectionString: cluster.postgresUrl });
    await client.connect();
    const change = "UPDATE rules SET document = replace(document, 'Something', 'Nothing') WHERE id = 'rule_migrated'";
    try {
      await client.query(change);
      const [flows] = Object.keys(
        (await (await fetch(`${cluster.openSearchUrl}/${cluster.indexPrefix}-flows-2*/_settings`)).json()) as object,
      );
      const query = { query: { match_all: {} }, max_docs: 1 };
      await fetch(`${cluster.openSearchUrl}/${flows}/_delete_by_query?refresh=true`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(query),
      });
    } finally {
      await client.end();
    }
    const { code, stderr } = await migrate("embedded", "cluster", folder);
    expect(code).toBe(1);
    expect(stderr).toMatch(/rules: \d+ rows?, checksum \w{32} in the source; \d+ rows?, checksum \w{32} in the target/);
    expect(stderr).toMatch(/flows 2026-11-\d\d: /);
    expect(stderr).not.toMatch(/ {2}(events|alerts)/);
  });

  test("carries ids of the cluster into a folder, where they find their events", async () => {
    const ids = await inCluster(async (store) => {
      const draft = {
        type: "born_there",
        source: "custom",
        severity: "info" as const,
        class: "security" as const,
        timestampMs: Date.parse(END) + 1000,
        raw: { word: "heron" },
        enrichment: {},
      };
      const stored = await store.events.append([{ draft, idempotencyToken: "heron" }, { draft }, { draft }]);
      return stored.map(({ id }) => id);
    });
    const dataDir = makeFolder();
    try {
      const away = await migrate("cluster", "embedded", dataDir);
      expect(away.code, away.stderr).toBe(0);
      await inFolder(dataDir, async (store) => {
        for (const id of ids) expect(await store.events.get(id)).toContain(id);
        const found = await store.events.search({
          condition: { kind: "test", field: "id", operator: "in", value: ids, ignoreCase: false },
          sort: [],
          limit: 10,
          aggs: [],
        });
        expect(idsOf(found.items).sort()).toEqual([...ids].sort());
        const listed = await store.events.list({ search: "heron" }, { mode: "cursor", after: ids[0]!, size: 10 });
        expect(listed.total).toBe(3);
        await store.events.amend([{ id: ids[1]!, enrichment: { noted: true } }]);
        expect(await store.events.get(ids[1]!)).toContain('"noted":true');
        const places = await placesOf(store);
        const last = await store.events.lastArrival();
        expect([...places.values()]).toEqual([...places.values()].sort());
        expect([...places.keys()].slice(-3).sort()).toEqual([...ids].sort());
        expect([...places.values()].at(-1)).toBe(last);
        const [later] = await store.events.append([
          {
            draft: {
              type: "later",
              source: "custom",
              severity: "info",
              class: "security",
              timestampMs: Date.now(),
              raw: {},
              enrichment: {},
            },
          },
        ]);
        expect(later!.id > last!).toBe(true);
      });
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("moves cases alone into PostgreSQL and back", async () => {
    const own = await clusterOf(back);
    const setting = env(back, own);
    const run = (from: string, to: string, dataDir: string) =>
      tocsin(["migrate", "--from", from, "--to", to, "--json"], {
        ...setting,
        TOCSIN_INDEX_PREFIX: cluster.indexPrefix,
        TOCSIN_DATA_DIR: dataDir,
      });
    const dataDir = makeFolder();
    try {
      const there = await run("embedded", "postgres", back);
      expect(there.code, there.stderr).toBe(0);
      expect(JSON.parse(there.stdout)).toMatchObject({ state: "new", differences: [] });
      const again = await run("postgres", "embedded", dataDir);
      expect(again.code, again.stderr).toBe(0);
    } finally {
      await own.end();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

async function using<T>(store: Store, work: (store: Store) => Promise<T>): Promise<T> {
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Runs the command in a process of its own, and kills it a moment after it has reported a step. */
async function killedAt(step: string, pauseMs: number, args: readonly string[], env: Record<string, string>) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("TOCSIN_"));
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...Object.fromEntries(inherited), ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  let output = "";
  for await (const chunk of child.stderr) {
    output += String(chunk);
    if (!output.includes(step)) continue;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    child.kill("SIGKILL");
    break;
  }
  const [, signal] = (await exited) as [number | null, string | null];
  expect(signal, output).toBe("SIGKILL");
}

/** What clients and detection read from a store. */
async function answersOf(store: Store) {
  const rules = await store.rules.list();
  const ruleIds = rules.map(({ id }) => id).sort();
  const position = await store.detection.position();
  const places = await placesOf(store);
  const after = (place: string | null) =>
    [...places].filter(([, each]) => place === null || each > place).map(([id]) => id);
  const filter = { fromMs: RANGE.fromMs, toMs: RANGE.toMs };
  const page = { mode: "page", page: 1, size: 100 } as const;
  const alerts = await store.alerts.list({}, page, "created_at", true);
  return {
    events: await store.events.list(filter, page),
    words: await store.events.list({ search: "login" }, page),
    search: await store.events.search({
      condition: { kind: "all", of: [] },
      sort: [],
      limit: 5,
      aggs: [{ name: "types", aggregation: { kind: "terms", field: "type", size: 20, aggs: [] } }],
    }),
    token: (await store.events.findByToken("token 0"))?.id,
    count: await store.events.count(),
    unprocessed: after(position).sort(),
    active: after(rules.find(({ id }) => id === "rule_migrated")!.activeAfter).sort(),
    alerts,
    timelines: await Promise.all(alerts.items.map(({ id }) => store.alerts.withTimeline(id))),
    alertEvents: await Promise.all(
      alerts.items.slice(0, 5).map(({ id }) => store.alerts.events(id, { limit: 100, descending: true })),
    ),
    found: await store.alerts.list({ search: "login" }, page, "created_at", true),
    totals: await store.alerts.totals({}),
    lastChange: await store.alerts.lastChange(),
    rules: rules.map((rule) => ({ ...rule, activeAfter: null })),
    stats: await store.rules.stats(ruleIds, Date.parse(END)),
    seen: await store.detection.seen(),
    notifications: await store.notifications.list({}, page),
    keys: await store.keys.list(),
    retention: await store.retention.notes(),
    talkers: await store.flows.topTalkers({ filter, dimension: "pair", by: "bytes", limit: 20 }),
    protocols: await store.flows.protocols(filter),
    flows: (await store.flows.list(filter, { sort: "bytes", descending: true }, 0, 1)).total,
    days: await store.retention.due("events", RANGE.toMs),
  };
}
