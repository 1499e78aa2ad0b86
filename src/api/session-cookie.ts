import type { FastifyRequest } from "fastify";
import { hasBody, JSON_TYPE, mediaTypeOf } from "./body.ts";
import { Problem } from "./problems.ts";

// The cookie of a session, and the check that a request with it comes from the service's own pages and not from those of
// another site, which a browser would send it for as well.

const NAME = "tocsin_session";
const ATTRIBUTES = "; HttpOnly; SameSite=Strict; Path=/";

type CookieRequest = Pick<FastifyRequest, "headers" | "protocol">;

/** With the prefix, browsers accept the cookie only over TLS and only from this host. */
function nameFor({ protocol }: CookieRequest): string {
  return protocol === "https" ? `__Host-${NAME}` : NAME;
}

function attributesFor({ protocol }: CookieRequest): string {
  return protocol === "https" ? `${ATTRIBUTES}; Secure` : ATTRIBUTES;
}

/** The id of the session in the cookie; undefined if there is none. */
export function readSessionCookie(request: CookieRequest): string | undefined {
  const { cookie } = request.headers;
  if (cookie === undefined) return undefined;
  const start = `${nameFor(request)}=`;
  for (const part of cookie.split(";")) {
    const pair = part.trim();
    if (pair.startsWith(start)) return pair.slice(start.length);
  }
  return undefined;
}

export function sessionCookie(request: CookieRequest, id: string): string {
  return `${nameFor(request)}=${id}${attributesFor(request)}`;
}

export function clearedSessionCookie(request: CookieRequest): string {
  return `${nameFor(request)}=${attributesFor(request)}; Max-Age=0`;
}

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** Refuses a change with a session's cookie that another site's page may have caused. */
export function refuseForgery(request: FastifyRequest): void {
  if (SAFE_METHODS.has(request.method)) return;
  const fault = originFault(request) ?? bodyFault(request);
  if (fault !== undefined) throw new Problem("forbidden", `a request with a session's cookie ${fault}`);
}

/** Refuses a sign-in from another site's page. Programs send neither header and may sign in. */
export function refuseForeignSignIn(request: FastifyRequest): void {
  const { "sec-fetch-site": site, origin } = request.headers;
  const fault = site === undefined && origin === undefined ? undefined : originFault(request);
  if (fault !== undefined) throw new Problem("forbidden", `a sign-in ${fault}`);
}

/** Browsers send `Sec-Fetch-Site` to trustworthy addresses, which plain HTTP on a network is not, and `Origin` to all. */
function originFault(request: FastifyRequest): string | undefined {
  const { "sec-fetch-site": site, origin } = request.headers;
  if (site !== undefined) {
    return site === "same-origin"
      ? undefined
      : "must come from a page of this service: Sec-Fetch-Site is not same-origin";
  }
  if (origin === undefined) return "needs the header Sec-Fetch-Site: same-origin, or an Origin equal to the host";
  const from = URL.parse(origin);
  // With the scheme of the origin, a default port counts as equal to none.
  const own = from && URL.parse(`${from.protocol}//${request.host}`);
  const isOwn = own !== null && from !== null && from.host !== "" && from.host === own.host;
  return isOwn
    ? undefined
    : "must come from a page of this service: Origin is not equal to the host; behind a proxy, set trusted_proxies";
}

function bodyFault({ raw }: FastifyRequest): string | undefined {
  return !hasBody(raw) || mediaTypeOf(raw) === JSON_TYPE ? undefined : `must have a body of ${JSON_TYPE}`;
}
