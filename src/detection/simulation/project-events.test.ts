import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../lib/time.ts";
import { ALWAYS } from "../../model/condition.ts";
import { openStore } from "../../store/open-store.ts";
import type { Store } from "../../store/ports/store.ts";
import { projectedValues, type ProjectedEvents, type Projection } from "../../store/ports/projection.ts";
import { conditions, drafts } from "../../store/testing/arbitrary-events.ts";
import { projectByScan, projectEvents } from "./project-events.ts";

const NOW = Date.UTC(2026, 5, 15, 12);
const never = new AbortController().signal;
let dataDir: string;
let store: Store;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-project-"));
  const log = pino({ level: "silent" });
  const registry = new Registry();
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry, log, now: () => NOW });
  const sample = fc.sample(drafts(NOW - DAY_MS, NOW), { numRuns: 300, seed: 23 });
  // Half of them share their hour.
  const shared = sample.map((draft, i) => ({
    draft: { ...draft, timestampMs: draft.timestampMs - (i % 2 ? draft.timestampMs % 3_600_000 : 0) },
  }));
  await store.events.append(shared);
});
afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function rowsOf(parts: AsyncIterable<ProjectedEvents>) {
  const rows: { timestampMs: number; passed: number; values: Set<unknown>[] }[] = [];
  for await (const part of parts) {
    for (let i = 0; i < part.length; i++) {
      const values = projectedValues(part, i).map((list) => new Set<unknown>(list));
      rows.push({ timestampMs: part.timesMs[i]!, passed: part.passed[i]!, values });
    }
  }
  return rows;
}

test("a projection made from a scan has the rows, values and tests of the engine's own", async () => {
  const fields = ["type", "raw.src_ip", "raw.dst_port", "raw.mixed", "raw.list", "raw.a", "raw.a.b", "raw.nothing"];
  await fc.assert(
    fc.asyncProperty(
      fc.subarray(fields),
      conditions(),
      fc.array(conditions(), { maxLength: 3 }),
      async (paths, condition, tests) => {
        const query: Projection = { condition, fields: paths, tests };
        expect(await rowsOf(projectByScan(store.events, query, never))).toEqual(
          await rowsOf(projectEvents(store.events, query, never)),
        );
      },
    ),
    { numRuns: 40, seed: 29 },
  );
});

test("the numbers of a projection made from a scan rise", async () => {
  const seqs: number[] = [];
  for await (const part of projectByScan(store.events, { condition: ALWAYS, fields: [] }, never))
    seqs.push(...part.seqs);
  expect(seqs).toHaveLength(300);
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
});
