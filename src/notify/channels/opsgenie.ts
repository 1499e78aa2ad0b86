import { tokenOrOff, urlWithDefault } from "../../lib/setting-types.ts";
import { cut, lines, oneLine } from "../../lib/text.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Severity } from "../../model/event.ts";
import { defineChannel, type ChannelPost } from "../channel.ts";
import { alertFacts, closingFacts, closingTexts, type MessageItem } from "../message.ts";
import { MESSAGE_MAX, sendOneByOne, type AlertStep } from "../one-by-one.ts";

// Alerts in Opsgenie, or in Jira Service Management, which has the same API. The id of the alert is the alias of theirs: there
// is one open alert for an alias, which later requests acknowledge and close.

/** Opsgenie's limits: it cuts or refuses longer texts. */
const MESSAGE_CHARACTERS_MAX = 130;
const DESCRIPTION_CHARACTERS_MAX = 15_000;
const NAME_CHARACTERS_MAX = 100;
const VALUE_CHARACTERS_MAX = 400;
const NOTE_CHARACTERS_MAX = 10_000;
const TAG_CHARACTERS_MAX = 50;
const TAGS_MAX = 20;

const PRIORITIES: Readonly<Record<Severity, string>> = {
  critical: "P1",
  high: "P2",
  medium: "P3",
  low: "P4",
  info: "P5",
};

export const opsgenie = defineChannel({
  delivers: "an alert for each alert, which is acknowledged and closed with it",
  settings: {
    opsgenieKey: tokenOrOff("API key of an integration of Opsgenie or Jira Service Management"),
    opsgenieUrl: urlWithDefault("base URL of the API", "https://api.opsgenie.com"),
  },
  required: ["opsgenieKey"],
  open: ({ opsgenieKey: key, opsgenieUrl }, { post }) => {
    const base = `${opsgenieUrl.replace(/\/+$/, "")}/v2/alerts`;
    const headers = { Authorization: `GenieKey ${key}` };
    return {
      followsAlerts: true,
      messageMax: MESSAGE_MAX,
      send: (message, signal) =>
        sendOneByOne(message, (item, step) =>
          post({ headers, secrets: [key], ...requestOf(base, item, step) }, signal),
        ),
    };
  },
});

function requestOf(base: string, item: MessageItem, step: AlertStep): Pick<ChannelPost, "method" | "url" | "body"> {
  const { alert } = item;
  const at = (path: string) => `${base}/${encodeURIComponent(alert.id)}/${path}?identifierType=alias`;
  switch (step) {
    case "trigger":
      return { url: base, body: JSON.stringify(creationOf(item)) };
    // A creation with the same alias only counts: the priority has a request of its own.
    case "raise":
      return { method: "PUT", url: at("priority"), body: JSON.stringify({ priority: PRIORITIES[alert.severity] }) };
    case "acknowledge":
      return { url: at("acknowledge"), body: JSON.stringify({ source: "Tocsin" }) };
    case "resolve":
      return { url: at("close"), body: JSON.stringify({ source: "Tocsin", note: noteOf(item) }) };
    default:
      return unreachable(step);
  }
}

function creationOf(item: MessageItem): object {
  const { alert, url, apiUrl } = item;
  const facts = alertFacts(item).map(([name, value]) => [
    plain(oneLine(name, NAME_CHARACTERS_MAX)),
    plain(oneLine(value, VALUE_CHARACTERS_MAX)),
  ]);
  return {
    message: cut(plain(oneLine(alert.title, MESSAGE_CHARACTERS_MAX)), MESSAGE_CHARACTERS_MAX) || "Alert",
    alias: alert.id,
    description: cut(
      `${plain(lines(alert.description, DESCRIPTION_CHARACTERS_MAX / 2))}\n\n${url}`,
      DESCRIPTION_CHARACTERS_MAX,
    ),
    details: Object.fromEntries([...facts, ["Console", url], ["API", apiUrl]]) as Record<string, string>,
    tags: alert.rule.tags
      .slice(0, TAGS_MAX)
      .map((tag) => cut(plain(oneLine(tag, TAG_CHARACTERS_MAX)), TAG_CHARACTERS_MAX)),
    entity: plain(oneLine(alert.group?.value ?? alert.source, VALUE_CHARACTERS_MAX)),
    source: "Tocsin",
    priority: PRIORITIES[alert.severity],
  };
}

function noteOf(item: MessageItem): string {
  const words = [...closingFacts(item), ...closingTexts(item)].map(([name, value]) => `${name}: ${value}`);
  return plain(lines(words.join("\n"), NOTE_CHARACTERS_MAX)) || "Resolved.";
}

/** Opsgenie shows some HTML: a space keeps a bracket from beginning an element. */
function plain(words: string): string {
  return words.replace(/<(?=[a-z/!?])/gi, "< ");
}
