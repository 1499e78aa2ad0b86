import type { SendOutcome } from "./channel.ts";
import { alertsOf, type Message, type MessageItem } from "./message.ts";

// Messages to services that keep a record of each alert: one after the other, each to its present status. The status at the
// time of sending counts, not the notification's: after an outage, a retried message must not open what was resolved since.

/** The notifications of one message: each takes a request or two. */
export const MESSAGE_MAX = 50;
/** Below the limit of an attempt: what is left is sent in the next one. */
const BATCH_MS_MAX = 40_000;
/** A wrong key refuses everything. */
const REFUSALS_MAX = 3;

/** The steps that bring the service's record of an alert to its status. */
export type AlertStep = "trigger" | "raise" | "acknowledge" | "resolve";

/** `reasons` are all notifications of the alert in the message. */
function stepsOf({ alert, reason }: MessageItem, reasons: readonly string[], isTest: boolean): AlertStep[] {
  if (isTest) return ["trigger", "resolve"];
  if (alert.status === "resolved") return ["resolve"];
  const isNews = reasons.some((each) => each === "created" || each === "reopened" || each === "severity_raised");
  if (alert.status === "acknowledged") return isNews ? ["trigger", "acknowledge"] : ["acknowledge"];
  return reason === "severity_raised" ? ["trigger", "raise"] : ["trigger"];
}

/** Takes every step of every alert. The ids of the alerts that are left are the recipients still untold. */
export async function sendOneByOne(
  message: Message,
  take: (item: MessageItem, step: AlertStep) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  const { items, untold, isTest = false } = message;
  const queue = alertsOf(items).filter(({ alert }) => !untold || untold.includes(alert.id));
  const endsAt = performance.now() + BATCH_MS_MAX;
  let sent = 0;
  const refusals: string[] = [];
  for (const [nth, item] of queue.entries()) {
    const reasons = items.filter(({ alert }) => alert.id === item.alert.id).map(({ reason }) => reason);
    const outcome = await takeAll(stepsOf(item, reasons, isTest), (step) => take(item, step));
    if (outcome.kind === "refused") refusals.push(outcome.error);
    else if (outcome.kind === "sent") sent++;
    else if (sent === 0 && refusals.length === 0) return outcome;
    else return partly(queue.slice(nth), outcome);
    if (sent === 0 && refusals.length >= REFUSALS_MAX) break;
    const rest = queue.slice(nth + 1);
    if (rest.length > 0 && performance.now() > endsAt) return partly(rest, { error: "the service is slow" });
  }
  const [error] = refusals;
  if (error === undefined) return { kind: "sent" };
  if (sent === 0) return { kind: "refused", error };
  return { kind: "sent", error: `refused for ${refusals.length} of ${queue.length} alerts: ${error}` };
}

async function takeAll(
  steps: readonly AlertStep[],
  take: (step: AlertStep) => Promise<SendOutcome>,
): Promise<SendOutcome> {
  for (const step of steps) {
    const outcome = await take(step);
    if (outcome.kind !== "sent") return outcome;
  }
  return { kind: "sent" };
}

function partly(rest: readonly MessageItem[], { error, retryAfterMs }: PartialFailure): SendOutcome {
  return {
    kind: "partly",
    error: `${rest.length} ${rest.length === 1 ? "alert is" : "alerts are"} left: ${error}`,
    untold: rest.map(({ alert }) => alert.id),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

interface PartialFailure {
  readonly error: string;
  readonly retryAfterMs?: number;
}
