import type { lookup as systemLookup } from "node:dns";
import { secretsOfAddress, withoutSecrets } from "../lib/redact.ts";
import { AddressRefused, readRetryAfter, send, type OutgoingAnswer } from "../lib/outgoing.ts";
import { oneLine } from "../lib/text.ts";
import type { ChannelPost, SendOutcome } from "./channel.ts";
import { withTlsAdvice } from "./tls-advice.ts";

// Posts a message over HTTP and classifies the answer.

const TIMEOUT_MS = 15_000;
const ANSWER_BYTES_MAX = 4096;
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
  { url, body, headers, secrets = [] }: ChannelPost,
  { allowsPrivate, lookup, signal }: PostOptions,
): Promise<SendOutcome> {
  const shown = (text: string) => presentable(text, [...secretsOfAddress(url), ...secrets]);
  try {
    const answer = await send({
      method: "POST",
      url,
      body,
      headers: { "Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin", ...headers },
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      allowsPrivate,
      remedy: PRIVATE_REMEDY,
      signal,
      ...(lookup && { lookup }),
    });
    return outcomeOf(answer, shown);
  } catch (error) {
    if (error instanceof AddressRefused) return { kind: "refused", error: shown(error.message) };
    const { code, message } = error as NodeJS.ErrnoException;
    const mayHaveArrived = !NOT_CONNECTED.has(code ?? "");
    return { kind: "failed", error: shown(withTlsAdvice(message || code || "no connection")), mayHaveArrived };
  }
}

function outcomeOf({ status, headers, body, isCut }: OutgoingAnswer, shown: (text: string) => string): SendOutcome {
  if (status >= 200 && status < 300) return { kind: "sent" };
  // The cut may be inside a secret, which redaction would then miss.
  const said = shown(isCut ? body.toString().replace(/\S+$/, "") : body.toString());
  const error = `answered ${status}${said === "" ? "" : `: ${said}`}`;
  if (status >= 300 && status < 400) return { kind: "refused", error: `${error}; redirects are not followed` };
  if (status >= 500 || status === 408 || status === 429) {
    const retryAfterMs = readRetryAfter(headers, Date.now());
    return { kind: "failed", error, mayHaveArrived: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  return { kind: "refused", error };
}

/** Redacts before it shortens: redaction would miss half a secret. */
function presentable(text: string, secrets: readonly string[]): string {
  const line = oneLine(text, ANSWER_BYTES_MAX);
  return oneLine(withoutSecrets(line, secrets), ANSWER_CHARACTERS_SHOWN_MAX);
}
