import { secretsOfAddress, withoutSecrets } from "../lib/hiding.ts";
import { AddressRefused, readRetryAfter, send, type OutgoingAnswer } from "../lib/outgoing.ts";
import { oneLine } from "../lib/text.ts";
import { withOurAdvice, type ChannelSettings, type Outcome, type Surroundings } from "./channel.ts";

// A message by HTTP, and what the answer to it means.

const TIMEOUT_MS = 15_000;
const ANSWER_BYTES_MAX = 4096;
const ANSWER_CHARACTERS_SHOWN_MAX = 200;
export const PRIVATE_REMEDY = "notifications.private_addresses allows private ones";
/** Errors of a connection that never stood: nothing can have arrived. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export interface Post {
  readonly url: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Besides the address, what must not be shown whatever the other side says. */
  readonly secrets?: readonly string[];
}

export async function post(
  { url, body, headers, secrets = [] }: Post,
  { privateAddresses }: Pick<ChannelSettings, "privateAddresses">,
  { lookup }: Surroundings,
  signal: AbortSignal,
): Promise<Outcome> {
  const shown = (text: string) => presentable(text, [...secretsOfAddress(url), ...secrets]);
  try {
    const answer = await send({
      method: "POST",
      url,
      body,
      headers: { "Content-Type": "application/json; charset=utf-8", "User-Agent": "tocsin", ...headers },
      timeoutMs: TIMEOUT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      allowsPrivate: privateAddresses,
      remedy: PRIVATE_REMEDY,
      signal,
      ...(lookup && { lookup }),
    });
    return outcomeOf(answer, shown);
  } catch (error) {
    if (error instanceof AddressRefused) return { kind: "refused", error: shown(error.message) };
    const { code, message } = error as NodeJS.ErrnoException;
    const mayHaveArrived = !NOT_CONNECTED.has(code ?? "");
    return { kind: "failed", error: shown(withOurAdvice(message || code || "no connection")), mayHaveArrived };
  }
}

function outcomeOf({ status, headers, body, isCut }: OutgoingAnswer, shown: (text: string) => string): Outcome {
  if (status >= 200 && status < 300) return { kind: "sent" };
  // Where it was cut may be in the middle of a secret, which would not be found.
  const said = shown(isCut ? body.toString().replace(/\S+$/, "") : body.toString());
  const error = `answered ${status}${said === "" ? "" : `: ${said}`}`;
  if (status >= 300 && status < 400) return { kind: "refused", error: `${error}; redirects are not followed` };
  if (status >= 500 || status === 408 || status === 429) {
    const retryAfterMs = readRetryAfter(headers, Date.now());
    return { kind: "failed", error, mayHaveArrived: false, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  }
  return { kind: "refused", error };
}

/** Secrets are looked for before it is cut to what is shown: half of one would not be found. */
function presentable(text: string, secrets: readonly string[]): string {
  const line = oneLine(text, ANSWER_BYTES_MAX);
  return oneLine(withoutSecrets(line, secrets), ANSWER_CHARACTERS_SHOWN_MAX);
}
