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
