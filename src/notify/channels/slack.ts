import type { ContextBlock, HeaderBlock, KnownBlock, MrkdwnElement, SectionBlock } from "@slack/types";
import { formatTime } from "../../lib/time.ts";
import { secretUrlOrOff } from "../../lib/setting-types.ts";
import { cut, lines, oneLine } from "../../lib/text.ts";
import { defineChannel } from "../channel.ts";
import { escapedWithin } from "../escape.ts";
import { closingFacts, closingTexts, digestOf, headlineOf, lineOf, REASON_WORDS, REPEAT_WORDS } from "../message.ts";
import type { Message, MessageItem } from "../message.ts";

// Messages in Slack's Block Kit. Text from events is escaped: it cannot become a link or a mention.

/** Limits that Slack publishes. */
const SECTION_CHARACTERS_MAX = 3000;
const HEADER_CHARACTERS_MAX = 150;
const FIELD_CHARACTERS_MAX = 2000;
/** Our own limit. A message may have fifty blocks. */
const ALERTS_SHOWN_MAX = 10;
const TITLE_CHARACTERS_MAX = 300;
/** A title with the reason in front. */
const LINE_CHARACTERS_MAX = 400;
const DESCRIPTION_CHARACTERS_MAX = 1500;

export const slack = defineChannel({
  delivers: "a message in blocks, through an incoming webhook",
  settings: {
    slackUrl: secretUrlOrOff("incoming webhook of Slack or of a compatible service"),
  },
  required: ["slackUrl"],
  open: ({ slackUrl: url }, { post }) => ({
    send: (message, signal) => post({ url, body: bodyOf(message) }, signal),
  }),
});

function bodyOf(message: Message): string {
  const { items } = message;
  const blocks: KnownBlock[] = [
    header(headlineOf(message, HEADER_CHARACTERS_MAX)),
    ...(items.length === 1 ? oneAlert(items[0]!) : manyAlerts(items)),
    ...(message.isRepeat ? [context(REPEAT_WORDS)] : []),
  ];
  // Slack's apps show this text in notifications, and screen readers read it.
  return JSON.stringify({
    text: escaped(headlineOf(message, HEADER_CHARACTERS_MAX), SECTION_CHARACTERS_MAX),
    blocks,
    unfurl_links: false,
    unfurl_media: false,
  });
}

function oneAlert(item: MessageItem): KnownBlock[] {
  const { alert, reason, url } = item;
  const fields: [string, string][] = [
    ["Severity", alert.severity],
    ["Rule", alert.rule.name],
    ["Source", alert.source],
    ["Events", String(alert.eventCount)],
    ["Last event", formatTime(alert.lastEventAt)],
    ["Status", alert.status],
    ...closingFacts(item),
  ];
  if (alert.group) fields.push([oneLine(alert.group.field, TITLE_CHARACTERS_MAX), alert.group.value]);
  const title = escaped(oneLine(alert.title, TITLE_CHARACTERS_MAX), TITLE_CHARACTERS_MAX * 2);
  const description = escaped(lines(alert.description, DESCRIPTION_CHARACTERS_MAX), DESCRIPTION_CHARACTERS_MAX);
  return [
    section(`*${REASON_WORDS[reason]}:* ${title}${description === "" ? "" : `\n${description}`}`),
    {
      type: "section",
      fields: fields.map(([name, value]) =>
        text(
          `*${escaped(name, 400)}*\n${escaped(oneLine(value, TITLE_CHARACTERS_MAX), TITLE_CHARACTERS_MAX * 2)}`,
          FIELD_CHARACTERS_MAX,
        ),
      ),
    },
    ...closingTexts(item).map(([name, words]) =>
      section(`*${name}*\n${escaped(lines(words, DESCRIPTION_CHARACTERS_MAX), DESCRIPTION_CHARACTERS_MAX)}`),
    ),
    section(link(url, "Open the alert")),
  ];
}

function manyAlerts(items: readonly MessageItem[]): KnownBlock[] {
  const { bySeverity, topRules, shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  const counts = bySeverity.map(({ severity, count }) => `*${severity}* ${count}`).join("   ");
  const rules = topRules.map(({ name, count }) => `• ${escaped(oneLine(name, 200), 300)}: ${count}`).join("\n");
  return [
    section(counts),
    section(`*Rules*\n${rules}`),
    ...shown.map((item) => {
      const line = escaped(oneLine(lineOf(item), LINE_CHARACTERS_MAX), LINE_CHARACTERS_MAX * 2);
      return section(`*${item.alert.severity}* ${line}\n${link(item.url, "Open the alert")}`);
    }),
    ...(omitted > 0 ? [context(`And ${omitted} more.`)] : []),
  ];
}

function header(words: string): HeaderBlock {
  return { type: "header", text: { type: "plain_text", text: cut(words, HEADER_CHARACTERS_MAX), emoji: false } };
}

function section(words: string): SectionBlock {
  return { type: "section", text: text(words, SECTION_CHARACTERS_MAX) };
}

function context(words: string): ContextBlock {
  return { type: "context", elements: [text(words, FIELD_CHARACTERS_MAX)] };
}

/** Verbatim: Slack does not turn addresses and names into links. */
function text(words: string, charactersMax: number): MrkdwnElement {
  return { type: "mrkdwn", text: cut(words, charactersMax), verbatim: true };
}

/** The URL is ours but may contain an ampersand. */
function link(url: string, words: string): string {
  return `<${url.replaceAll("&", "&amp;").replaceAll("<", "%3C").replaceAll(">", "%3E").replaceAll("|", "%7C")}|${words}>`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function escaped(words: string, charactersMax: number): string {
  return escapedWithin(words, charactersMax, (character) => ENTITIES[character] ?? character);
}
