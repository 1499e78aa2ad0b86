import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

const TOKEN = "tk_0123456789abcdef";

// Checks what ntfy checks when a message is published as JSON: https://docs.ntfy.sh/publish/#publish-as-json
let peer: HttpPeer;
let busy = false;
beforeAll(async () => {
  peer = await startHttpPeer((_, { method, path, headers, body }) => {
    const refuse = (http: number, code: number, error: string) => ({
      status: http,
      text: JSON.stringify({ code, http, error, link: "https://ntfy.sh/docs/publish/" }),
    });
    if (method !== "POST" || path !== "/") return refuse(404, 40401, "page not found");
    if (headers.authorization !== `Bearer ${TOKEN}`) return refuse(403, 40301, "forbidden");
    if (busy) return refuse(429, 42901, "limit reached: too many requests");
    if (!/^[-_A-Za-z0-9]{1,64}$/.test(body.topic)) return refuse(400, 40009, "invalid request: topic invalid");
    if (![1, 2, 3, 4, 5].includes(body.priority)) return refuse(400, 40007, "invalid priority parameter");
    if (Buffer.byteLength(body.message) > 4096) return refuse(413, 41301, "attachment too large");
    if (body.message === "" || body.title === "" || body.markdown) return refuse(400, 40024, "invalid request");
    if (!URL.canParse(body.click)) return refuse(400, 40024, "invalid click");
    return { status: 200, text: JSON.stringify({ id: "x", event: "message", topic: body.topic }) };
  });
});
afterAll(() => peer.close());
beforeEach(() => {
  busy = false;
  peer.received.splice(0);
});

const send = (message: Message, token: string | null = TOKEN) =>
  openChannels({ ...NO_CHANNELS, ntfyUrl: `${peer.origin}/our-secret-topic`, ntfyToken: token })
    .get("ntfy")!
    .send(message, new AbortController().signal);

test("a message has the headline as its title, the facts, a link and a priority", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  const { body } = peer.received[0]!;
  expect(body).toMatchObject({
    topic: "our-secret-topic",
    title: "[high] New alert: Failed logins from 192.0.2.17",
    priority: 4,
    tags: ["rotating_light"],
    click: `https://tocsin.example/alerts?alert=${alert.id}`,
  });
  for (const part of ["Five failed logins", "Rule: site.failed_logins", "raw.src_ip: 192.0.2.17", "Events: 5"])
    expect(body.message).toContain(part);
});

test("the priority follows the most severe alert, and a resolved one is not loud", async () => {
  for (const severity of ["critical", "high", "medium", "low", "info"] as const)
    await send(messageOf([someAlert({ severity: "info" }), someAlert({ severity })]));
  await send(closedMessageOf(someAlert({ severity: "critical" }), { comment: "a drill" }));
  expect(peer.received.map(({ body }) => body.priority)).toEqual([5, 4, 3, 2, 1, 3]);
  expect(peer.received[5]!.body).toMatchObject({ tags: ["white_check_mark"] });
  expect(peer.received[5]!.body.message).toContain("Comment:\na drill");
});

test("a hundred alerts become one message with the most severe ones and the number of the rest", async () => {
  const alerts = Array.from({ length: 100 }, (_, i) => someAlert({ severity: i === 50 ? "critical" : "low" }));
  expect(await send(messageOf(alerts, { isRepeat: true }))).toEqual({ kind: "sent" });
  const { body } = peer.received[0]!;
  expect(body).toMatchObject({ title: "100 alerts: 1 critical, 99 low", priority: 5 });
  expect(body.click).toContain(alerts[50]!.id);
  for (const part of ["100 x site.failed_logins", "And 90 more.", "may have been sent before"])
    expect(body.message).toContain(part);
});

test("a wrong token is refused for good and hidden, and too many requests are retried", async () => {
  const wrong = await send(messageOf([someAlert()]), "tk_of_somebody_else");
  expect(wrong).toMatchObject({ kind: "refused", error: expect.stringMatching(/^answered 403: .*40301/) });
  busy = true;
  expect(await send(messageOf([someAlert()]))).toMatchObject({ kind: "failed", mayHaveArrived: false });
});

test("an answer that repeats the topic or the token does not reveal them", async () => {
  const echo = await startHttpPeer((_, { text, headers }) => ({
    status: 400,
    text: `no: ${headers.authorization} ${text}`,
  }));
  const settings = { ...NO_CHANNELS, ntfyUrl: `${echo.origin}/our-secret-topic`, ntfyToken: TOKEN };
  const outcome = await openChannels(settings)
    .get("ntfy")!
    .send(messageOf([someAlert()]), new AbortController().signal);
  await echo.close();
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining('"topic":"(hidden)"') });
  expect(JSON.stringify(outcome)).not.toMatch(/our-secret-topic|0123456789/);
});

test("any text stays within the limits", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom("😀".repeat(3000), "\ufffd".repeat(5000), "\u202e\r\n\0", "[a](https://evil.example)", ""),
  );
  await fc.assert(
    fc.asyncProperty(nasty, nasty, fc.integer({ min: 1, max: 12 }), async (title, description, count) => {
      const group = { field: "raw.x", value: title };
      const alerts = Array.from({ length: count }, () => someAlert({ title, description, group }));
      expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
    }),
    { numRuns: 20 },
  );
});
