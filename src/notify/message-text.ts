import { lines, oneLine } from "../lib/text.ts";
import { alertFacts, closingTexts, digestOf, lineOf, REPEAT_WORDS, type Message, type MessageItem } from "./message.ts";

// Messages in plain text, without their headline.

const NAME_CHARACTERS_MAX = 100;
const VALUE_CHARACTERS_MAX = 300;
/** A title with the reason in front. */
const LINE_CHARACTERS_MAX = 400;

interface PlainLimits {
  /** Alerts that a digest lists. */
  readonly alertsMax: number;
  readonly descriptionCharactersMax: number;
}

export function plainLines(message: Message, limits: PlainLimits): string[] {
  const { items, isRepeat } = message;
  const parts = items.length === 1 ? linesOfOne(items[0]!, limits) : linesOfMany(items, limits);
  return [...parts, ...(isRepeat ? ["", REPEAT_WORDS] : [])];
}

function linesOfOne(item: MessageItem, { descriptionCharactersMax }: PlainLimits): string[] {
  const facts = alertFacts(item).map(
    ([name, value]) => `${oneLine(name, NAME_CHARACTERS_MAX)}: ${oneLine(value, VALUE_CHARACTERS_MAX)}`,
  );
  return [
    lines(item.alert.description, descriptionCharactersMax),
    "",
    ...facts,
    ...closingTexts(item).flatMap(([name, words]) => ["", `${name}:`, lines(words, descriptionCharactersMax)]),
    "",
    item.url,
  ];
}

function linesOfMany(items: readonly MessageItem[], { alertsMax }: PlainLimits): string[] {
  const { topRules, shown, omitted } = digestOf(items, alertsMax);
  return [
    ...topRules.map(({ name, count }) => `${count} x ${oneLine(name, VALUE_CHARACTERS_MAX)}`),
    "",
    ...shown.flatMap((item) => [
      `[${item.alert.severity}] ${oneLine(lineOf(item), LINE_CHARACTERS_MAX)}`,
      `  ${item.url}`,
    ]),
    ...(omitted > 0 ? ["", `And ${omitted} more.`] : []),
  ];
}
