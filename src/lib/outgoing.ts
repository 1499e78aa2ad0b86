import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { lookup as lookupNow } from "node:dns/promises";
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { reachOf } from "./reach.ts";

// Requests to addresses that somebody has given us. The address that is connected to is the one that was checked, so
// that a name cannot point elsewhere in between; redirects are not followed; everything has an end.

export const RETRY_AFTER_MS_MAX = 3_600_000;

export interface OutgoingRequest {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** For all of it: finding the address, connecting, sending and reading. */
  readonly timeoutMs: number;
  /** What is longer is cut off there. */
  readonly answerBytesMax: number;
  /** Whether it may lead to a private, link-local or reserved address. */
  readonly allowsPrivate: boolean;
  /** What an operator can do where that is refused, to end the message with. */
  readonly remedy?: string | undefined;
  readonly signal?: AbortSignal;
  /** How names become addresses, where it is not the system's way. */
  readonly lookup?: typeof systemLookup;
}

export interface OutgoingAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly isCut: boolean;
}

/** Nothing was sent: it would have gone to where it may not. */
export class AddressRefused extends Error {
  constructor(host: string, address: string, remedy?: string) {
    const where = host === address ? address : `${host} is at ${address}, which`;
    super(`${where} is not an address of the internet${remedy === undefined ? "" : `; ${remedy}`}`);
    this.name = "AddressRefused";
  }
}

/** Rejects when there is no answer: with AddressRefused, or with what went wrong on the way. */
export async function send(request: OutgoingRequest): Promise<OutgoingAnswer> {
  const { method, headers, body, timeoutMs, allowsPrivate, remedy, lookup = systemLookup } = request;
  const url = new URL(request.url);
  const host = hostOf(url);
  // The system is not asked for the address of an address.
  if (!allowsPrivate && isIP(host) !== 0 && reachOf(host) !== "public") throw new AddressRefused(host, host, remedy);
  // Taken down with the answer: a signal of the system's would be held, with all that hangs on it, until it is due.
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), timeoutMs);
  const signal = request.signal ? AbortSignal.any([deadline.signal, request.signal]) : deadline.signal;
  const open = url.protocol === "https:" ? httpsRequest : httpRequest;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = open(
        url,
        {
          method,
          headers: { ...headers, ...(body !== undefined && { "Content-Length": Buffer.byteLength(body) }) },
          lookup: allowsPrivate ? lookup : guarded(lookup, remedy),
          // A connection that is kept was checked for another name, perhaps.
          agent: false,
          signal,
        },
        resolve,
      );
      sent.on("error", reject);
      sent.end(body);
    });
    return {
      ...(await read(response, request.answerBytesMax)),
      status: response.statusCode!,
      headers: response.headers,
    };
  } catch (error) {
    if (deadline.signal.aborted) throw new Error(`no answer within ${timeoutMs / 1000} s`, { cause: error });
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Why nothing would be sent there; undefined where it would, and where nobody knows the name now. */
export async function refusalOf(url: string, remedy: string): Promise<string | undefined> {
  const host = hostOf(new URL(url));
  const found = await lookupNow(host, { all: true }).catch((): LookupAddress[] => []);
  const wrong = found.find(({ address }) => reachOf(address) !== "public");
  return wrong && new AddressRefused(host, wrong.address, remedy).message;
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** How long the other side asks to be left alone, up to an hour: seconds or a date. What cannot be read is as if it were not there. */
export function readRetryAfter(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const text = headers["retry-after"];
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), RETRY_AFTER_MS_MAX);
}

function guarded(lookup: typeof systemLookup, remedy: string | undefined): LookupFunction {
  return (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, found) => {
      const addresses = found as LookupAddress[] | undefined;
      if (error || !addresses) return done(error, []);
      const wrong = addresses.find(({ address }) => reachOf(address) !== "public");
      if (wrong) return done(new AddressRefused(host, wrong.address, remedy), []);
      if (options.all) return done(null, addresses);
      const [first] = addresses;
      done(null, first!.address, first!.family);
    });
  };
}

async function read(response: IncomingMessage, bytesMax: number): Promise<Pick<OutgoingAnswer, "body" | "isCut">> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    // Leaving the loop hangs up.
    if (bytes > bytesMax) break;
  }
  return { body: Buffer.concat(chunks).subarray(0, bytesMax), isCut: bytes > bytesMax };
}
