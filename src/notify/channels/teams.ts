import { secretUrlOrOff } from "../../lib/setting-types.ts";
import { cutBytes, lines, oneLine } from "../../lib/text.ts";
import { defineChannel } from "../channel.ts";
import {
  alertFacts,
  closingTexts,
  digestOf,
  headlineOf,
  lineOf,
  REPEAT_WORDS,
  type Message,
  type MessageItem,
} from "../message.ts";

// Messages as Adaptive Cards to a workflow of Microsoft Teams ("When a Teams webhook request is received"); connectors are
// retired. Text from events is in text runs, in which Markdown means nothing, unlike in text blocks and facts.

/** A card may have 28 KB. The limits below are in bytes, and escaping for JSON at most doubles them. */
const TITLE_BYTES_MAX = 500;
const DESCRIPTION_BYTES_MAX = 2500;
const VALUE_BYTES_MAX = 350;
const LINE_BYTES_MAX = 500;
const ALERTS_SHOWN_MAX = 10;

type TextRun = Readonly<Record<string, unknown>>;

export const teams = defineChannel({
  delivers: "an Adaptive Card, through a workflow",
  settings: {
    teamsUrl: secretUrlOrOff("URL of a workflow of Microsoft Teams that posts webhook requests"),
  },
  required: ["teamsUrl"],
  open: ({ teamsUrl: url }, { post }) => ({
    send: (message, signal) => post({ url, body: JSON.stringify(bodyOf(message)) }, signal),
  }),
});

function bodyOf(message: Message): object {
  const { items, isRepeat } = message;
  const [worst] = digestOf(items, 1).shown;
  const card = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    msteams: { width: "Full" },
    body: [
      block([
        run(cutBytes(headlineOf(message, TITLE_BYTES_MAX), TITLE_BYTES_MAX), { weight: "Bolder", size: "Large" }),
      ]),
      ...(items.length === 1 ? oneAlert(items[0]!) : manyAlerts(items)),
      ...(isRepeat ? [block([run(REPEAT_WORDS, { isSubtle: true })])] : []),
    ],
    actions: [
      {
        type: "Action.OpenUrl",
        title: items.length === 1 ? "Open the alert" : "Open the most severe alert",
        url: worst!.url,
      },
    ],
  };
  const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content: card };
  return { type: "message", attachments: [attachment] };
}

function oneAlert(item: MessageItem): object[] {
  const facts = alertFacts(item).map(([name, value]) =>
    block(
      [named(oneLine(name, VALUE_BYTES_MAX)), run(cutBytes(oneLine(value, VALUE_BYTES_MAX), VALUE_BYTES_MAX))],
      "None",
    ),
  );
  const texts = closingTexts(item).flatMap(([name, words]) => [block([named(name)]), ...paragraphs(words)]);
  return [...paragraphs(item.alert.description), ...facts, ...texts];
}

function manyAlerts(items: readonly MessageItem[]): object[] {
  const { topRules, shown, omitted } = digestOf(items, ALERTS_SHOWN_MAX);
  return [
    ...topRules.map(({ name, count }) =>
      block([run(`${count} × ${cutBytes(oneLine(name, VALUE_BYTES_MAX), VALUE_BYTES_MAX)}`)], "None"),
    ),
    ...shown.map((item) =>
      block([
        run(`${item.alert.severity} `, { weight: "Bolder" }),
        run(cutBytes(oneLine(lineOf(item), LINE_BYTES_MAX), LINE_BYTES_MAX)),
        run(" Open", { selectAction: { type: "Action.OpenUrl", url: item.url } }),
      ]),
    ),
    ...(omitted > 0 ? [block([run(`And ${omitted} more.`)])] : []),
  ];
}

/** A card does not show line breaks within a run: each line is a block. */
function paragraphs(words: string): object[] {
  const kept = cutBytes(lines(words, DESCRIPTION_BYTES_MAX), DESCRIPTION_BYTES_MAX).split("\n");
  // The first lines have a block of their own, which costs more than a line of text.
  const LINES_MAX = 20;
  const blocks = [...kept.slice(0, LINES_MAX), kept.slice(LINES_MAX).join(" ")].filter((line) => line.trim() !== "");
  return blocks.map((line, nth) => block([run(line)], nth === 0 ? "Default" : "None"));
}

function block(inlines: readonly TextRun[], spacing: "Default" | "None" = "Default"): object {
  return { type: "RichTextBlock", spacing, inlines };
}

function named(name: string): TextRun {
  return run(`${cutBytes(name, VALUE_BYTES_MAX)}: `, { weight: "Bolder" });
}

/** Two opening braces begin a function of the card, such as one that formats a date. */
function run(text: string, more: TextRun = {}): TextRun {
  return { type: "TextRun", text: text.replace(/\{(?=\{)/g, "{ ") || "–", ...more };
}
