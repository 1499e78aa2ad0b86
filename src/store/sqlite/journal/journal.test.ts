import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { EventDraft } from "../../../model/event.ts";
import type { Store } from "../../ports/store.ts";
import { options } from "../../embedded/embedded-store.fixture.ts";
import { openStore } from "../../open-store.ts";

let dataDir: string;
let store: Store;
let settings: ReturnType<typeof options>;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-journal-"));
  settings = options(dataDir);
  store = await openStore(settings);
});

afterEach(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const draft = (line: string): EventDraft => ({
  type: "large",
  source: "custom",
  severity: "info",
  class: "security",
  timestampMs: Date.now(),
  raw: { line },
  enrichment: {},
});

async function commits(): Promise<number> {
  const metrics = await settings.registry.getSingleMetricAsString("tocsin_commit_group_events");
  return Number(/^tocsin_commit_group_events_count (\d+)$/m.exec(metrics)![1]);
}

test("concurrent large events are committed in several groups, in order, and small ones in one or two", async () => {
  await Promise.all(Array.from({ length: 40 }, (_, n) => store.events.append([{ draft: draft(`small ${n}`) }])));
  expect(await commits()).toBeLessThanOrEqual(2);
  const before = await commits();
  const line = "a line of some words ".repeat(50_000);
  const stored = await Promise.all(
    Array.from({ length: 20 }, (_, n) => store.events.append([{ draft: draft(`${n} ${line}`) }])),
  );
  const ids = stored.map(([event]) => event!.id);
  expect(ids).toEqual([...ids].sort());
  // Each has a megabyte of text, and a group holds 8 MiB.
  expect((await commits()) - before).toBeGreaterThanOrEqual(3);
  expect(await store.events.count()).toBe(60);
});
