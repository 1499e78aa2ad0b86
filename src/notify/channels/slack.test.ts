import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";

let peer: HttpPeer;
beforeAll(async () => {
  // Slack's errors for a message beyond its published limits.
  peer = await startHttpPeer((_, { body }) => {
    const wrong = faultOf(body);
    return wrong ? { status: 400, text: `invalid_blocks: ${wrong}` } : { status: 200 };
  });
});
afterAll(() => peer.close());
beforeEach(() => void peer.received.splice(0));

function faultOf({ text, blocks }: { text: string; blocks: any[] }): string | undefined {
  if (typeof text !== "string" || text === "") return "text";
  if (blocks.length === 0 || blocks.length > 50) return `${blocks.length} blocks`;
  for (const block of blocks) {
    const texts: [any, number][] = [
      ...(block.type === "header" ? [[block.text, 150] as [any, number]] : []),
      ...(block.type === "section" && block.text ? [[block.text, 3000] as [any, number]] : []),
      ...(block.fields ?? []).map((field: any) => [field, 2000]),
      ...(block.elements ?? []).map((element: any) => [element, 3000]),
    ];
    if (texts.length === 0 || (block.fields ?? []).length > 10) return `an empty or overfull ${block.type}`;
    for (const [each, max] of texts) {
      if (each.text.length < 1 || each.text.length > max) return `${each.text.length} characters in a ${block.type}`;
      if (block.type === "header" ? each.type !== "plain_text" : each.type !== "mrkdwn") return each.type;
      // Only our own links may be in angle brackets.
      const rest =
        each.type === "mrkdwn" ? each.text.replace(/<https:\/\/tocsin\.example\/[^<>|]*\|[^<>|]*>/g, "") : "";
      if (/[<>]/.test(rest)) return `markup: ${rest}`;
      if (/&(?!amp;|lt;|gt;)/.test(rest)) return `a bare or broken entity: ${rest}`;
    }
  }
  return undefined;
}

const openAt = (url = peer.url) => openChannels({ ...NO_CHANNELS, slackUrl: url }).get("slack")!;
const send = (message: Message) => openAt().send(message, new AbortController().signal);

