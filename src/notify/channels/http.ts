import { choice, secretTextOrOff, secretUrlOrOff, textOrOff, word } from "../../lib/setting-types.ts";
import { lines, oneLine } from "../../lib/text.ts";
import { formatTime } from "../../lib/time.ts";
import { alertView } from "../../model/alert.ts";
import { defineChannel } from "../channel.ts";
import { digestOf, headlineOf, type Message } from "../message.ts";
import { plainLines } from "../message-text.ts";
import {
  parseTemplate,
  renderTemplate,
  TEMPLATE_FIELDS,
  type MessageTemplate,
  type TemplateEscape,
  type InsertedValues,
} from "../message-template.ts";

// Requests whose URL and body the operator writes as templates, for services that have no channel of their own.

const ALERTS_MAX = 50;
const ALERTS_BYTES_MAX = 512 * 1024;
const HEADLINE_CHARACTERS_MAX = 300;
const TEXT_CHARACTERS_MAX = 4000;

export const http = defineChannel({
  delivers: "a request with a body of your own, from a template",
  settings: {
    httpUrl: secretUrlOrOff("URL that gets the request; its path and query may have fields such as {{severity}}"),
    httpTemplate: textOrOff("body of the request", "a template with at least one field, such as {{title}}", /\{\{/),
    httpMethod: choice("method of the request", "POST", ["POST", "PUT"]),
    httpContentType: word(
      "type of the body; it decides how fields are escaped",
      "application/json",
      /^[a-z]+\/[\w.+-]+$/,
      "a media type without parameters",
    ),
    httpAuthorization: secretTextOrOff(
      "value of the Authorization header",
      "text such as Bearer <token>",
      /^[\x21-\x7e](?:[\x20-\x7e]{2,2000}[\x21-\x7e])$/,
    ),
    httpPer: choice("what gets a request: a message, which may be a digest, or each notification", "message", [
      "message",
      "notification",
    ]),
  },
  required: ["httpUrl", "httpTemplate"],
  needs: [
    { setting: "httpTemplate", because: "httpUrl", why: "it is the body of the request" },
    { setting: "httpUrl", because: "httpTemplate", why: "nothing is sent without it" },
    { setting: "httpUrl", because: "httpAuthorization", why: "nothing is sent without it" },
  ],
  findConflicts: ({ httpUrl, httpTemplate, httpContentType }) => [
    ...(httpUrl === null ? [] : faultsOfUrl(httpUrl).map((message) => ({ setting: "httpUrl" as const, message }))),
    ...(httpTemplate === null
      ? []
      : faultsOfBody(httpTemplate, httpContentType).map((message) => ({ setting: "httpTemplate" as const, message }))),
  ],
  open: (settings, { post }) => {
    const { httpMethod: method, httpContentType: type, httpAuthorization: authorization } = settings;
    const url = parseTemplate(settings.httpUrl) as MessageTemplate;
    const body = parseTemplate(settings.httpTemplate) as MessageTemplate;
    const headers = {
      "Content-Type": /^text\/|json|xml|urlencoded/.test(type) ? `${type}; charset=utf-8` : type,
      ...(authorization !== null && { Authorization: authorization }),
    };
    // The word before the token, such as Bearer, is no secret.
    const secrets = [settings.httpUrl, ...(authorization?.split(" ") ?? []).slice(-1), authorization ?? ""];
    return {
      ...(settings.httpPer === "notification" && { messageMax: 1 }),
      send: (message, signal) => {
        const values = valuesOf(message);
        const rendered = renderTemplate(url, values, "url");
        return post(
          { method, url: rendered, body: renderTemplate(body, values, escapeFor(type)), headers, secrets },
          signal,
        );
      },
    };
  },
});

function escapeFor(type: string): TemplateEscape {
  if (/json/.test(type)) return "string";
  if (/urlencoded/.test(type)) return "url";
  return /html|xml/.test(type) ? "html" : "text";
}

/** Fields may not decide which host gets the request. */
function faultsOfUrl(text: string): string[] {
  const template = parseTemplate(text);
  if ("fault" in template) return [template.fault];
  const [, authority = ""] = /^https?:\/\/([^/?#]*)/i.exec(text) ?? [];
  if (authority.includes("{{")) return ["has a field before its path: fields are for the path and the query"];
  const others = template.filter(
    (part) => typeof part === "object" && part.escape !== undefined && part.escape !== "url",
  );
  return others.length > 0 ? ["has a field with another escape than url"] : [];
}

function faultsOfBody(text: string, type: string): string[] {
  const template = parseTemplate(text);
  if ("fault" in template) return [template.fault];
  if (!/json/.test(type)) return [];
  try {
    JSON.parse(renderTemplate(template, SAMPLE_VALUES, escapeFor(type)));
    return [];
  } catch (error) {
    return [`does not become JSON: ${oneLine((error as Error).message, HEADLINE_CHARACTERS_MAX)}`];
  }
}

function valuesOf(message: Message): InsertedValues {
  const { items, deliveryId, at, isRepeat } = message;
  const { shown } = digestOf(items, ALERTS_MAX);
  const { alert, reason, url, apiUrl, closing } = shown[0]!;
  const limits = { alertsMax: 10, descriptionCharactersMax: TEXT_CHARACTERS_MAX };
  return {
    headline: headlineOf(message, HEADLINE_CHARACTERS_MAX),
    text: plainLines(message, limits).join("\n").trim(),
    count: items.length,
    alerts: alertsWithin(shown),
    delivery_id: deliveryId,
    sent_at: formatTime(at),
    repeat: isRepeat,
    alert_id: alert.id,
    reason,
    severity: alert.severity,
    status: alert.status,
    title: oneLine(alert.title, HEADLINE_CHARACTERS_MAX),
    description: lines(alert.description, TEXT_CHARACTERS_MAX),
    rule: alert.rule.name,
    tags: alert.rule.tags,
    source: alert.source,
    group_field: alert.group?.field ?? null,
    group_value: alert.group === null ? null : oneLine(alert.group.value, HEADLINE_CHARACTERS_MAX),
    event_count: alert.eventCount,
    first_event_at: formatTime(alert.firstEventAt),
    last_event_at: formatTime(alert.lastEventAt),
    url,
    api_url: apiUrl,
    resolution: closing?.resolution ?? null,
    resolved_by: closing?.by ?? null,
    comment: closing?.comment == null ? null : lines(closing.comment, TEXT_CHARACTERS_MAX),
  };
}

function alertsWithin(shown: Message["items"]): object[] {
  const kept: object[] = [];
  let bytes = 0;
  for (const { reason, url, apiUrl, alert } of shown) {
    const item = { reason, url, api_url: apiUrl, alert: alertView(alert) };
    bytes += Buffer.byteLength(JSON.stringify(item));
    if (bytes > ALERTS_BYTES_MAX) break;
    kept.push(item);
  }
  return kept;
}

/** Everything that could end a string. */
const SAMPLE_TEXT = '"}\\\n';
const SAMPLES: Readonly<Record<string, unknown>> = { count: 1, event_count: 1, repeat: false, tags: [], alerts: [] };
const SAMPLE_VALUES = Object.fromEntries(
  Object.keys(TEMPLATE_FIELDS).map((name) => [name, SAMPLES[name] ?? SAMPLE_TEXT]),
) as InsertedValues;
