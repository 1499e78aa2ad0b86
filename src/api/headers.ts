import type { Verdict } from "./limits.ts";
import { Problem } from "./problems.ts";

// What every answer says beside its body.

/**
 * What browsers are told of every answer; the docs page has a policy of its own. Written out, since they never change:
 * the usual plugin works them out anew for each request, at a fifth of what the whole request costs.
 */
export const SECURITY_HEADERS = {
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  // Browsers heed it only where TLS stands in front. Subdomains are not ours to speak for.
  "Strict-Transport-Security": "max-age=31536000",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
};

const whole = { type: "integer" } as const;
/** For the OpenAPI document. */
export const ANSWER_HEADERS = {
  "X-Request-Id": { description: "the same as meta.request_id", schema: { type: "string" } },
  "X-RateLimit-Limit": { description: "requests in the window with the least remaining", schema: whole },
  "X-RateLimit-Remaining": { description: "requests left in that window", schema: whole },
  "X-RateLimit-Reset": { description: "when that window ends, in seconds since 1970", schema: whole },
  Location: { description: "where what was made is found", schema: { type: "string" } },
  ETag: { description: "the revision of the rule, to send back as If-Match", schema: { type: "string" } },
  "Idempotency-Replayed": {
    description: "true: nothing was stored, this is the first answer again",
    schema: { type: "string" },
  },
  "Content-Disposition": { description: "the name of the file", schema: { type: "string" } },
  "WWW-Authenticate": { description: "how to send a key", schema: { type: "string" } },
  "X-Tocsin-Incomplete": {
    description:
      "only where the answer leaves something out: UTC days in its range whose file was lost or damaged, each with how many rows are missing: `2026-11-09 (848), 2026-11-10 (3)`",
    schema: { type: "string" },
  },
  "Retry-After": { description: "seconds to wait", schema: whole },
} as const;
export type HeaderName = keyof typeof ANSWER_HEADERS;

export function limitHeaders({ limit, remaining, resetAt }: Verdict) {
  return {
    "X-RateLimit-Limit": limit,
    "X-RateLimit-Remaining": remaining,
    "X-RateLimit-Reset": Math.ceil(resetAt / 1000),
  };
}

export function tooMany({ limit, window, resetAt }: Verdict, now: number): Problem {
  const seconds = Math.max(1, Math.ceil((resetAt - now) / 1000));
  const message = `the limit of ${limit} requests a ${window} is used up; come back in ${seconds} s`;
  return new Problem("rate_limited", message, { headers: { "Retry-After": String(seconds) } });
}
