import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { formatTime } from "../lib/time.ts";
import { limitHeaders, SECURITY_HEADERS, tooMany } from "./headers.ts";
import type { Limits } from "./limits.ts";
import { Problem, problemBody } from "./problems.ts";

/** For the client to read its answer: to let go at once would throw away what it has not read yet. */
const LINGER_MS = 1000;

export interface BrokenRequestOptions {
  readonly limits: Limits;
  readonly headerBytesMax: number;
  readonly nextId: () => string;
  readonly now: () => number;
}

/**
 * What is not HTTP, or has more headers than we read, never becomes a request: it is answered on the bare socket, and
 * counts against the address that it comes from.
 */
export function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  { limits, headerBytesMax, nextId, now }: BrokenRequestOptions,
): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const at = now();
  const verdict = limits.takeForAddress(socket.remoteAddress ?? "");
  const problem = verdict.allowed ? problemOf(error, headerBytesMax) : tooMany(verdict, at);
  const requestId = nextId();
  const body = JSON.stringify(problemBody(problem, { request_id: requestId, timestamp: formatTime(at) }));
  const headers = {
    ...SECURITY_HEADERS,
    ...limitHeaders(verdict),
    ...problem.headers,
    "X-Request-Id": requestId,
    "Cache-Control": "no-store",
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    Connection: "close",
  };
  // Who goes on sending, and never closes its side, keeps nothing of ours.
  const letGo = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(letGo));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n${body}`);
}

function problemOf({ code }: { code?: string }, headerBytesMax: number): Problem {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return new Problem("request_timeout", "the request took too long to arrive");
  const message =
    code === "HPE_HEADER_OVERFLOW"
      ? `the headers are larger than ${headerBytesMax} bytes`
      : "this is not a valid HTTP request";
  return new Problem("validation_error", message);
}
