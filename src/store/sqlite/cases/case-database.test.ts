import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Registry } from "prom-client";
import { afterAll, expect, test } from "vitest";
import { DAY_MS } from "../../../lib/time.ts";
import { newAlert } from "../../testing/new-alert.ts";
import type { DetectionProgress } from "../../ports/detection-store.ts";
import { casesFile } from "../../files/layout.ts";
import { openCaseDatabase, type SqliteCaseDatabase } from "./case-database.ts";

const folders: string[] = [];
const newFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), "tocsin-cases-"));
  folders.push(folder);
  return folder;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const open = (dataDir: string, now: () => number = Date.now) =>
  openCaseDatabase({ dataDir, registry: new Registry(), now });

test("match counts are kept as long as statistics need them, and not much longer", async () => {
  const start = 1_800_000_000_000;
  let clock = start;
  const cases = await open(newFolder(), () => clock);
  const note = (matches: DetectionProgress["matches"]) =>
    cases.alerts.commit({ alerts: [], timeline: [], detected: { upTo: "evt_1", matches, seen: [] } });
  const rules = Array.from({ length: 120 }, (_, i) => `rule_${i}`);
  const match = (ms: number) => rules.map((ruleId) => ({ ruleId, timesMs: [ms] }));
  await note(match(start));
  // Too old for statistics: it only counts as the last match.
  await note([{ ruleId: "rule_old", timesMs: [start - 9 * DAY_MS] }]);
  const matchesAtStart = async () => (await cases.rules.stats(rules, start)).map(({ matches7d }) => matches7d);
  expect(await matchesAtStart()).toEqual(rules.map(() => 1));
  expect(await cases.rules.stats(["rule_old"], start - 8 * DAY_MS)).toEqual([
    { matches24h: 0, matches7d: 0, lastMatchAt: start - 9 * DAY_MS },
  ]);
  clock = start + 7.5 * DAY_MS;
  await note([]);
  expect(await matchesAtStart()).toEqual(rules.map(() => 1));
  clock = start + 9 * DAY_MS;
  for (let i = 0; i < 5; i++) await note([]);
  expect(await matchesAtStart()).toEqual(rules.map(() => 0));
  const [stats] = await cases.rules.stats(["rule_7"], clock);
  expect(stats).toEqual({ matches24h: 0, matches7d: 0, lastMatchAt: start });
  await cases.close();
});

test("a file without the last seen events opens as it is, and stores them from then on", async () => {
  const dataDir = newFolder();
  const db = new DatabaseSync(casesFile(dataDir));
  const at = 1_800_000_000_000;
  const upTo = `evt_${at.toString(16).padStart(12, "0")}${"0".repeat(20)}`;
  db.exec(`CREATE TABLE seen(rule_id TEXT NOT NULL, value TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY(rule_id, value)) STRICT, WITHOUT ROWID;
    CREATE TABLE progress(only INTEGER PRIMARY KEY CHECK (only = 0), up_to TEXT NOT NULL) STRICT;
    INSERT INTO seen VALUES ('rule_1', 'g', ${at}); INSERT INTO progress VALUES (0, '${upTo}');`);
  db.close();
  const cases = await open(dataDir);
  const row = { ruleId: "rule_1", group: "g", atMs: at, last: null };
  expect(await cases.detection.seen()).toEqual([row]);
  expect(await cases.detection.begin(at + 5000)).toEqual([{ fromMs: at, toMs: at + 5000 }]);
  const last = { type: "t", source: "custom", class: "audit", severity: "low", timestamp: "" } as const;
  const detected = { upTo, matches: [], seen: [{ ...row, last }] };
  await cases.alerts.commit({ alerts: [], timeline: [], detected });
  expect(await cases.detection.seen()).toEqual([{ ...row, last }]);
  await cases.close();
});

test("match counts of a file without times within a minute are kept", async () => {
  const dataDir = newFolder();
  const at = 1_800_000_000_000;
  const db = new DatabaseSync(casesFile(dataDir));
  db.exec(`CREATE TABLE matched(number INTEGER PRIMARY KEY, rule_id TEXT NOT NULL UNIQUE, last_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE minutes(rule INTEGER NOT NULL, minute INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(rule, minute)) STRICT, WITHOUT ROWID;
    CREATE TABLE hours(rule INTEGER NOT NULL, hour INTEGER NOT NULL, count INTEGER NOT NULL, PRIMARY KEY(rule, hour)) STRICT, WITHOUT ROWID;
    INSERT INTO matched VALUES (1, 'rule_1', ${at}); INSERT INTO minutes VALUES (1, ${at / 60_000}, 3000);
    INSERT INTO hours VALUES (1, ${at / 3_600_000}, 3000);`);
  db.close();
  const cases = await open(dataDir, () => at);
  await cases.alerts.commit({
    alerts: [],
    timeline: [],
    detected: { upTo: "evt_1", matches: [{ ruleId: "rule_1", timesMs: [at + 1] }], seen: [] },
  });
  for (const [later, count] of [
    [0, 3001],
    [DAY_MS, 3001],
    [DAY_MS + 1, 1],
    [DAY_MS + 2, 0],
  ] as const) {
    expect(await cases.rules.stats(["rule_1"], at + later)).toEqual([
      { matches24h: count, matches7d: 3001, lastMatchAt: at + 1 },
    ]);
  }
  await cases.close();
});

test("a file that is not a database is reported at the start", async () => {
  const dataDir = newFolder();
  writeFileSync(casesFile(dataDir), "this is not a database file".repeat(100));
  await expect(open(dataDir)).rejects.toThrow(/The file .*cases\.db is damaged \(.*not a database\)/);
});

test("a file grows with the number of alerts at one time, not with all alerts over time", async () => {
  const dataDir = newFolder();
  const flood = async (cases: SqliteCaseDatabase) => {
    const old = { status: "resolved", resolution: "benign", resolvedAt: 4000 } as const;
    const alerts = Array.from({ length: 300 }, (_, i) => newAlert({ ...old, title: `From 192.0.2.${i}` }));
    expect(await cases.alerts.commit({ alerts, timeline: [] })).toEqual([]);
    expect(await cases.alerts.removeResolvedBefore(4001, new AbortController().signal)).toBe(alerts.length);
  };
  for (let start = 0; start < 2; start++) {
    const cases = await open(dataDir);
    for (let round = 0; round < 3; round++) await flood(cases);
    const last = newAlert();
    await cases.alerts.commit({ alerts: [last], timeline: [] });
    await cases.close();
  }
  const db = new DatabaseSync(casesFile(dataDir), { readOnly: true });
  const { count, highest } = db.prepare("SELECT count(*) AS count, max(seq) AS highest FROM alerts").get() as {
    count: number;
    highest: number;
  };
  db.close();
  expect(count).toBe(2);
  expect(highest).toBeLessThanOrEqual(301);
});

test("calls after close are refused, and calls before it are answered", async () => {
  const cases = await open(newFolder());
  const call = cases.alerts.lastChange();
  const closing = cases.close();
  await expect(cases.alerts.lastChange()).rejects.toMatchObject({ reason: "closed" });
  expect(await call).toBe(0);
  await closing;
});
