import type { RateLimitResult } from "./rate-windows.ts";
import { Problem } from "./problems.ts";

// Headers of responses.

/**
 * Security headers of every response; the docs page has its own policy. They are constants, because the usual plugin
 * computes them for each request, which takes a fifth of the time of the whole request.
 */
export const SECURITY_HEADERS = {
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  // Browsers apply it only over TLS. It leaves out subdomains, which may belong to other services.
  "Strict-Transport-Security": "max-age=31536000",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

const integer = { type: "integer" } as const;
/** Header descriptions for the OpenAPI document. */
export const RESPONSE_HEADERS = {
  "X-Request-Id": { description: "same as `meta.request_id`", schema: { type: "string" } },
  "X-RateLimit-Limit": { description: "limit of the window with the fewest requests remaining", schema: integer },
  "X-RateLimit-Remaining": { description: "requests remaining in that window", schema: integer },
  "X-RateLimit-Reset": { description: "end of that window, in seconds since 1970", schema: integer },
  Location: { description: "path of the created resource", schema: { type: "string" } },
  ETag: { description: "revision of the rule, to send as `If-Match`", schema: { type: "string" } },
  "Idempotency-Replayed": {
    description: "`true`: nothing was stored; this is the first response again",
    schema: { type: "string" },
  },
  "Set-Cookie": { description: "the cookie of the session", schema: { type: "string" } },
  "Content-Disposition": { description: "name of the file", schema: { type: "string" } },
  "WWW-Authenticate": { description: "the authentication scheme", schema: { type: "string" } },
  "X-Tocsin-Incomplete": {
    description:
      "present only if the response is incomplete: the UTC days in its range whose file was lost or damaged, each with the number of missing rows, such as `2026-11-09 (848), 2026-11-10 (3)`",
    schema: { type: "string" },
  },
  "Retry-After": { description: "seconds to wait before the next attempt", schema: integer },
} as const;
export type HeaderName = keyof typeof RESPONSE_HEADERS;

export function limitHeaders({ limit, remaining, resetAt }: RateLimitResult) {
  return {
    "X-RateLimit-Limit": limit,
    "X-RateLimit-Remaining": remaining,
    "X-RateLimit-Reset": Math.ceil(resetAt / 1000),
  };
}

export function rateLimited({ limit, window, resetAt }: RateLimitResult, now: number): Problem {
  const seconds = Math.max(1, Math.ceil((resetAt - now) / 1000));
  const message = `the limit of ${limit} requests per ${window} is exhausted; try again in ${seconds} s`;
  return new Problem("rate_limited", message, { headers: { "Retry-After": String(seconds) } });
}
