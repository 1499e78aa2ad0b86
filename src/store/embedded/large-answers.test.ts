import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { responseCharactersMax, responsesCharactersMax } from "../../lib/memory.ts";
import { DAY_MS } from "../../lib/time.ts";
import { QueryRefused, StoreUnavailable } from "../ports/store-errors.ts";
import type { Store } from "../ports/store.ts";
import { options } from "./embedded-store.fixture.ts";
import { openStore } from "../open-store.ts";

// Lists of events of the largest size: together they must stay within the memory limit for answers.

const EVENT_CHARACTERS = 1_000_000;
const EVENTS = Math.ceil(responseCharactersMax() / EVENT_CHARACTERS) + 2;
const now = Date.now();
let dataDir: string;
let store: Store;
/** Newest first. */
let ids: string[];

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "tocsin-answers-"));
  store = await openStore(options(dataDir));
  ids = [];
  for (let n = 0; n < EVENTS; n++) {
    // On two days, so that a page crosses midnight in the middle of a chunk.
    const timestampMs = n < EVENTS - 3 ? now - DAY_MS : now;
    const raw = { line: `${n} `.repeat(EVENT_CHARACTERS).slice(0, EVENT_CHARACTERS) };
    const draft = { type: "large", source: "custom", severity: "info", class: "security", timestampMs, raw } as const;
    const [stored] = await store.events.append([{ draft: { ...draft, enrichment: {} } }]);
    ids.unshift(stored!.id);
  }
});

afterAll(async () => {
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const list = (filter: { type?: string }, page: number, size: number) =>
  store.events.list(filter, { mode: "page", page, size });
const idOf = (text: string) => (JSON.parse(text) as { id: string }).id;

test.each([[{}], [{ type: "large" }]])("a page of large events has all of them in order: %j", async (filter) => {
  const { items, total } = await list(filter, 1, 8);
  expect(items.map(idOf)).toEqual(ids.slice(0, 8));
  expect(total).toBe(EVENTS);
  expect((await list(filter, 2, 5)).items.map(idOf)).toEqual(ids.slice(5, 10));
  const { items: after } = await store.events.list(filter, { mode: "cursor", after: ids[1]!, size: 4 });
  expect(after.map(idOf)).toEqual(ids.slice(2, 6));
});

test.each([[{}], [{ type: "large" }]])("an answer over the size limit is refused with a reason: %j", async (filter) => {
  const refused = list(filter, 1, EVENTS);
  await expect(refused).rejects.toThrow(QueryRefused);
  await expect(refused).rejects.toThrow(/the answer would be larger than \d+ characters: request fewer/);
});

test("concurrent large answers over the memory limit are refused for now, and the next query is answered", async () => {
  const size = Math.floor(responseCharactersMax() / EVENT_CHARACTERS) - 1;
  const atOnce = 3 * Math.ceil(responsesCharactersMax() / (size * EVENT_CHARACTERS));
  const settled = await Promise.allSettled(Array.from({ length: atOnce }, () => list({}, 1, size)));
  const refusals = settled.flatMap((answer) => (answer.status === "rejected" ? [answer.reason as unknown] : []));
  expect(refusals.length).toBeGreaterThan(0);
  for (const refusal of refusals) {
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(refusal).toMatchObject({ reason: "queue_full", message: expect.stringMatching(/too many large answers/) });
  }
  expect((await list({}, 1, 3)).items.map(idOf)).toEqual(ids.slice(0, 3));
});
