import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { alertView, type AlertSummary } from "../../model/alert.ts";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const KEY = "VnVhQ2ZHY0JDZGJrUW0tZTVhT3g6dWkybHAyYXhUTm1zeWFrdzl0dk5udw==";

/** Documents by id, as an index keeps them under external versions. */
const kept = new Map<string, { version: number; document: any }>();
/** Answers for single documents instead of writing them. */
const rejected = new Map<string, { status: number; type: string }>();
let answer: { status: number; text: string } | undefined;

let peer: HttpPeer;
beforeAll(async () => {
  peer = await startHttpPeer((_, { method, path, headers, text }) => {
    if (method !== "POST" || !path.startsWith("/es/_bulk?filter_path=")) return { status: 405, text: "{}" };
    if (headers.authorization !== `ApiKey ${KEY}`)
      return { status: 401, text: '{"error":{"type":"security_exception"},"status":401}' };
    if (answer) return answer;
    if (headers["content-type"] !== "application/x-ndjson" || !text.endsWith("\n")) return { status: 406, text: "{}" };
    const rows = text.trimEnd().split("\n");
    const items: object[] = [];
    for (let i = 0; i < rows.length; i += 2) {
      const { index } = JSON.parse(rows[i]!);
      const { _index, _id, version, version_type, ...more } = index;
      if (_index !== "tocsin-alerts" || version_type !== "external_gte" || Object.keys(more).length > 0)
        return { status: 400, text: '{"error":{"type":"illegal_argument_exception"},"status":400}' };
      const before = kept.get(_id);
      const wrong =
        rejected.get(_id) ?? (before && before.version > version && { status: 409, type: "version_conflict" });
      if (wrong) items.push({ index: { _id, status: wrong.status, error: { type: wrong.type, reason: "because" } } });
      else {
        kept.set(_id, { version, document: JSON.parse(rows[i + 1]!) });
        items.push({ index: { _id, status: 201 } });
      }
    }
    return { status: 200, text: JSON.stringify({ errors: items.some((item: any) => item.index.error), items }) };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  answer = undefined;
  rejected.clear();
  kept.clear();
});

const send = (message: Message, key = KEY) =>
  openChannels({ ...NO_CHANNELS, elasticsearchUrl: `${peer.origin}/es/`, elasticsearchKey: key })
    .get("elasticsearch")!
    .send(message, new AbortController().signal);

test("an alert is a document with ECS names and the alert as the API shows it", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  expect(kept.get(alert.id)!.document).toMatchObject({
    "@timestamp": "2023-11-14T22:14:21.000Z",
    message: "Failed logins from 192.0.2.17",
    event: { kind: "alert", severity: 4 },
    rule: { id: "rule_1", name: "site.failed_logins" },
    tocsin: { reason: "created", url: expect.stringContaining(alert.id), alert: alertView(alert) },
  });
});

test("the document holds the latest state, and a late or repeated request changes nothing", async () => {
  const alert: AlertSummary = { ...someAlert(), version: 1 };
  const closed = closedMessageOf({ ...alert, version: 3 }, { comment: "a drill" });
  await send(messageOf([alert]));
  expect(await send(closed)).toEqual({ kind: "sent" });
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  expect(await send(closed)).toEqual({ kind: "sent" });
  expect(kept.get(alert.id)!.document.tocsin).toMatchObject({ comment: "a drill", alert: { status: "resolved" } });
});

test("documents that are rejected for now are retried alone, and refused ones are told", async () => {
  const alerts = [someAlert(), someAlert(), someAlert()];
  const [first, second] = alerts.map(({ id }) => id);
  rejected.set(first!, { status: 429, type: "es_rejected_execution_exception" });
  expect(await send(messageOf(alerts))).toEqual({
    kind: "partly",
    error: "1 of 3 documents are left: answered 429: es_rejected_execution_exception: because",
    untold: [first],
  });
  rejected.clear();
  kept.clear();
  expect(await send(messageOf(alerts, { untold: [first!] }))).toEqual({ kind: "sent" });
  expect([...kept.keys()]).toEqual([first]);
  rejected.set(second!, { status: 400, type: "mapper_parsing_exception" });
  expect(await send(messageOf(alerts))).toMatchObject({
    kind: "sent",
    error: expect.stringMatching(/^refused for 1 of 3 documents/),
  });
  expect(await send(messageOf([alerts[1]!]))).toMatchObject({ kind: "refused" });
  rejected.set(second!, { status: 503, type: "unavailable_shards_exception" });
  expect(await send(messageOf([alerts[1]!]))).toMatchObject({ kind: "failed", mayHaveArrived: false });
});

test("a wrong key is refused for good, an overloaded cluster and an unreadable answer are retried", async () => {
  const wrong = await send(messageOf([someAlert()]), "another-key-of-theirs");
  expect(wrong).toMatchObject({ kind: "refused", error: expect.stringContaining("security_exception") });
  answer = { status: 429, text: '{"error":{"type":"es_rejected_execution_exception"},"status":429}' };
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", mayHaveArrived: false });
  for (const text of [
    "<html>a proxy</html>",
    "{}",
    '{"errors":true}',
    `{"errors":true,"items":[${"1,".repeat(200_000)}1]}`,
  ]) {
    answer = { status: 200, text };
    expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", mayHaveArrived: true });
  }
});