test("a message shows the facts of an alert and a link", async () => {
  const alert = someAlert();
  expect(await send(messageOf([alert]))).toEqual({ kind: "sent" });
  const { body, headers } = peer.received[0]!;
  expect(headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(body.text).toBe("[high] New alert: Failed logins from 192.0.2.17");
  const shown = JSON.stringify(body.blocks);
  for (const part of ["site.failed_logins", "192.0.2.17", "Five failed logins", "*Events*\\n5"])
    expect(shown).toContain(part);
  expect(shown).toContain(`<https://tocsin.example/alerts?alert=${alert.id}|Open the alert>`);
});

test("a resolved alert shows its resolution, author and comment", async () => {
  const closing = { comment: "The *scanner* <of the house>\nagain", actionsTaken: ["blocked it", "told Ben"] };
  const message = closedMessageOf(someAlert(), closing);
  expect(await send(message)).toEqual({ kind: "sent" });
  expect(await send({ ...message, items: [...message.items, ...message.items] })).toEqual({ kind: "sent" });
  const [one, two] = peer.received.map(({ body }) => body);
  expect(one.text).toBe("[high] Resolved (false positive, by ann): Failed logins from 192.0.2.17");
  const shown = JSON.stringify(one.blocks);
  for (const part of [
    "*Resolution*\\nfalse positive",
    "*Resolved by*\\nann",
    "*Actions taken*\\nblocked it\\ntold Ben",
  ])
    expect(shown).toContain(part);
  expect(shown).toContain("*Comment*\\nThe *scanner* &lt;of the house&gt;\\nagain");
  expect(JSON.stringify(two.blocks)).toContain("Resolved (false positive, by ann): Failed logins");
});

test("two notifications of one alert count as one alert, and both are listed", async () => {
  const alert = someAlert();
  const twice = [...closedMessageOf(alert).items, { ...messageOf([alert]).items[0]!, reason: "reopened" as const }];
  expect(await send({ ...messageOf([alert]), items: twice })).toEqual({ kind: "sent" });
  const others = [...twice, ...messageOf([someAlert({ severity: "low" })]).items];
  expect(await send({ ...messageOf([alert]), items: others })).toEqual({ kind: "sent" });
  const [one, two] = peer.received.map(({ body }) => body);
  expect(one.text).toBe("[high] Resolved, Reopened: Failed logins from 192.0.2.17");
  expect(one.blocks[1].text.text).toBe("*high* 1");
  const shown = JSON.stringify(one.blocks);
  for (const part of ["Resolved (false positive, by ann): Failed", "Reopened: Failed"]) expect(shown).toContain(part);
  expect(two.text).toBe("2 alerts: 1 high, 1 low");
});

test("a hundred alerts become one message with counts, rules, the most severe alerts and the number of the rest", async () => {
  const alerts = Array.from({ length: 100 }, (_, i) =>
    someAlert({
      title: `Alert ${i}`,
      severity: i % 20 === 0 ? "critical" : "low",
      rule: { id: "r", name: i % 3 === 0 ? "site.often" : `site.rule_${i}`, description: "", tags: [] },
    }),
  );
  expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
  const { body } = peer.received[0]!;
  expect(body.text).toBe("100 alerts: 5 critical, 95 low");
  const shown = JSON.stringify(body.blocks);
  expect(shown).toContain("site.often: 34");
  for (const i of [0, 20, 40, 60, 80]) expect(shown).toContain(`Alert ${i}\\n`);
  expect(shown).toContain("And 90 more.");
});

test("a message that may have arrived before says so", async () => {
  await send(messageOf([someAlert()], { isRepeat: true }));
  expect(JSON.stringify(peer.received[0]!.body.blocks)).toContain("may have been sent before");
});

test("text from an attacker is escaped everywhere in the message", async () => {
  const evil = "<!channel> & <https://evil.example|click>";
  const safe = "&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;";
  const alert = someAlert({
    title: evil,
    description: evil,
    group: { field: evil, value: evil },
    rule: { id: "r", name: evil, description: "", tags: [] },
  });
  const one = closedMessageOf(alert, { by: evil, comment: evil, actionsTaken: [evil] });
  expect(await send(one)).toEqual({ kind: "sent" });
  expect(await send({ ...one, items: [...one.items, ...one.items] })).toEqual({ kind: "sent" });
  const [single, digest] = peer.received.map(({ body }) => body);
  expect(single.text).toBe(`[high] Resolved (false positive, by ${safe}): ${safe}`);
  const fields = single.blocks.flatMap((block: any) => block.fields ?? []).map((field: any) => field.text);
  expect(fields).toEqual(expect.arrayContaining([`*Rule*\n${safe}`, `*Resolved by*\n${safe}`, `*${safe}*\n${safe}`]));
  const sections = (body: any) =>
    body.blocks.flatMap((block: any) => (block.type === "section" ? [block.text?.text] : []));
  expect(sections(single)).toEqual(
    expect.arrayContaining([`*Resolved:* ${safe}\n${safe}`, `*Comment*\n${safe}`, `*Actions taken*\n${safe}`]),
  );
  expect(sections(digest)).toContain(`*Rules*\n• ${safe}: 1`);
  expect(sections(digest).join("\n")).toContain(`Resolved (false positive, by ${safe}): ${safe}\n`);
});

test("text from events creates no links or mentions and stays within the limits, whatever it contains", async () => {
  const nasty = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc.constantFrom(
      "<!channel> <@U123> <https://evil.example|click>",
      "&lt;!here&gt;",
      "\u202egnp.exe",
      "a\r\nb\u0000\u0007",
      "&<>".repeat(2000),
      "😀".repeat(3000),
      "",
    ),
  );
  await fc.assert(
    fc.asyncProperty(nasty, nasty, nasty, fc.integer({ min: 1, max: 12 }), async (title, description, value, count) => {
      const group = { field: "raw.x", value };
      const rule = { id: "r", name: title || "r", description, tags: [] };
      const alerts = Array.from({ length: count }, () => someAlert({ title, description, group, rule }));
      expect(await send(messageOf(alerts))).toEqual({ kind: "sent" });
    }),
    { numRuns: 30 },
  );
});

test("without a URL there is no channel", () => {
  expect(openChannels(NO_CHANNELS).get("slack")).toBeUndefined();
});
