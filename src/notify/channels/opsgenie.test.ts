import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { AlertSummary } from "../../model/alert.ts";
import type { NotificationReason } from "../../model/notification.ts";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const KEY = "eb243592-faa2-4ba2-a551-1afdf565c889";

/** Open alerts by alias, as Opsgenie keeps them: https://docs.opsgenie.com/docs/alert-api */
const kept = new Map<string, { status: string; priority: string; count: number }>();
let busy = false;

function faultOf(body: any): string | undefined {
  const { message, alias, description, details, tags, entity, source, priority } = body;
  if (!message || message.length > 130) return "Message can not be empty or longer than 130";
  if (!alias || alias.length > 512) return "alias";
  if (description.length > 15_000 || entity.length > 512 || source.length > 100) return "too long";
  if (JSON.stringify(details).length > 8000) return "details";
  if (tags.length > 20 || tags.some((tag: string) => tag.length > 50)) return "tags";
  if (!/^P[1-5]$/.test(priority)) return "priority";
  if (/<[a-z/!?]/i.test(JSON.stringify(body))) return "markup";
  return undefined;
}

let peer: HttpPeer;
beforeAll(async () => {
  peer = await startHttpPeer((_, { method, path, headers, body }) => {
    const answer = (status: number, message: string) => ({
      status,
      text: JSON.stringify(status < 300 ? { result: message, requestId: "1" } : { message, took: 0.1 }),
    });
    if (headers.authorization !== `GenieKey ${KEY}`) return answer(401, "Could not authenticate");
    if (busy) return answer(429, "You are making too many requests!");
    if (method === "POST" && path === "/v2/alerts") {
      const wrong = faultOf(body);
      if (wrong) return answer(422, `Request body is not processable: ${wrong}`);
      const before = kept.get(body.alias);
      if (before && before.status !== "closed") before.count++;
      else kept.set(body.alias, { status: "open", priority: body.priority, count: 1 });
      return answer(202, "Request will be processed");
    }
    const [, alias = "", action] = /^\/v2\/alerts\/([^/?]+)\/(\w+)\?identifierType=alias$/.exec(path) ?? [];
    const alert = kept.get(decodeURIComponent(alias));
    if (method === "PUT" && action === "priority" && alert) alert.priority = body.priority;
    else if (method === "POST" && (action === "acknowledge" || action === "close")) {
      if (alert) alert.status = action === "close" ? "closed" : "acknowledged";
    } else return answer(404, "Could not find resource");
    return answer(202, "Request will be processed");
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  busy = false;
  kept.clear();
  peer.received.splice(0);
});

const send = (message: Message, key = KEY) =>
  openChannels({ ...NO_CHANNELS, opsgenieKey: key, opsgenieUrl: peer.origin })
    .get("opsgenie")!
    .send(message, new AbortController().signal);
const told = (alert: AlertSummary, reason: NotificationReason): Message => {
  const message = messageOf([alert]);
  return { ...message, items: [{ ...message.items[0]!, reason }] };
};

test("a new alert is created with its id as the alias, its facts and a priority", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  expect(peer.received[0]!.body).toMatchObject({
    message: "Failed logins from 192.0.2.17",
    alias: alert.id,
    entity: "192.0.2.17",
    priority: "P2",
    details: { Rule: "site.failed_logins", Console: `https://tocsin.example/alerts?alert=${alert.id}` },
  });
});

test("the alert is raised, acknowledged and closed with ours", async () => {
  const alert = someAlert({ severity: "low" });
  await send(told(alert, "created"));
  expect(kept.get(alert.id)).toEqual({ status: "open", priority: "P4", count: 1 });
  const worse: AlertSummary = { ...alert, severity: "critical" };
  await send(told(worse, "severity_raised"));
  expect(kept.get(alert.id)).toEqual({ status: "open", priority: "P1", count: 2 });
  await send(told({ ...worse, status: "acknowledged" }, "acknowledged"));
  expect(kept.get(alert.id)!.status).toBe("acknowledged");
  expect(await send(closedMessageOf(worse, { comment: "a <b>drill</b>" }))).toEqual({ kind: "sent" });
  expect(kept.get(alert.id)!.status).toBe("closed");
  expect(peer.received.at(-1)!.body.note).toBe(
    "Resolution: false positive\nResolved by: ann\nComment: a < b>drill< /b>",
  );
  await send(told(worse, "reopened"));
  expect(kept.get(alert.id)).toEqual({ status: "open", priority: "P1", count: 1 });
});

test("too many requests are retried, a wrong key is refused for good and not revealed", async () => {
  busy = true;
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", mayHaveArrived: false });
  const wrong = await send(messageOf([someAlert()]), "another-key-of-theirs");
  expect(wrong).toMatchObject({ kind: "refused", error: expect.stringContaining("Could not authenticate") });
  expect(JSON.stringify(wrong)).not.toContain("another-key-of-theirs");
});

test("any text stays within the limits and is no markup", async () => {
  for (const text of ["", "<script>x</script><!-- <img src=x>".repeat(3000), "😀".repeat(50_000), '"\\'.repeat(3000)]) {
    const rule = { id: "r", name: text, description: text, tags: Array.from({ length: 30 }, () => text) };
    const alert = someAlert({ title: text, description: text, group: { field: text, value: text }, rule });
    expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  }
});
