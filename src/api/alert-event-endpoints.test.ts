import { expect, test } from "vitest";
import { alertServer, fieldsOf } from "../../test/alert-server.ts";

const { clock, current, raise } = alertServer();

const submit = (count: number) =>
  current.server.store.events.append(
    Array.from({ length: count }, (_, i) => ({
      draft: {
        type: "listed",
        source: "custom",
        class: "security" as const,
        severity: "low" as const,
        timestampMs: clock.ms + i * 1000,
        raw: { i },
        enrichment: {},
      },
    })),
  );
const list = (id: string, query = "") => current.server.call("GET", `/v1/alerts/${id}/events${query}`);

test("all events of an alert are listed, also those beyond the newest 50", async () => {
  const ids = (await submit(120)).map(({ id }) => id);
  const marks = ids.map((id, i) => ({ id, timestampMs: clock.ms + i * 1000 }));
  const same = { name: "test.many", dedupKey: '["many"]' };
  let id = "";
  for (let from = 0; from < 120; from += 40) {
    const events = marks.slice(from, from + 40).toReversed();
    const span = { firstEventMs: events.at(-1)!.timestampMs, lastEventMs: events[0]!.timestampMs };
    id = await raise({ ...same, ...span, events, eventCount: 40 });
  }
  const first = await list(id, "?limit=100");
  expect(first.status, first.text).toBe(200);
  const idsOf = (answer: { body: any }) => answer.body.data.map((event: { id: string }) => event.id);
  expect(idsOf(first)).toEqual(ids.toReversed().slice(0, 100));
  const { next_cursor: after, ...pagination } = first.body.pagination;
  expect(pagination).toEqual({ total: 120, page: 1, per_page: 100, total_pages: 2, events_total: 120 });
  const second = await list(id, `?limit=100&after=${after}`);
  expect(idsOf(second)).toEqual(ids.toReversed().slice(100));
  expect(second.body.pagination.next_cursor).toBeNull();
  expect(idsOf(await list(id, "?order=asc&limit=3"))).toEqual(ids.slice(0, 3));
  const detail = await current.server.call("GET", `/v1/alerts/${id}`);
  expect(detail.body.data.related_events).toHaveLength(50);
});

test("the number of all events is told where not all can be listed", async () => {
  const [event] = await submit(1);
  const id = await raise({
    eventCount: 70,
    events: [
      { id: event!.id, timestampMs: clock.ms },
      { id: "evt_gone", timestampMs: 1 },
    ],
  });
  const { data, pagination } = (await list(id)).body;
  expect(data.map(({ id: each }: { id: string }) => each)).toEqual([event!.id]);
  expect(pagination).toMatchObject({ total: 2, events_total: 70 });
});

test("an unknown alert, an unknown cursor and unknown parameters are refused", async () => {
  expect((await list("alt_0")).status).toBe(404);
  const id = await raise();
  expect(fieldsOf(await list(id, "?after=evt_0"))).toEqual(["after"]);
  expect(fieldsOf(await list(id, "?page=1&limit=0"))).toEqual(["limit", "page"]);
});
