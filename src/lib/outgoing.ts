import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { lookup as lookupNow } from "node:dns/promises";
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { addressScope } from "./address-scope.ts";

// Requests to configured URLs, guarded against SSRF. The request connects to the address that was checked, so that a name
// cannot be rebound in between. Redirects are not followed; time and size are limited.

export const RETRY_AFTER_MS_MAX = 3_600_000;

export interface OutgoingRequest {
  readonly method: "GET" | "POST" | "PUT";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Limit for the whole request: name resolution, connecting, sending and reading. */
  readonly timeoutMs: number;
  /** A longer answer is truncated. */
  readonly answerBytesMax: number;
  /** Allows private, link-local and reserved addresses. */
  readonly allowsPrivate: boolean;
  /** Advice for the operator, appended to the message of a refusal. */
  readonly remedy?: string | undefined;
  readonly signal?: AbortSignal;
  /** Replaces the system's name resolution. */
  readonly lookup?: typeof systemLookup;
}

export interface OutgoingAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly isCut: boolean;
}

/** The request was not sent: its address is not allowed. */
export class AddressRefused extends Error {
  constructor(host: string, address: string, remedy?: string) {
    const where = host === address ? address : `${host} is at ${address}, which`;
    super(`${where} is not a public address${remedy === undefined ? "" : `; ${remedy}`}`);
    this.name = "AddressRefused";
  }
}

/** Rejects if there is no answer: with AddressRefused or the error of the connection. */
export async function send(request: OutgoingRequest): Promise<OutgoingAnswer> {
  const { method, headers, body, timeoutMs, allowsPrivate, remedy, lookup = systemLookup } = request;
  const url = new URL(request.url);
  const host = hostOf(url);
  // Literal addresses skip name resolution, and with it the guarded lookup.
  if (!allowsPrivate && isIP(host) !== 0 && addressScope(host) !== "public")
    throw new AddressRefused(host, host, remedy);
  // Cleared with the answer: AbortSignal.timeout would retain everything that listens to it until it fires.
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
          // No reuse: a kept connection may have been checked for another name.
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

/** Why a request to the URL would be refused; undefined if it is allowed or the name cannot be resolved now. */
export async function refusalOf(url: string, remedy: string): Promise<string | undefined> {
  const host = hostOf(new URL(url));
  const found = await lookupNow(host, { all: true }).catch((): LookupAddress[] => []);
  const wrong = found.find(({ address }) => addressScope(address) !== "public");
  return wrong && new AddressRefused(host, wrong.address, remedy).message;
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

/** The delay of a Retry-After header, in seconds or as a date, up to an hour; undefined if absent or malformed. */
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
      const wrong = addresses.find(({ address }) => addressScope(address) !== "public");
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
    // Leaving the loop closes the connection.
    if (bytes > bytesMax) break;
  }
  return { body: Buffer.concat(chunks).subarray(0, bytesMax), isCut: bytes > bytesMax };
}
