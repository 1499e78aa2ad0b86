import { formatTime } from "../../lib/time.ts";
import { bodyHash } from "../../lib/signature.ts";
import { alertView } from "../../model/alert.ts";
import type { OpenChannel } from "../channel.ts";
import { countSeverities, digestOf, type Closing, type Message } from "../message.ts";
import { post } from "../post.ts";

// Alerts as JSON to an address of the operator's, signed. docs/notifications.md has what a receiver does with it.

const ALERTS_MAX = 100;
const BODY_BYTES_MAX = 1024 * 1024;

export const openWebhook: OpenChannel = (settings, surroundings) => {
  const { webhookUrl: url, webhookSecret: secret } = settings;
  if (url === null || secret === null) return undefined;
  return {
    send: (message, signal) => {
      const body = bodyOf(message);
      const timestamp = String(Math.floor(message.at / 1000));
      const headers = {
        "X-Tocsin-Timestamp": timestamp,
        "X-Tocsin-Signature": `v1=${bodyHash(secret, body, timestamp).toString("hex")}`,
        "X-Tocsin-Delivery": message.deliveryId,
        ...(message.isRepeat && { "X-Tocsin-Repeat": "true" }),
      };
      return post({ url, body, headers, secrets: [secret] }, settings, surroundings, signal);
    },
  };
};

function bodyOf(message: Message): string {
  const { items } = message;
  const { shown } = digestOf(items, ALERTS_MAX);
  const told: string[] = [];
  let bytes = 0;
  for (const { reason, alert, url, closing } of shown) {
    const text = JSON.stringify({
      reason,
      url,
      alert: alertView(alert),
      ...(closing && { resolved: viewOf(closing) }),
    });
    bytes += Buffer.byteLength(text);
    if (bytes > BODY_BYTES_MAX) break;
    told.push(text);
  }
  const head = JSON.stringify({
    delivery_id: message.deliveryId,
    repeat: message.isRepeat,
    sent_at: formatTime(message.at),
    total: items.length,
    omitted: items.length - told.length,
    by_severity: Object.fromEntries(countSeverities(items).map(({ severity, count }) => [severity, count])),
  });
  return `${head.slice(0, -1)},"notifications":[${told.join(",")}]}`;
}

function viewOf({ resolution, by, comment, actionsTaken }: Closing): object {
  return { resolution, by, comment, actions_taken: actionsTaken };
}
