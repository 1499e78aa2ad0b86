import { describe, expect, test } from "vitest";
import { alertServer, fieldsOf } from "../../test/alert-server.ts";

const { clock, current, raise, post, get } = alertServer();

const workOf = ({ status, assignee, resolution, actions_taken, tags, acknowledged_at, resolved_at }: any) => ({
  status,
  assignee,
  resolution,
  actions_taken,
  tags,
  acknowledged_at,
  resolved_at,
});
const states = async (ids: readonly string[]) => Promise.all(ids.map(async (id) => workOf(await get(id))));
const change = async (ids: readonly string[], body: object) => {
  clock.ms += 1000;
  const answer = await post("bulk", { alert_ids: ids, ...body });
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data;
};
const undo = (id: string, key?: string) => post("bulk/undo", { undo_id: id }, key);

/** An open alert, one in hand with assignee and tags, and a resolved one. */
async function mixture(): Promise<string[]> {
  const [open, inHand, resolved] = [await raise(), await raise(), await raise()];
  await post(`${inHand}/acknowledge`, { assignee: "anna@example.com" });
  await post("bulk", { alert_ids: [inHand], action: "tag", tags: ["night", "vip"] });
  await post(`${resolved}/acknowledge`, { assignee: "ben@example.com" });
  await post(`${resolved}/resolve`, { resolution: "true_positive", actions_taken: ["locked the account"] });
  return [open, inHand, resolved];
}

describe("taking back a change of many alerts", () => {
  test.each<[string, object]>([
    ["acknowledge", { assignee: "carl@example.com", comment: "mine" }],
    ["resolve", { resolution: "benign", comment: "a drill" }],
    ["reopen", {}],
    ["assign", { assignee: "carl@example.com" }],
    ["assign", { assignee: null }],
    ["tag", { tags: ["vip", "guest"] }],
    ["untag", { tags: ["vip"] }],
  ])("%s %j restores everything that it changed", async (action, more) => {
    const ids = await mixture();
    const before = await states(ids);
    const done = await change(ids, { action, ...more });
    expect(done.undo_id).toMatch(/^undo_/);
    expect(await states(ids)).not.toEqual(before);
    const commented = done.succeeded.filter(() => "comment" in more);
    const answer = await undo(done.undo_id);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ failed: [], remaining: 0, undo_id: null });
    expect(await states(ids)).toEqual(before);
    for (const id of commented) {
      const kinds = (await get(id)).timeline.map(({ kind }: any) => kind);
      expect(kinds, "comments stay").toContain("commented");
    }
    // Once only.
    expect((await undo(done.undo_id)).status).toBe(404);
  });

  test("leaves an alert alone that somebody has changed since", async () => {
    const [first, second, third] = [await raise(), await raise(), await raise()];
    const done = await change([first, second, third], { action: "resolve", resolution: "duplicate" });
    clock.ms += 1000;
    // Resolved again, in the same words: it is somebody's decision all the same.
    await post(`${second}/reopen`);
    await post(`${second}/resolve`, { resolution: "duplicate" });
    const other = await get(second);
    // A comment is no change of what is taken back.
    await post(`${third}/comments`, { body: "sure?" });
    const { data } = (await undo(done.undo_id)).body;
    expect(data).toMatchObject({ matched: 3, succeeded_count: 2, failed_count: 1, succeeded: [first, third] });
    expect(data.failed).toEqual([
      { id: second, error: { code: "conflict", message: `alert ${second} has been changed since and stays as it is` } },
    ]);
    expect(workOf(await get(second))).toEqual(workOf(other));
    expect((await states([first, third])).map(({ status }) => status)).toEqual(["open", "open"]);
  });

  test("says in the timeline what happened, in known words", async () => {
    const [, inHand] = await mixture();
    const done = await change([inHand!], { action: "resolve", resolution: "benign" });
    await undo(done.undo_id);
    const kinds = (await get(inHand!)).timeline.map(({ kind }: any) => kind);
    expect(kinds).toEqual(["created", "acknowledged", "tagged", "resolved", "reopened", "acknowledged"]);
  });

  test("is for the key that made the change, and for a while", async () => {
    const id = await raise();
    const done = await change([id], { action: "acknowledge" });
    const { secret } = await current.server.addKey({ scopes: ["alerts:write"] });
    expect((await undo(done.undo_id, secret)).status).toBe(404);
    const reader = await current.server.addKey({ scopes: ["alerts:read"] });
    expect((await undo(done.undo_id, reader.secret)).status).toBe(403);
    clock.ms += 11 * 60_000;
    expect((await undo(done.undo_id)).status).toBe(404);
    expect(await get(id)).toMatchObject({ status: "acknowledged" });
  });

  test("has no id where nothing can be taken back", async () => {
    const id = await raise();
    expect((await change([id], { action: "comment", comment: "seen" })).undo_id).toBeNull();
    expect((await change([id], { action: "untag", tags: ["none"] })).undo_id).toBeNull();
    expect((await change([id], { action: "reopen" })).undo_id).toBeNull();
    expect((await change([id], { action: "acknowledge", dry_run: true })).undo_id).toBeNull();
  });

  test("refuses what is no request", async () => {
    const answer = await post("bulk/undo", { id: "x" });
    expect([answer.status, fieldsOf(answer)]).toEqual([400, ["undo_id", "id"]]);
  });
});

describe("taking back a change of one alert", () => {
  test.each<[string, object]>([
    ["acknowledge", { assignee: "carl@example.com" }],
    ["resolve", { resolution: "benign", actions_taken: ["asked her"], comment: "a drill" }],
    ["assign", { assignee: null }],
  ])("%s %j restores what it changed, unless somebody has changed the alert since", async (action, body) => {
    const [, inHand] = await mixture();
    const before = workOf(await get(inHand!));
    const work = async () => {
      clock.ms += 1000;
      const answer = await post(`${inHand}/${action}`, body);
      expect(answer.status, answer.text).toBe(200);
      return answer.body.meta.undo_id as string;
    };
    expect((await undo(await work())).body.data).toMatchObject({ succeeded: [inHand], failed: [] });
    expect(workOf(await get(inHand!))).toEqual(before);
    const id = await work();
    clock.ms += 1000;
    await post(`${inHand}/assign`, { assignee: "dora@example.com" });
    const { data } = (await undo(id)).body;
    expect(data).toMatchObject({ succeeded: [], failed: [{ error: { code: "conflict" } }] });
    expect(await get(inHand!)).toMatchObject({ assignee: "dora@example.com" });
  });

  test("has no id where nothing was changed", async () => {
    const id = await raise();
    expect((await post(`${id}/comments`, { body: "seen" })).body.meta).not.toHaveProperty("undo_id");
    expect((await post(`${id}/assign`, { assignee: null })).body.meta).not.toHaveProperty("undo_id");
  });
});
