import { AddressRefused, send, type OutgoingAnswer } from "../lib/outgoing.ts";
import { oneLine } from "../lib/text.ts";
import type { ChannelSettings, Outcome, Surroundings } from "./channel.ts";

// A message by HTTP, and what the answer to it means.

const TIMEOUT_MS = 15_000;
const ANSWER_BYTES_MAX = 4096;
const ANSWER_CHARACTERS_SHOWN_MAX = 200;
const RETRY_AFTER_MS_MAX = 3_600_000;
/** Errors of a connection that never stood: nothing can have arrived. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export interface Post {
  readonly url: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function post(
  { url, body, headers }: Post,
  { privateAddresses }: Pick<ChannelSettings, "privateAddresses">,
  { lookup }: Surroundings,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const answer = await send({
      method: "POST",
      url,
      body,
      headers: { "Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin", ...headers },
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      allowsPrivate: privateAddresses,
      signal,
      ...(lookup && { lookup }),
    });
    return outcomeOf(answer);
  } catch (error) {
    if (error instanceof AddressRefused) return { kind: "refused", error: error.message };
    const { code, message } = error as NodeJS.ErrnoException;
    const mayHaveArrived = !NOT_CONNECTED.has(code ?? "");
    return {
      kind: "failed",
      error: oneLine(message || code || "no connection", ANSWER_CHARACTERS_SHOWN_MAX),
      mayHaveArrived,
    };
  }
}

function outcomeOf({ status, headers, body }: OutgoingAnswer): Outcome {
  if (status >= 200 && status < 300) return { kind: "sent" };
  const said = oneLine(body.toString(), ANSWER_CHARACTERS_SHOWN_MAX);
  const error = `answered ${status}${said === "" ? "" : `: ${said}`}`;
  if (status >= 300 && status < 400) return { kind: "refused", error: `${error}; redirects are not followed` };
  if (status >= 500 || status === 408 || status === 429) {
    const retryAfterMs = readRetryAfter(headers["retry-after"]);
    return { kind: "failed", error, mayHaveArrived: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  return { kind: "refused", error };
}

/** Seconds or a date; what cannot be read is as if it were not there. */
function readRetryAfter(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX);
}
