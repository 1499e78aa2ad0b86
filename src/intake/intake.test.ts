import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLog } from "../lib/log.ts";
import { openStore } from "../store/open-store.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import {
  CHUNK_BYTES_MAX,
  CHUNK_EVENTS_MAX,
  openIntake,
  PENDING_EVENTS_MAX,
  UNSTORED_BYTES_MAX,
  type Intake,
} from "./intake.ts";

const item = (n: number) => ({ type: "counted", source: "custom", data: { n } });
const items = (count: number) => Array.from({ length: count }, (_, n) => ({ value: item(n) }));

let dataDir: string;
let store: Store;
let registry: Registry;
let intake: Intake;
/** Appends wait until it is opened. */
let gate: { opened: Promise<void>; open: () => void };

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "tocsin-intake-"));
  registry = new Registry();
  const log = createLog({ level: "silent" });
  store = await openStore({ dataDir, platform: "platform", indexPrefix: "tocsin", registry, log });
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = { opened: promise, open: resolve };
  const slow = Object.assign(Object.create(store.events) as Store["events"], {
    append: async (events: Parameters<Store["events"]["append"]>[0]) => {
      await gate.opened;
      return store.events.append(events);
    },
    findByToken: (token: string) => store.events.findByToken(token),
  });
  intake = openIntake({ store: { ...store, events: slow }, registry, retentionDays: 30 });
});
afterEach(async () => {
  gate.open();
  await intake.close();
  await store.close();
  await rm(dataDir, { recursive: true });
});

const figure = async (name: string) => {
  const text = await registry.getSingleMetricAsString(name);
  return text.split("\n").filter((line) => !line.startsWith("#") && line !== "");
};

describe("the intake", () => {
  test("stores internal events once, however often they are repeated", async () => {
    gate.open();
    const draft = {
      type: "flow_summary",
      source: "platform_network",
      severity: "info",
      class: "network",
      timestampMs: Date.now(),
      raw: {},
      enrichment: {},
    } as const;
    const events = ["a", "b"].map((token) => ({ draft, idempotencyToken: token }));
    await intake.storeInternal(events);
    await intake.storeInternal([...events, { draft, idempotencyToken: "c" }]);
    expect(await store.events.count()).toBe(3);
  });

  test("limits pending events, counts refused ones, and accepts events again once the store has caught up", async () => {
    const full = Promise.all(
      Array.from({ length: PENDING_EVENTS_MAX / (10 * CHUNK_EVENTS_MAX) }, () =>
        intake.submitMany(items(10 * CHUNK_EVENTS_MAX)),
      ),
    );
    // Chunks are stored turn by turn.
    while ((await figure("tocsin_intake_waiting"))[0] !== `tocsin_intake_waiting ${PENDING_EVENTS_MAX}`) {
      await new Promise(setImmediate);
    }
    await expect(intake.submit({ value: item(0) })).rejects.toThrow(StoreUnavailable);
    const refused = await intake.submitMany(items(3));
    expect(refused).toMatchObject({ ids: [], refusal: { reason: "queue_full" } });
    expect(refused.rejected.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(await figure("tocsin_intake_refused_total")).toEqual(['tocsin_intake_refused_total{reason="queue_full"} 4']);
    gate.open();
    const outcomes = await full;
    const stored = outcomes.reduce((sum, { ids }) => sum + ids.length, 0);
    expect(stored + outcomes.reduce((sum, { rejected }) => sum + rejected.length, 0)).toBe(PENDING_EVENTS_MAX);
    expect(await store.events.count()).toBe(stored);
    expect((await intake.submit({ value: item(1) })).kind).toBe("stored");
    expect(await figure("tocsin_intake_waiting")).toEqual(["tocsin_intake_waiting 0"]);
  });

  test("yields to other requests between large submissions of one batch, and stores each in its own chunk", async () => {
    gate.open();
    let turns = 0;
    const count = () => {
      turns++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    /** The turn of the event loop in which each submission was read. */
    const asked: number[] = [];
    function* given(sizeBytes: number) {
      asked.length = 0;
      for (let n = 0; n < 12; n++) {
        asked.push(turns);
        yield { value: item(n), sizeBytes };
      }
    }
    expect((await intake.submitMany(given(CHUNK_BYTES_MAX))).ids).toHaveLength(12);
    // Two turns each: one after reading, one after storing.
    for (const [n, turn] of asked.entries()) expect(turn - asked[0]!).toBeGreaterThanOrEqual(2 * n);
    expect((await intake.submitMany(given(CHUNK_BYTES_MAX / 3))).ids).toHaveLength(12);
    expect(new Set(asked).size).toBe(4);
    expect((await intake.submitMany(given(100))).ids).toHaveLength(12);
    expect(new Set(asked).size).toBe(1);
    clearImmediate(counting);
  });

  test("reads no more of a large batch than some megabytes ahead of the store, and lets other batches in meanwhile", async () => {
    let asked = 0;
    function* large() {
      for (let n = 0; n < 100; n++, asked++) yield { value: item(n), sizeBytes: CHUNK_BYTES_MAX };
    }
    const aheadMax = UNSTORED_BYTES_MAX / CHUNK_BYTES_MAX;
    const batch = intake.submitMany(large());
    const other = intake.submitMany(items(3));
    await vi.waitFor(() => expect(asked).toBe(aheadMax - 1));
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    expect(asked).toBe(aheadMax - 1);
    gate.open();
    expect((await other).ids).toHaveLength(3);
    const { ids, rejected } = await batch;
    expect([ids.length, rejected]).toEqual([100, []]);
  });

  test("closes once all accepted events are stored", async () => {
    const submitted = intake.submit({ value: item(1) }, "token");
    const batch = intake.submitMany(items(2));
    let closed = false;
    const closing = (async () => {
      await intake.close();
      closed = true;
    })();
    await new Promise(setImmediate);
    expect(closed).toBe(false);
    gate.open();
    await closing;
    expect(await store.events.count()).toBe(3);
    expect([(await submitted).kind, (await batch).ids.length]).toEqual(["stored", 2]);
  });

  test("does not keep the token of a failed submission", async () => {
    const broken = openIntake({
      store: {
        ...store,
        events: Object.assign(Object.create(store.events) as Store["events"], {
          append: () => Promise.reject(new StoreUnavailable("disk_full", "no room")),
          findByToken: (token: string) => store.events.findByToken(token),
        }),
      },
      registry: new Registry(),
      retentionDays: 30,
    });
    const both = await Promise.allSettled([
      broken.submit({ value: item(1) }, "t"),
      broken.submit({ value: item(2) }, "t"),
    ]);
    expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    gate.open();
    expect(await intake.submit({ value: item(3) }, "t")).toMatchObject({ kind: "stored", replayed: false });
    expect(await intake.submit({ value: item(4) }, "t")).toMatchObject({ kind: "stored", replayed: true });
  });
});
