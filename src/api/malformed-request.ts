import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { formatTime } from "../lib/time.ts";
import { limitHeaders, SECURITY_HEADERS, rateLimited } from "./response-headers.ts";
import type { RateLimits } from "./rate-windows.ts";
import { Problem, problemBody } from "./problems.ts";

/** Time for the client to read the response; an immediate close would discard unread data. */
const LINGER_MS = 1000;

export interface MalformedRequestOptions {
  readonly limits: RateLimits;
  readonly headerBytesMax: number;
  readonly nextId: () => string;
  readonly now: () => number;
}

/**
 * Responds on the bare socket to input that is not HTTP or exceeds the header limit and so never becomes a request. It
 * counts against the rate limit of the address.
 */
export function respondToMalformedRequest(
  error: Error & { code?: string },
  socket: Socket,
  { limits, headerBytesMax, nextId, now }: MalformedRequestOptions,
): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const at = now();
  const result = limits.countForAddress(socket.remoteAddress ?? "");
  const problem = result.allowed ? problemOf(error, headerBytesMax) : rateLimited(result, at);
  const requestId = nextId();
  const body = JSON.stringify(problemBody(problem, { request_id: requestId, timestamp: formatTime(at) }));
  const headers = {
    ...SECURITY_HEADERS,
    ...limitHeaders(result),
    ...problem.headers,
    "X-Request-Id": requestId,
    "Cache-Control": "no-store",
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    Connection: "close",
  };
  // Frees the socket of a client that keeps sending and never closes its side.
  const linger = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(linger));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n${body}`);
}

function problemOf({ code }: { code?: string }, headerBytesMax: number): Problem {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new Problem("request_timeout", "the request was not complete in time");
  const message =
    code === "HPE_HEADER_OVERFLOW"
      ? `the request headers are larger than ${headerBytesMax} bytes`
      : "this is not a valid HTTP request";
  return new Problem("validation_error", message);
}
