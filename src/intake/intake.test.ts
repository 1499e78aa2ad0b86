import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../lib/log.ts";
import { openStore } from "../store/index.ts";
import { StoreUnavailable, type Store } from "../store/store.ts";
import { CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX, openIntake, WAITING_EVENTS_MAX, type Intake } from "./intake.ts";

const item = (n: number) => ({ type: "counted", source: "custom", data: { n } });
const items = (count: number) => Array.from({ length: count }, (_, n) => ({ value: item(n) }));

let dataDir: string;
let store: Store;
let registry: Registry;
let intake: Intake;
/** While it is closed, what is appended waits. */
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
  test("takes what other parts make once, however often they say it", async () => {
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
    const said = ["a", "b"].map((token) => ({ draft, idempotencyToken: token }));
    await intake.take(said);
    await intake.take([...said, { draft, idempotencyToken: "c" }]);
    expect(await store.events.count()).toBe(3);
  });

  test("lets in no more than it can hold, counts what it turns away, and has room again once the store has caught up", async () => {
    const full = Promise.all(
      Array.from({ length: WAITING_EVENTS_MAX / (10 * CHUNK_EVENTS_MAX) }, () =>
        intake.submitMany(items(10 * CHUNK_EVENTS_MAX)),
      ),
    );
    // The chunks are handed over turn by turn.
    while ((await figure("tocsin_intake_waiting"))[0] !== `tocsin_intake_waiting ${WAITING_EVENTS_MAX}`) {
      await new Promise(setImmediate);
    }
    await expect(intake.submit({ value: item(0) })).rejects.toThrow(StoreUnavailable);
    const turnedAway = await intake.submitMany(items(3));
    expect(turnedAway).toMatchObject({ ids: [], refusal: { reason: "queue_full" } });
    expect(turnedAway.rejected.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(await figure("tocsin_intake_refused_total")).toEqual(['tocsin_intake_refused_total{reason="queue_full"} 4']);
    gate.open();
    const outcomes = await full;
    const stored = outcomes.reduce((sum, { ids }) => sum + ids.length, 0);
    expect(stored + outcomes.reduce((sum, { rejected }) => sum + rejected.length, 0)).toBe(WAITING_EVENTS_MAX);
    expect(await store.events.count()).toBe(stored);
    expect((await intake.submit({ value: item(1) })).kind).toBe("stored");
    expect(await figure("tocsin_intake_waiting")).toEqual(["tocsin_intake_waiting 0"]);
  });

  test("lets others have their turn between large submissions of one batch, and stores none of them with others", async () => {
    gate.open();
    let turns = 0;
    const count = () => {
      turns++;
      counting = setImmediate(count);
    };
    let counting = setImmediate(count);
    /** The turn of the loop in which each submission was asked for. */
    const asked: number[] = [];
    function* given(sizeBytes: number) {
      asked.length = 0;
      for (let n = 0; n < 12; n++) {
        asked.push(turns);
        yield { value: item(n), sizeBytes };
      }
    }
    expect((await intake.submitMany(given(CHUNK_BYTES_MAX))).ids).toHaveLength(12);
    // Two turns for each: one after it was read, one after it was handed over.
    for (const [n, turn] of asked.entries()) expect(turn - asked[0]!).toBeGreaterThanOrEqual(2 * n);
    expect((await intake.submitMany(given(CHUNK_BYTES_MAX / 3))).ids).toHaveLength(12);
    expect(new Set(asked).size).toBe(4);
    expect((await intake.submitMany(given(100))).ids).toHaveLength(12);
    expect(new Set(asked).size).toBe(1);
    clearImmediate(counting);
  });

  test("closes once everything that it let in is stored", async () => {
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

  test("forgets a token whose submission failed: the next one with it is the first", async () => {
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
