import { UNTOUCHED, type AlertSummary } from "../model/alert.ts";
import type { Message } from "./message.ts";

export interface TestMessageParts {
  readonly deliveryId: string;
  readonly at: number;
  /** The link in the message. */
  readonly url: string;
  /** Who asked for it. */
  readonly reason: string;
}

/** A message about an alert that does not exist, to see whether a channel works. */
export function testMessage({ deliveryId, at, url, reason }: TestMessageParts): Message {
  const item = { reason: "created" as const, alert: testAlert(at, reason), url, apiUrl: url };
  return { deliveryId, isRepeat: false, at, items: [item], isTest: true };
}

function testAlert(now: number, reason: string): AlertSummary {
  return {
    ...UNTOUCHED,
    id: "alt_test",
    rule: { id: "rule_test", name: "tocsin.notify_test", description: "", tags: [] },
    foldKey: "",
    group: null,
    title: "Test message: this channel works",
    description: `${reason} There is no alert, and nothing to do.`,
    severity: "info",
    source: "custom",
    eventCount: 0,
    firstEventAt: now,
    lastEventAt: now,
    createdAt: now,
    enrichment: {},
  };
}
