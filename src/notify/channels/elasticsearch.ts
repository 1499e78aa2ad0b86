import { secretUrlOrOff, tokenOrOff, word } from "../../lib/setting-types.ts";
import { formatTime } from "../../lib/time.ts";
import { alertView } from "../../model/alert.ts";
import { SEVERITIES } from "../../model/event.ts";
import { defineChannel, type PeerAnswer, type SendOutcome } from "../channel.ts";
import { alertsOf, type MessageItem } from "../message.ts";

// Alerts as documents of Elasticsearch or OpenSearch, written by _bulk with the id and the version of the alert: a document holds
// the latest state, and a repeated or late request changes nothing.

const MESSAGE_MAX = 100;
/** Nothing but failures, so that the answer stays small. */
const FILTER = "filter_path=errors,items.*._id,items.*.status,items.*.error.type,items.*.error.reason";
/** A newer version is there already. */
const CONFLICT = 409;

export const elasticsearch = defineChannel({
  delivers: "a document for each alert, by `_bulk`",
  settings: {
    elasticsearchUrl: secretUrlOrOff("base URL of an Elasticsearch or OpenSearch cluster that gets alerts"),
    elasticsearchKey: tokenOrOff("API key of the cluster, encoded; or user and password in the URL"),
    elasticsearchIndex: word(
      "index of the documents; not a data stream",
      "tocsin-alerts",
      /^[a-z0-9][a-z0-9._-]{0,199}$/,
      "a name in lower case",
    ),
  },
  required: ["elasticsearchUrl"],
  needs: [{ setting: "elasticsearchUrl", because: "elasticsearchKey", why: "nothing is sent without it" }],
  open: ({ elasticsearchUrl, elasticsearchKey: key, elasticsearchIndex: index }, { post }) => {
    const base = new URL(elasticsearchUrl);
    base.pathname = `${base.pathname.replace(/\/+$/, "")}/_bulk`;
    base.search = FILTER;
    return {
      followsAlerts: true,
      messageMax: MESSAGE_MAX,
      send: ({ items, untold }, signal) => {
        const alerts = alertsOf(items).filter(({ alert }) => !untold || untold.includes(alert.id));
        return post(
          {
            url: base.href,
            body: alerts.map((item) => `${actionOf(item, index)}\n${documentOf(item)}\n`).join(""),
            headers: {
              "Content-Type": "application/x-ndjson",
              ...(key !== null && { Authorization: `ApiKey ${key}` }),
            },
            secrets: key === null ? [] : [key],
            outcomeOf: (answer) => outcomeOf(answer, alerts.length),
          },
          signal,
        );
      },
    };
  },
});

function actionOf({ alert }: MessageItem, index: string): string {
  const { id, version } = alert;
  return JSON.stringify({ index: { _index: index, _id: id, version, version_type: "external_gte" } });
}

function documentOf({ alert, reason, url, apiUrl, closing }: MessageItem): string {
  return JSON.stringify({
    "@timestamp": formatTime(alert.createdAt),
    message: alert.title,
    // ECS wants a number that grows with the severity.
    event: { kind: "alert", severity: SEVERITIES.length - SEVERITIES.indexOf(alert.severity) },
    rule: { id: alert.rule.id, name: alert.rule.name },
    tocsin: {
      reason,
      url,
      api_url: apiUrl,
      resolved_by: closing?.by ?? null,
      comment: closing?.comment ?? null,
      alert: alertView(alert),
    },
  });
}

interface BulkItem {
  readonly id: string;
  readonly status: number;
  readonly error: string;
}

function outcomeOf({ errors, items }: PeerAnswer, total: number): SendOutcome {
  if (errors === false) return { kind: "sent" };
  const failures = failuresIn(items);
  if (!failures) return { kind: "failed", error: "the answer is not one of _bulk", mayHaveArrived: true };
  const later = failures.filter(({ status }) => status === 429 || status >= 500);
  const refused = failures.filter((item) => !later.includes(item) && item.status !== CONFLICT);
  const said = (item: BulkItem) => `answered ${item.status}: ${item.error}`;
  if (later.length > 0) {
    const error = `${later.length} of ${total} documents are left: ${said(later[0]!)}`;
    if (later.length === total) return { kind: "failed", error, mayHaveArrived: false };
    return { kind: "partly", error, untold: later.map(({ id }) => id) };
  }
  if (refused.length === 0) return { kind: "sent" };
  const error = `refused for ${refused.length} of ${total} documents: ${said(refused[0]!)}`;
  return refused.length === total ? { kind: "refused", error } : { kind: "sent", error };
}

function failuresIn(items: unknown): BulkItem[] | undefined {
  if (!Array.isArray(items)) return undefined;
  return items.flatMap((item: unknown) => {
    const { _id: id, status, error } = ((item as PeerAnswer | null)?.["index"] ?? {}) as PeerAnswer;
    if (typeof error !== "object" || error === null) return [];
    const { type, reason } = error as PeerAnswer;
    return [{ id: String(id), status: Number(status), error: `${String(type)}: ${String(reason)}` }];
  });
}
