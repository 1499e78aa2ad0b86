import { expect, test } from "vitest";
import { alertServer } from "../../test/alert-server.ts";
import { DAY_MS } from "../lib/time.ts";

const { clock, current, raise, post } = alertServer();

test("alerts resolved longer ago than retention.alerts_days are removed at start from every response; unresolved ones stay", async () => {
  const start = clock.ms;
  const [gone, open, young] = [await raise(), await raise(), await raise()];
  await post(`${gone}/comments`, { body: "seen" });
  await post(`${gone}/resolve`, { resolution: "benign" });
  clock.ms = start + 2 * DAY_MS;
  await post(`${young}/resolve`, { resolution: "benign" });
  clock.ms = start + 731 * DAY_MS;
  // Such a long stop cannot be distinguished from a wrong clock.
  await current.server.store.retention.save({ confirmedAt: clock.ms });
  const site = (current.server = await current.server.restart());
  const status = async (id: string) => (await site.call("GET", `/v1/alerts/${id}`)).status;
  await expect.poll(() => status(gone)).toBe(404);
  expect([await status(open), await status(young)]).toEqual([200, 200]);
  const list = (await site.call("GET", "/v1/alerts?search=passwords")).body;
  expect(list.data.map(({ id }: { id: string }) => id).sort()).toEqual([open, young].sort());
  expect(list.pagination.total).toBe(2);
  const from = encodeURIComponent(new Date(start - DAY_MS).toISOString());
  const stats = (await site.call("GET", `/v1/alerts/stats?from=${from}`)).body.data;
  expect(stats).toMatchObject({ total: 2, by_status: { open: 1, acknowledged: 0, resolved: 1 } });
  for (const [path, body] of [
    ["reopen", undefined],
    ["comments", { body: "late" }],
    ["analyze", undefined],
  ] as const) {
    expect((await post(`${gone}/${path}`, body)).status, path).toBe(404);
  }
  expect((await site.call("GET", "/metrics")).text).toMatch(/^tocsin_alerts_removed_total 1$/m);
  expect(site.log.filter(({ msg }) => msg === "old alerts removed")).toMatchObject([{ alerts: 1 }]);
});
