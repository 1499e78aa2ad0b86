import { secretUrlOrOff, signingSecretOrOff } from "../../lib/setting-types.ts";
import { bodyHash } from "../../lib/signature.ts";
import { formatTime } from "../../lib/time.ts";
import { alertView } from "../../model/alert.ts";
import { defineChannel } from "../channel.ts";
import { countSeverities, digestOf, type Closing, type Message } from "../message.ts";

// Alerts as signed JSON to a URL of the operator. docs/notifications.md explains how to verify the signature.

const ALERTS_MAX = 100;
const BODY_BYTES_MAX = 1024 * 1024;

export const webhook = defineChannel({
  delivers: "JSON, signed",
  settings: {
    webhookUrl: secretUrlOrOff("URL that alerts are posted to as JSON"),
    webhookSecret: signingSecretOrOff("secret that signs each post"),
  },
  required: ["webhookUrl", "webhookSecret"],
  needs: [
    { setting: "webhookSecret", because: "webhookUrl", why: "it signs each post" },
    { setting: "webhookUrl", because: "webhookSecret", why: "nothing is posted without it" },
  ],
  open: ({ webhookUrl: url, webhookSecret: secret }, { post }) => ({
    send: (message, signal) => {
      const body = bodyOf(message);
      const timestamp = String(Math.floor(message.at / 1000));
      const headers = {
        "X-Tocsin-Timestamp": timestamp,
        "X-Tocsin-Signature": `v1=${bodyHash(secret, body, timestamp).toString("hex")}`,
        "X-Tocsin-Delivery": message.deliveryId,
        ...(message.isRepeat && { "X-Tocsin-Repeat": "true" }),
      };
      return post({ url, body, headers, secrets: [secret] }, signal);
    },
  }),
});

function bodyOf(message: Message): string {
  const { items } = message;
  const { shown } = digestOf(items, ALERTS_MAX);
  const included: string[] = [];
  let bytes = 0;
  for (const { reason, alert, url, apiUrl, closing } of shown) {
    const text = JSON.stringify({
      reason,
      url,
      api_url: apiUrl,
      alert: alertView(alert),
      ...(closing && { resolved: closingView(closing) }),
    });
    bytes += Buffer.byteLength(text);
    if (bytes > BODY_BYTES_MAX) break;
    included.push(text);
  }
  const head = JSON.stringify({
    delivery_id: message.deliveryId,
    repeat: message.isRepeat,
    sent_at: formatTime(message.at),
    total: items.length,
    omitted: items.length - included.length,
    by_severity: Object.fromEntries(countSeverities(items).map(({ severity, count }) => [severity, count])),
  });
  return `${head.slice(0, -1)},"notifications":[${included.join(",")}]}`;
}

function closingView({ resolution, by, comment, actionsTaken }: Closing): object {
  return { resolution, by, comment, actions_taken: actionsTaken };
}
