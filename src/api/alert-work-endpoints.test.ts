import { describe, expect, test } from "vitest";
import { alertServer, faultsOf, fieldsOf } from "../../test/alert-server.ts";
import { ALERT_TAGS_MAX } from "../model/alert-tags.ts";

const { current, raise, post, get } = alertServer();

const kinds = (alert: any) => alert.timeline.map(({ kind }: { kind: string }) => kind);
const tagsCall = (method: "PUT" | "PATCH", id: string, body: unknown) =>
  current.server.call(method, `/v1/alerts/${id}/tags`, { body });
const found = async (query: string) => {
  const answer = await current.server.call("GET", `/v1/alerts?${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.data.map(({ id }: { id: string }) => id);
};

describe("tags", () => {
  test("are set, added and removed, normalised, and on the timeline", async () => {
    const id = await raise();
    const set = await tagsCall("PUT", id, { tags: [" VIP ", "Guest  Network", "vip"] });
    expect(set.status, set.text).toBe(200);
    expect(set.body.data.tags).toEqual(["guest-network", "vip"]);
    const changed = await tagsCall("PATCH", id, { add: ["Zürich", "vip"], remove: ["guest-network", "unknown"] });
    expect(changed.body.data.tags).toEqual(["vip", "zürich"]);
    // Nothing new: no entry.
    await tagsCall("PATCH", id, { add: ["vip"] });
    const alert = await get(id);
    expect(alert.status).toBe("open");
    expect(alert.rule.tags).toEqual(["attack.t1110"]);
    expect(alert.timeline.slice(1)).toMatchObject([
      { kind: "tagged", actor: "test", added: ["guest-network", "vip"], removed: [] },
      { kind: "tagged", actor: "test", added: ["zürich"], removed: ["guest-network"] },
    ]);
  });

  test("find alerts, by filter and by search", async () => {
    const [both, one] = [await raise(), await raise()];
    await tagsCall("PUT", both, { tags: ["find-a", "find-b"] });
    await tagsCall("PUT", one, { tags: ["find-a"] });
    await raise();
    expect(await found("tag=find-a")).toEqual([one, both]);
    expect(await found("tag=FIND-B,unknown")).toEqual([both]);
    expect(await found("tag=unknown")).toEqual([]);
    expect(await found("search=find-b")).toEqual([both]);
    await tagsCall("PUT", both, { tags: [] });
    expect(await found("tag=find-b")).toEqual([]);
    expect(await found("search=find-b")).toEqual([]);
  });

  test("have limits and an alphabet", async () => {
    const id = await raise();
    const tags = Array.from({ length: ALERT_TAGS_MAX }, (_, i) => `tag-${i}`);
    expect(fieldsOf(await tagsCall("PUT", id, { tags: [...tags, "more"] }))).toEqual(["tags"]);
    const wrong = await tagsCall("PUT", id, { tags: ["a,b", "", "x".repeat(51), "<b>", "-a"] });
    expect(fieldsOf(wrong)).toEqual(["tags[0]", "tags[1]", "tags[2]", "tags[3]", "tags[4]"]);
    expect((await tagsCall("PUT", id, { tags })).status).toBe(200);
    const full = await tagsCall("PATCH", id, { add: ["more"] });
    expect([full.status, full.body.error.message]).toEqual([
      409,
      `alert ${id} would have ${ALERT_TAGS_MAX + 1} tags; the maximum is ${ALERT_TAGS_MAX}`,
    ]);
    expect((await tagsCall("PATCH", id, { add: ["more"], remove: ["tag-0"] })).status).toBe(200);
    expect(faultsOf(await tagsCall("PATCH", id, {}))[0]!.message).toBe("needs add or remove");
    expect(fieldsOf(await tagsCall("PATCH", id, { add: ["new"], remove: ["tag-1", "NEW"] }))).toEqual(["remove[1]"]);
    expect(fieldsOf(await tagsCall("PUT", id, { tags, other: 1 }))).toEqual(["other"]);
    expect((await tagsCall("PUT", "alt_0", { tags: [] })).status).toBe(404);
  });

  test("are changed by keys that may write alerts alone", async () => {
    const id = await raise();
    const { secret } = await current.server.addKey({ scopes: ["alerts:read"] });
    const refused = await current.server.call("PUT", `/v1/alerts/${id}/tags`, { body: { tags: [] }, key: secret });
    expect(refused.status).toBe(403);
  });
});

describe("an assignment", () => {
  test("names another person or nobody, and leaves the status", async () => {
    const id = await raise();
    const assigned = await post(`${id}/assign`, { assignee: "anna@example.com", comment: "Yours" });
    expect(assigned.status, assigned.text).toBe(200);
    expect(assigned.body.data).toMatchObject({ status: "open", assignee: "anna@example.com", acknowledged_at: null });
    await post(`${id}/assign`, { assignee: "anna@example.com" });
    await post(`${id}/resolve`, { resolution: "benign" });
    const nobody = await post(`${id}/assign`, { assignee: null });
    expect(nobody.body.data).toMatchObject({ status: "resolved", assignee: null });
    expect(kinds(nobody.body.data)).toEqual(["created", "assigned", "commented", "resolved", "assigned"]);
    expect(nobody.body.data.timeline.at(-1)).toMatchObject({ kind: "assigned", assignee: null });
  });

  test("needs an address or null", async () => {
    const id = await raise();
    const missing = { field: "assignee", message: "is required: must be an e-mail address" };
    expect(faultsOf(await post(`${id}/assign`, {}))).toEqual([missing]);
    expect(fieldsOf(await post(`${id}/assign`, { assignee: "anna" }))).toEqual(["assignee"]);
    expect((await post("alt_0/assign", { assignee: null })).status).toBe(404);
  });
});

// Last: alerts are raised on the server's first store.
test("tags are found after a restart", async () => {
  const id = await raise();
  await tagsCall("PUT", id, { tags: ["kept"] });
  current.server = await current.server.restart();
  expect(await found("tag=kept")).toEqual([id]);
});
