import { tokenOrOff, urlWithDefault } from "../../lib/setting-types.ts";
import { cut, lines, oneLine } from "../../lib/text.ts";
import { formatTime } from "../../lib/time.ts";
import type { Severity } from "../../model/event.ts";
import { defineChannel } from "../channel.ts";
import { alertFacts, closingTexts, type MessageItem } from "../message.ts";
import { MESSAGE_MAX, sendOneByOne, type AlertStep } from "../one-by-one.ts";

// Alerts as events of PagerDuty's Events API v2. The id of the alert is the deduplication key: later events of the alert
// change the incident that its first one opened.

/** PagerDuty's limit. */
const SUMMARY_CHARACTERS_MAX = 1024;
/** Our own limits. An event may have 512 KB. */
const DETAIL_CHARACTERS_MAX = 4000;
const NAME_CHARACTERS_MAX = 200;

const SEVERITIES: Readonly<Record<Severity, string>> = {
  critical: "critical",
  high: "error",
  medium: "warning",
  low: "warning",
  info: "info",
};

export const pagerduty = defineChannel({
  delivers: "an event for each alert, which opens, acknowledges or resolves its incident",
  settings: {
    pagerdutyKey: tokenOrOff("integration key of a PagerDuty service (Events API v2)"),
    pagerdutyUrl: urlWithDefault("address of the Events API", "https://events.pagerduty.com/v2/enqueue"),
  },
  required: ["pagerdutyKey"],
  open: ({ pagerdutyKey: key, pagerdutyUrl: url }, { post }) => ({
    followsAlerts: true,
    messageMax: MESSAGE_MAX,
    send: (message, signal) =>
      sendOneByOne(message, (item, step) =>
        post({ url, body: JSON.stringify({ routing_key: key, ...eventOf(item, step) }), secrets: [key] }, signal),
      ),
  }),
});

function eventOf(item: MessageItem, step: AlertStep): object {
  const { alert, url } = item;
  const head = { dedup_key: alert.id };
  // A trigger with another severity changes the incident: there is no event of its own for that.
  if (step !== "trigger" && step !== "raise") return { ...head, event_action: step };
  const title = oneLine(alert.title, SUMMARY_CHARACTERS_MAX);
  return {
    ...head,
    event_action: "trigger",
    client: "Tocsin",
    client_url: url,
    links: [{ href: url, text: "Open the alert" }],
    payload: {
      summary: cut(`[${alert.severity}] ${title}`, SUMMARY_CHARACTERS_MAX),
      source: oneLine(alert.group?.value ?? "", NAME_CHARACTERS_MAX) || alert.source,
      severity: SEVERITIES[alert.severity],
      timestamp: formatTime(alert.lastEventAt),
      component: alert.source,
      class: oneLine(alert.rule.name, NAME_CHARACTERS_MAX),
      custom_details: detailsOf(item),
    },
  };
}

function detailsOf(item: MessageItem): Record<string, string> {
  const facts = [...alertFacts(item), ...closingTexts(item)].map(
    ([name, value]) => [oneLine(name, NAME_CHARACTERS_MAX), lines(value, DETAIL_CHARACTERS_MAX)] as const,
  );
  const description = lines(item.alert.description, DETAIL_CHARACTERS_MAX);
  return Object.fromEntries([["Description", description], ...facts, ["API", item.apiUrl]]) as Record<string, string>;
}
