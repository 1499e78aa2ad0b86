import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import type { EventDraft } from "../../model/event.ts";
import type { Arrival } from "../ports/event-engine.ts";
import { openEventsUnderTest, withEventEngines, type EventsUnderTest } from "./opensearch-events.fixture.ts";

const HOUR_MS = 3_600_000;
const DAY = startOfDay(Date.UTC(2026, 3, 20));

const draft = (timestampMs: number): EventDraft => ({
  type: "arrived",
  source: "custom",
  severity: "info",
  class: "security",
  timestampMs,
  raw: {},
  enrichment: {},
});

await withEventEngines("arrivals of events in OpenSearch", (url) => {
  let node: EventsUnderTest;
  let other: EventsUnderTest;

  beforeAll(async () => {
    node = await openEventsUnderTest(url, { shards: 3 });
    const { prefix, database } = node;
    other = await openEventsUnderTest(url, { shards: 3, prefix, database, isFollower: true });
  });
  afterAll(async () => {
    await other.close();
    await node.end();
  });

  const append = async ({ events }: EventsUnderTest, ...times: number[]) =>
    (await events.append(times.map((time) => ({ draft: draft(time) })))).map(({ id }) => id);
  const follow = async ({ events }: EventsUnderTest, after: string | null, upTo: string): Promise<Arrival[]> => {
    const found: Arrival[] = [];
    const stop = new AbortController();
    for await (const chunk of events.arrivals(after, stop.signal)) {
      found.push(...chunk);
      if (chunk.at(-1)!.place >= upTo) stop.abort();
    }
    return found;
  };

  test("come once each and in one order on every node, while two nodes store and amend", async () => {
    const stored: string[] = [];
    const live: Arrival[] = [];
    const stop = new AbortController();
    const following = (async () => {
      for await (const chunk of other.events.arrivals(null, stop.signal)) live.push(...chunk);
    })();
    await Promise.all(
      [node, other].map(async (writer, nth) => {
        for (let round = 0; round < 12; round++) {
          const ids = await append(writer, ...Array.from({ length: 15 }, (_, i) => DAY + ((i + nth) % 3) * DAY_MS));
          stored.push(...ids);
          // Each is amended once or twice, by both nodes.
          await Promise.all(
            [node, other].map(({ events }, by) =>
              events.amend(
                ids.filter((_, i) => i % (2 + by) === 0).map((id) => ({ id, enrichment: { [`by${by}`]: round } })),
              ),
            ),
          );
        }
      }),
    );
    const last = (await other.events.lastArrival())!;
    expect(await node.events.lastArrival()).toBe(last);
    const [here, there] = await Promise.all([node, other].map((reader) => follow(reader, null, last)));
    expect(here!.map(({ id }) => id).sort()).toEqual(stored.sort());
    expect(there).toEqual(here);
    expect(here!.at(-1)!.place).toBe(last);
    // Who reads while they come sees the same, though not yet every amendment.
    await expect.poll(() => live.at(-1)?.place).toBe(last);
    stop.abort();
    await following;
    expect(live.map(({ place, id }) => [place, id])).toEqual(here!.map(({ place, id }) => [place, id]));
    for (const by of ["by0", "by1"]) expect(here!.some(({ text }) => text.includes(by))).toBe(true);
  });

  test("of a day that was removed and restored from a snapshot are only those that came since", async ({ skip }) => {
    const day = DAY - 30 * DAY_MS;
    const own = await openEventsUnderTest(url, { shards: 2 });
    const { prefix, database } = own;
    const send = (method: "PUT" | "POST" | "DELETE", path: string, body?: object) =>
      node.client.send({ operation: "test" }, { method, path, ...(body && { body }) });
    const repository = `/_snapshot/${prefix}`;
    const kept = await fetch(`${url}${repository}`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ type: "fs", settings: { location: prefix } }),
    });
    if (!kept.ok) skip("this OpenSearch has no path.repo for snapshots");
    await append(own, ...Array.from({ length: 20 }, () => day));
    const before = (await own.events.lastArrival())!;
    const between = await append(own, day, day);
    // As a backup has it: the cases first, then events that have arrived since.
    await send("PUT", `${repository}/one?wait_for_completion=true`, { indices: `${prefix}-events-*` });
    await own.close();
    await send("DELETE", `/${prefix}-events-*`);
    await send("POST", `${repository}/one/_restore?wait_for_completion=true`, { include_global_state: false });
    const again = await openEventsUnderTest(url, { shards: 2, prefix, database });
    const since = await append(again, day, day);
    const last = (await again.events.lastArrival())!;
    const arrived = (await follow(again, before, last)).map(({ id }) => id);
    expect(arrived.sort()).toEqual([...between, ...since].sort());
    await send("DELETE", `${repository}/one`);
    await send("DELETE", repository);
    await again.end();
  });

  test("of a day that was removed and begun again are only those of the new one", async () => {
    const before = await node.events.lastArrival();
    // So many that each shard has some.
    const times = Array.from({ length: 40 }, () => DAY - 10 * DAY_MS);
    await append(node, ...times);
    await node.events.lastArrival();
    await node.events.removeBefore(DAY - 9 * DAY_MS);
    const late = await append(other, ...times);
    const last = (await node.events.lastArrival())!;
    const arrived = await follow(other, before, last);
    expect(arrived.map(({ id }) => id).sort()).toEqual(late.sort());
  });

  test("of a day that was closed meanwhile do not come again", async () => {
    const day = DAY - 20 * DAY_MS;
    const own = await openEventsUnderTest(url);
    const { prefix, database } = own;
    await append(own, day, day);
    await own.events.lastArrival();
    await own.client.send({ operation: "test" }, { method: "POST", path: `/${prefix}-events-*/_close` });
    await own.close();
    // A node that begins with the order of arrival forgets the days that are gone; the next one knows only what is stored.
    const between = await openEventsUnderTest(url, { prefix, database });
    await append(between, DAY);
    const before = await between.events.lastArrival();
    await between.close();
    const again = await openEventsUnderTest(url, { prefix, database });
    const reopen = {
      method: "POST",
      path: `/${prefix}-events-*/_open`,
      query: { expand_wildcards: "closed" },
    } as const;
    await again.client.send({ operation: "test" }, reopen);
    const [late] = await append(again, day);
    const arrived = await follow(again, before, (await again.events.lastArrival())!);
    expect(arrived.map(({ id }) => id)).toEqual([late]);
    await again.end();
  });

  test("rise although the clocks of the nodes are an hour apart", async () => {
    const fast = await openEventsUnderTest(url, { now: () => Date.now() + HOUR_MS });
    const { prefix, database } = fast;
    const slow = await openEventsUnderTest(url, {
      prefix,
      database,
      isFollower: true,
      now: () => Date.now() - HOUR_MS,
    });
    const ids: string[] = [];
    for (const writer of [fast, slow, fast, slow]) {
      ids.push(...(await append(writer, DAY)));
      await writer.events.lastArrival();
    }
    const token = [{ draft: draft(DAY), idempotencyToken: "both" }];
    const [[here], [there]] = [await fast.events.append(token), await slow.events.append(token)];
    expect(there).toEqual(here);
    ids.push(here!.id);
    await fast.events.lastArrival();
    // The node with the slow clock goes on.
    await fast.close();
    const next = await openEventsUnderTest(url, { prefix, database, now: () => Date.now() - HOUR_MS });
    ids.push(...(await append(slow, DAY)));
    const last = (await slow.events.lastArrival())!;
    const arrived = await follow(slow, null, last);
    expect(arrived.map(({ id }) => id)).toEqual(ids);
    expect(new Set(ids).size).toBe(6);
    const places = arrived.map(({ place }) => place);
    expect(places).toEqual(places.toSorted());
    await slow.close();
    await next.end();
  });
});
