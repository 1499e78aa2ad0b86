import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWithPostgres, testDatabase } from "../../../test/cluster/test-database.ts";
import { OpenedParts } from "../../lib/opened-parts.ts";
import { DAY_MS } from "../../lib/time.ts";
import type { SharedUsage } from "../ports/key-store.ts";
import { openPostgresCases } from "./postgres-cases.ts";
import { postgresSettings } from "./postgres-store.fixture.ts";

const NOON = Date.UTC(2026, 10, 16, 12);
const LIMITS = { perMinute: 50, perDay: 70 };

describeWithPostgres("requests that two nodes count", () => {
  const opened = new OpenedParts();
  let here: SharedUsage;
  let there: SharedUsage;

  beforeAll(async () => {
    const settings = postgresSettings(await testDatabase());
    const log = pino({ level: "silent" });
    const open = async () =>
      (await openPostgresCases({ settings, registry: new Registry(), log }, opened)).keys.shared!;
    [here, there] = await Promise.all([open(), open()]);
  });
  afterAll(() => opened.close());

  test("are never more than the limit, whoever asks at once and whatever their clocks say within seconds", async () => {
    const first = await here.take("key_many", 1, LIMITS, NOON + 2000);
    const takes = Array.from({ length: 80 }, (_, i) =>
      [here, there][i % 2]!.take("key_many", 1, LIMITS, NOON + ((i * 37) % 2000)),
    );
    const granted = (await Promise.all(takes)).reduce((sum, taken) => sum + taken.granted, first.granted);
    expect(granted).toBe(LIMITS.perMinute);
    expect(await there.find("key_many")).toMatchObject({ minuteCount: 50, dayCount: 50 });
  });

  test("begin anew when the minute and the day are over; the day limits what the minute has left", async () => {
    expect(await here.take("key_many", 5, LIMITS, NOON + 20_000)).toMatchObject({ granted: 0, minuteCount: 50 });
    const next = await there.take("key_many", 30, LIMITS, NOON + 70_000);
    expect(next).toMatchObject({ granted: 20, minuteCount: 20, dayCount: 70, minuteEndsAt: NOON + 130_000 });
    expect(await here.take("key_many", 1, LIMITS, NOON + 200_000)).toMatchObject({ granted: 0 });
    const midnight = NOON + DAY_MS / 2;
    expect(await here.take("key_many", 1, LIMITS, midnight)).toMatchObject({ granted: 1, dayCount: 1, day: midnight });
    const slow = await there.take("key_many", 1, LIMITS, midnight - 300);
    expect(slow, "a clock that is a little behind").toMatchObject({ granted: 1, dayCount: 2, day: midnight });
    const unlimited = { perMinute: 10, perDay: null };
    expect(await here.take("key_other", 99, unlimited, NOON)).toMatchObject({ granted: 10 });
  });

  test("a minute that a clock far ahead began does not last", async () => {
    await here.take("key_ahead", 50, LIMITS, NOON + 3_600_000);
    expect(await there.take("key_ahead", 1, LIMITS, NOON)).toMatchObject({ granted: 1, minuteEndsAt: NOON + 60_000 });
  });

  test("that were not made are given back to their windows", async () => {
    const taken = await here.take("key_back", 10, LIMITS, NOON);
    await here.giveBack([{ ...taken, count: 4, lastUsedAt: NOON + 5 }]);
    expect(await there.find("key_back")).toMatchObject({ minuteCount: 6, dayCount: 6, lastUsedAt: NOON + 5 });
    const later = await there.take("key_back", 1, LIMITS, NOON + 90_000);
    await here.giveBack([{ ...taken, count: 3, lastUsedAt: NOON }]);
    expect(await here.find("key_back"), "of a minute that is over").toMatchObject({
      minuteCount: later.minuteCount,
      dayCount: 4,
      lastUsedAt: NOON + 90_000,
    });
  });
});
