import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { Closing, Message } from "./message.ts";
import { UNTOUCHED, type AlertSummary } from "../model/alert.ts";
import { defaultSettings } from "../lib/setting-types.fixture.ts";
import { channelSettingShape, type ChannelSettings } from "./channels.ts";

// Peers of the channels: real servers on loopback.

export interface Received {
  readonly method: string;
  /** The path with its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: any;
}

interface Reply {
  readonly status: number;
  readonly text?: string;
  readonly headers?: Record<string, string>;
}

export interface HttpPeer {
  readonly url: string;
  /** The URL without a path. */
  readonly origin: string;
  readonly received: Received[];
  close(): Promise<void>;
}

/** `reply` gets the number of earlier requests. Undefined: the peer never answers. */
export async function startHttpPeer(
  reply: (before: number, received: Received) => Reply | undefined | Promise<Reply | undefined> = () => ({
    status: 200,
  }),
): Promise<HttpPeer> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { method = "", url: path = "", headers } = request;
    const isJson = /^application\/(?:json|x-ndjson)\b/.test(headers["content-type"] ?? "");
    const body = isJson && !text.includes("\n") ? (JSON.parse(text) as unknown) : undefined;
    const each = { method, path, headers, text, body };
    const answer = await reply(received.push(each) - 1, each);
    if (!answer) return;
    response.writeHead(answer.status, answer.headers).end(answer.text ?? "ok");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${origin}/hook/secret-path`,
    origin,
    received,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export interface MailPeer {
  readonly port: number;
  readonly mails: { readonly from: string; readonly to: string[]; readonly text: string; readonly secure: boolean }[];
  close(): Promise<void>;
}

export async function startMailPeer(options: SMTPServerOptions): Promise<MailPeer> {
  const mails: MailPeer["mails"] = [];
  const server = new SMTPServer({
    logger: false,
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom ? mailFrom.address : "",
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString(),
          secure: session.secure,
        });
        done();
      });
    },
    ...options,
  });
  // A client that rejects the certificate is not a failure of the server.
  server.on("error", () => undefined);
  const listening = server.listen(0, "127.0.0.1");
  await once(listening, "listening");
  return {
    port: (listening.address() as AddressInfo).port,
    mails,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** Every channel's settings at their defaults, and private addresses allowed: the peers are on loopback. */
export const NO_CHANNELS: ChannelSettings & { readonly privateAddresses: boolean } = {
  ...(defaultSettings(channelSettingShape()) as ChannelSettings),
  privateAddresses: true,
};

let made = 0;

export function someAlert(more: Partial<AlertSummary> = {}): AlertSummary {
  return {
    ...UNTOUCHED,
    id: `alt_${++made}`,
    rule: { id: "rule_1", name: "site.failed_logins", description: "Described.", tags: [] },
    foldKey: `["${made}"]`,
    group: { field: "raw.src_ip", value: "192.0.2.17" },
    title: "Failed logins from 192.0.2.17",
    description: "Five failed logins from one address.",
    severity: "high",
    source: "custom",
    eventCount: 5,
    firstEventAt: 1_700_000_000_000,
    lastEventAt: 1_700_000_060_000,
    createdAt: 1_700_000_061_000,
    enrichment: { geo: { country: "AT" } },
    ...more,
  };
}

/** A message about a resolved alert. */
export function closedMessageOf(alert: AlertSummary, closing: Partial<Closing> = {}): Message {
  const resolved: AlertSummary = { ...alert, status: "resolved", resolution: "false_positive" };
  const message = messageOf([resolved]);
  const how = { resolution: "false_positive", by: "ann", comment: null, actionsTaken: [], ...closing } as const;
  return { ...message, items: [{ ...message.items[0]!, reason: "resolved", closing: how }] };
}

export function messageOf(alerts: readonly AlertSummary[], more: Partial<Message> = {}): Message {
  return {
    deliveryId: "dlv_1",
    isRepeat: false,
    at: 1_700_000_062_000,
    items: alerts.map((alert) => ({
      reason: "created",
      alert,
      url: `https://tocsin.example/alerts?alert=${alert.id}`,
      apiUrl: `https://tocsin.example/v1/alerts/${alert.id}`,
    })),
    ...more,
  };
}
