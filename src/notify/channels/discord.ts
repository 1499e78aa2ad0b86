import { secretUrlOrOff } from "../../lib/setting-types.ts";
import { lines, oneLine } from "../../lib/text.ts";
import { formatTime } from "../../lib/time.ts";
import type { Severity } from "../../model/event.ts";
import { defineChannel, type PeerAnswer } from "../channel.ts";
import { escapedWithin } from "../escape.ts";
import {
  alertFacts,
  closingTexts,
  countsOf,
  digestOf,
  lineOf,
  REASON_WORDS,
  REPEAT_WORDS,
  type Message,
  type MessageItem,
} from "../message.ts";

// Messages as embeds of a Discord webhook. Text from events is escaped for Discord's Markdown, and mentions are off.

/** Discord's limits are 256, 4096, 256 and 1024 characters, and 6000 for an embed: the sum of ours stays below that. */
const TITLE_CHARACTERS_MAX = 256;
const DESCRIPTION_CHARACTERS_MAX = 1000;
const NAME_CHARACTERS_MAX = 60;
const VALUE_CHARACTERS_MAX = 200;
const TEXT_CHARACTERS_MAX = 700;
const ALERTS_SHOWN_MAX = 10;
const LINE_CHARACTERS_MAX = 200;
const RULE_CHARACTERS_MAX = 100;

const COLORS: Readonly<Record<Severity, number>> = {
  critical: 0xb3261e,
  high: 0xe8710a,
  medium: 0xf2b600,
  low: 0x3b82f6,
  info: 0x6b7280,
};
const RESOLVED_COLOR = 0x2e7d32;

export const discord = defineChannel({
  delivers: "a message with an embed, through a webhook",
  settings: {
    discordUrl: secretUrlOrOff("webhook of a Discord channel"),
  },
  required: ["discordUrl"],
  open: ({ discordUrl: url }, { post }) => ({
    send: (message, signal) => post({ url, body: JSON.stringify(bodyOf(message)), delayMsOf }, signal),
  }),
});

/** Discord's delay is in seconds, with a fraction that its header lacks. */
function delayMsOf({ retry_after: seconds }: PeerAnswer): number | undefined {
  return typeof seconds === "number" ? seconds * 1000 : undefined;
}

function bodyOf(message: Message): object {
  const { items, isRepeat } = message;
  const [worst] = digestOf(items, 1).shown;
  const isOver = items.every(({ reason }) => reason === "resolved");
  const embed = {
    ...(items.length === 1 ? oneAlert(items[0]!) : manyAlerts(items)),
    color: isOver ? RESOLVED_COLOR : COLORS[worst!.alert.severity],
    timestamp: formatTime(worst!.alert.lastEventAt),
    ...(isRepeat && { footer: { text: REPEAT_WORDS } }),
  };
  // Nobody is mentioned, whatever the text contains.
  return { embeds: [embed], allowed_mentions: { parse: [] } };
}

function oneAlert(item: MessageItem): object {
  const { alert, reason, url } = item;
  const title = oneLine(alert.title, TITLE_CHARACTERS_MAX);
  return {
    title: escaped(`[${alert.severity}] ${REASON_WORDS[reason]}: ${title}`, TITLE_CHARACTERS_MAX),
    url,
    description: escaped(lines(alert.description, DESCRIPTION_CHARACTERS_MAX), DESCRIPTION_CHARACTERS_MAX),
    fields: [
      ...alertFacts(item).map(([name, value]) => ({
        ...field(oneLine(name, NAME_CHARACTERS_MAX), oneLine(value, VALUE_CHARACTERS_MAX), VALUE_CHARACTERS_MAX),
        inline: true,
      })),
      ...closingTexts(item).map(([name, words]) => field(name, lines(words, TEXT_CHARACTERS_MAX), TEXT_CHARACTERS_MAX)),
    ],
  };
}

function manyAlerts(items: readonly MessageItem[]): object {
  const { topRules, shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  const rules = topRules.map(
    ({ name, count }) => `${count} × ${escaped(oneLine(name, RULE_CHARACTERS_MAX), RULE_CHARACTERS_MAX)}`,
  );
  const alerts = shown.map((item) => {
    const line = escaped(oneLine(lineOf(item), LINE_CHARACTERS_MAX), LINE_CHARACTERS_MAX);
    return `**${item.alert.severity}** ${line} [Open](${linked(item.url)})`;
  });
  const more = omitted > 0 ? [`And ${omitted} more.`] : [];
  return { title: countsOf(items), description: [...rules, "", ...alerts, ...more].join("\n") };
}

/** Discord refuses empty names and values. */
function field(name: string, value: string, charactersMax: number): { name: string; value: string } {
  return { name: escaped(name, NAME_CHARACTERS_MAX) || "–", value: escaped(value, charactersMax) || "–" };
}

/** The URL is ours, but a parenthesis would end the link. */
function linked(url: string): string {
  return url.replaceAll("(", "%28").replaceAll(")", "%29").replaceAll(" ", "%20");
}

/** The colon and the dot keep addresses from becoming links; `@` and `<` keep names from looking like mentions. */
function escaped(words: string, charactersMax: number): string {
  return escapedWithin(words, charactersMax, (character) =>
    /[\\*_~`|>#@<:()[\].!+=-]/.test(character) ? `\\${character}` : character,
  );
}
