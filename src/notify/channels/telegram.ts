import { secretTextOrOff, textOrOff, urlWithDefault } from "../../lib/setting-types.ts";
import { cut, oneLine } from "../../lib/text.ts";
import { defineChannel, type PeerAnswer } from "../channel.ts";
import { html } from "../escape.ts";
import { countsOf, digestOf, lineOf, REASON_WORDS, REPEAT_WORDS, type Message, type MessageItem } from "../message.ts";
import { plainLines } from "../message-text.ts";

// Messages of a Telegram bot, in its subset of HTML. Telegram turns addresses, @names and /commands into links wherever they
// occur, except in code: text from events is always in code.

/** The sum of all parts stays below the 4096 characters that a message may have. */
const TITLE_CHARACTERS_MAX = 300;
const DETAILS_CHARACTERS_MAX = 3200;
const DESCRIPTION_CHARACTERS_MAX = 1500;
const ALERTS_SHOWN_MAX = 10;
const LINE_CHARACTERS_MAX = 220;
const RULE_CHARACTERS_MAX = 150;

export const telegram = defineChannel({
  delivers: "a message of a bot, in HTML",
  settings: {
    telegramToken: secretTextOrOff(
      "token of the bot, from @BotFather",
      "a token such as 123456789:AA...",
      /^\d{1,20}:[\w-]{20,128}$/,
    ),
    telegramChat: textOrOff(
      "chat that the bot writes to",
      "the number of a chat or the @name of a channel",
      /^(?:-?\d{1,20}|@[A-Za-z]\w{3,63})$/,
    ),
    telegramThread: textOrOff("topic of the chat, if it has topics", "the number of a topic", /^\d{1,15}$/),
    telegramUrl: urlWithDefault(
      "base URL of the Bot API, for a Bot API server of your own",
      "https://api.telegram.org",
    ),
  },
  required: ["telegramToken", "telegramChat"],
  needs: [
    { setting: "telegramChat", because: "telegramToken", why: "the bot needs a chat to write to" },
    { setting: "telegramToken", because: "telegramChat", why: "nothing is sent without it" },
    { setting: "telegramChat", because: "telegramThread", why: "a topic belongs to a chat" },
  ],
  open: ({ telegramUrl, telegramToken: token, telegramChat: chat, telegramThread: thread }, { post }) => {
    const url = `${telegramUrl.replace(/\/+$/, "")}/bot${token}/sendMessage`;
    const target = { chat_id: chat, ...(thread !== null && { message_thread_id: Number(thread) }) };
    return {
      send: (message, signal) =>
        post({ url, body: JSON.stringify({ ...target, ...bodyOf(message) }), secrets: [token], delayMsOf }, signal),
    };
  },
});

/** Telegram's delay, in seconds, is in the answer and not in a header. */
function delayMsOf({ parameters }: PeerAnswer): number | undefined {
  const { retry_after: seconds } = (parameters ?? {}) as PeerAnswer;
  return typeof seconds === "number" ? seconds * 1000 : undefined;
}

function bodyOf(message: Message): object {
  const { items } = message;
  return {
    text: items.length === 1 ? oneAlert(message) : manyAlerts(message),
    parse_mode: "HTML",
    link_preview_options: { is_disabled: true },
    // Phones stay silent when nothing but resolved alerts is told.
    disable_notification: items.every(({ reason }) => reason === "resolved"),
  };
}

function oneAlert(message: Message): string {
  const [item] = message.items;
  const { reason, alert } = item!;
  const limits = { alertsMax: 1, descriptionCharactersMax: DESCRIPTION_CHARACTERS_MAX };
  // The link has words of its own.
  const details = plainLines(message, limits).filter((line) => line !== item!.url);
  return [
    `<b>[${alert.severity}] ${REASON_WORDS[reason]}</b>`,
    code(oneLine(alert.title, TITLE_CHARACTERS_MAX)),
    `<pre>${html(cut(details.join("\n").trim(), DETAILS_CHARACTERS_MAX))}</pre>`,
    link(item!),
  ].join("\n");
}

function manyAlerts({ items, isRepeat }: Message): string {
  const { topRules, shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  return [
    `<b>${countsOf(items)}</b>`,
    ...topRules.map(({ name, count }) => `${count} × ${code(oneLine(name, RULE_CHARACTERS_MAX))}`),
    "",
    ...shown.map(
      (item) => `[${item.alert.severity}] ${code(oneLine(lineOf(item), LINE_CHARACTERS_MAX))} ${link(item)}`,
    ),
    ...(omitted > 0 ? [`And ${omitted} more.`] : []),
    ...(isRepeat ? [REPEAT_WORDS] : []),
  ].join("\n");
}

function code(words: string): string {
  return `<code>${html(words || "–")}</code>`;
}

function link({ url }: MessageItem): string {
  return `<a href="${html(url)}">Open the alert</a>`;
}
