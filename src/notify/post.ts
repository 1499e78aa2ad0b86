import type { lookup as systemLookup } from "node:dns";
import { secretsOfAddress, withoutSecrets } from "../lib/redact.ts";
import { AddressRefused, readRetryAfter, RETRY_AFTER_MS_MAX, send, type OutgoingAnswer } from "../lib/outgoing.ts";
import { oneLine } from "../lib/text.ts";
import type { ChannelPost, PeerAnswer, SendOutcome } from "./channel.ts";
import { withTlsAdvice } from "./tls-advice.ts";

// Posts a message over HTTP and classifies the answer.

const TIMEOUT_MS = 15_000;
const ANSWER_BYTES_MAX = 4096;
/** For answers that are read and not only shown. */
const READ_ANSWER_BYTES_MAX = 256 * 1024;
const ANSWER_CHARACTERS_SHOWN_MAX = 200;
export const PRIVATE_REMEDY = "notifications.private_addresses allows private ones";
/** Errors before the connection was established: the message cannot have arrived. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

interface PostOptions {
  readonly allowsPrivate: boolean;
  readonly lookup?: typeof systemLookup | undefined;
  readonly signal: AbortSignal;
}

export async function post(
  { method = "POST", url, body, headers, secrets = [], delayMsOf, outcomeOf }: ChannelPost,
  { allowsPrivate, lookup, signal }: PostOptions,
): Promise<SendOutcome> {
  const shown = (text: string) => presentable(text, [...secretsOfAddress(url), ...secrets]);
  try {
    const answer = await send({
      method,
      url,
      body,
      headers: { "Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin", ...headers },
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: outcomeOf ? READ_ANSWER_BYTES_MAX : ANSWER_BYTES_MAX,
      allowsPrivate,
      remedy: PRIVATE_REMEDY,
      signal,
      ...(lookup && { lookup }),
    });
    if (outcomeOf && isOk(answer)) return redacted(outcomeIn(answer, outcomeOf), shown);
    return outcomeOfStatus(answer, shown, delayMsOf);
  } catch (error) {
    if (error instanceof AddressRefused) return { kind: "refused", error: shown(error.message) };
    const { code, message } = error as NodeJS.ErrnoException;
    const mayHaveArrived = !NOT_CONNECTED.has(code ?? "");
    return { kind: "failed", error: shown(withTlsAdvice(message || code || "no connection")), mayHaveArrived };
  }
}

function isOk({ status }: OutgoingAnswer): boolean {
  return status >= 200 && status < 300;
}

/** An answer that cannot be read says nothing: the message may have arrived. */
function outcomeIn({ body, isCut }: OutgoingAnswer, outcomeOf: (answer: PeerAnswer) => SendOutcome): SendOutcome {
  const answer = isCut ? undefined : readObject(body.toString());
  return answer ? outcomeOf(answer) : { kind: "failed", error: "the answer is not JSON", mayHaveArrived: true };
}

function redacted(outcome: SendOutcome, shown: (text: string) => string): SendOutcome {
  return outcome.error === undefined ? outcome : { ...outcome, error: shown(outcome.error) };
}

function outcomeOfStatus(
  answer: OutgoingAnswer,
  shown: (text: string) => string,
  delayMsOf: ChannelPost["delayMsOf"],
): SendOutcome {
  const { status, headers, body, isCut } = answer;
  if (isOk(answer)) return { kind: "sent" };
  // The cut may be inside a secret, which redaction would then miss.
  const said = shown(isCut ? body.toString().replace(/\S+$/, "") : body.toString());
  const error = `answered ${status}${said === "" ? "" : `: ${said}`}`;
  if (status >= 300 && status < 400) return { kind: "refused", error: `${error}; redirects are not followed` };
  if (status >= 500 || status === 408 || status === 429) {
    const retryAfterMs = longest(readRetryAfter(headers, Date.now()), delayMsOf && delayIn(body, delayMsOf));
    return { kind: "failed", error, mayHaveArrived: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  return { kind: "refused", error };
}

function longest(...delays: (number | undefined)[]): number | undefined {
  const known = delays.filter((delay) => delay !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}

/** The delay in the body, up to an hour; undefined if it has none. */
function delayIn(body: Buffer, delayMsOf: (answer: PeerAnswer) => number | undefined): number | undefined {
  const answer = readObject(body.toString());
  const ms = answer && delayMsOf(answer);
  return ms === undefined || !(ms >= 0) ? undefined : Math.min(Math.ceil(ms), RETRY_AFTER_MS_MAX);
}

function readObject(text: string): PeerAnswer | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as PeerAnswer) : undefined;
  } catch {
    // A proxy in between answers with a page, which has no delay.
    return undefined;
  }
}

/** Redacts before it shortens: redaction would miss half a secret. */
function presentable(text: string, secrets: readonly string[]): string {
  const line = oneLine(text, ANSWER_BYTES_MAX);
  return oneLine(withoutSecrets(line, secrets), ANSWER_CHARACTERS_SHOWN_MAX);
}
