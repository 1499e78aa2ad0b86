import type { FastifyInstance, FastifyRequest } from "fastify";
import { mayStandInPath } from "../model/key.ts";
import { requireScopes, type Authenticate, type Credentials } from "./auth.ts";
import { pathNotFound } from "./error-responses.ts";
import { invalid, Problem } from "./problems.ts";
import type { RateLimits } from "./rate-windows.ts";
import { limitHeaders, rateLimited, SECURITY_HEADERS } from "./response-headers.ts";
import { readSessionCookie, refuseForgery } from "./session-cookie.ts";
import type { Sessions } from "./sessions.ts";

interface AdmissionOptions {
  /** True for a request that needs no key and has no rate limit. */
  readonly isPublic: (request: FastifyRequest) => boolean;
  readonly authenticate: Authenticate;
  readonly sessions: Sessions;
  readonly limits: RateLimits;
  readonly now: () => number;
}

/** Authentication, rate limit and scopes, checked before the rest of the request. */
export function addAdmission(app: FastifyInstance, options: AdmissionOptions): void {
  const { isPublic, authenticate, sessions, limits, now } = options;
  app.decorateRequest("apiKey", null);
  app.decorateRequest("session", null);
  app.addHook("onRequest", async (request, reply) => {
    reply.headers(SECURITY_HEADERS);
    reply.header("X-Request-Id", request.id);
    reply.header("Cache-Control", "no-store");
    // An empty content type counts as none; the framework would refuse it with its own message.
    if (request.headers["content-type"]?.trim() === "") delete request.headers["content-type"];
    if (isPublic(request)) return;
    const repeated = repeatedHeaders(request);
    const { scopes, keyInPath, authentication } = request.routeOptions.config;
    const credentials = credentialsOf(request);
    // With two headers, a proxy may have checked the other one.
    const isIgnored = authentication === "none" || repeated.includes("Authorization");
    const caller = isIgnored ? undefined : await authenticate(credentials, now());
    const isInPath = tokenOf(request) !== undefined;
    const isTooStrong = caller !== undefined && isInPath && !mayStandInPath(caller.key);
    const key = isTooStrong ? undefined : caller?.key;
    const session = caller?.session ?? null;
    request.apiKey = key ?? null;
    request.session = session;
    const result = key ? await limits.countForKey(key) : limits.countForAddress(request.ip);
    reply.headers(limitHeaders(result));
    if (!result.allowed) throw rateLimited(result, now());
    refuseHeaders(request, repeated);
    if (!isInPath && keyInPath) throw pathNotFound();
    if (isTooStrong) throw new Problem("unauthorized", "a key in a path must have only collect: scopes");
    if (session) {
      refuseForgery(request);
      await sessions.noteUse(session);
    }
    if (scopes && !authentication) requireScopes(key, scopes, credentials);
  });
}

/** Headers that may occur only once, because a proxy may use one of two values and this service the other. */
const SINGLE_HEADERS = ["Host", "Authorization", "Content-Type"];
const SINGLE_BY_NAME = new Map(SINGLE_HEADERS.map((name) => [name.toLowerCase(), name]));

function repeatedHeaders({ raw: { rawHeaders } }: FastifyRequest): readonly string[] {
  const seen = new Set<string>();
  const repeated: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = SINGLE_BY_NAME.get(rawHeaders[i]!.toLowerCase());
    if (name === undefined) continue;
    if (seen.has(name) && !repeated.includes(name)) repeated.push(name);
    seen.add(name);
  }
  return repeated;
}

function refuseHeaders({ raw }: FastifyRequest, repeated: readonly string[]): void {
  if (repeated.length > 0) throw invalid(repeated.map((field) => ({ field, message: "is given more than once" })));
  const isHostMissing = raw.headers.host === undefined && raw.httpVersion === "1.1";
  if (isHostMissing) throw invalid([{ field: "Host", message: "is required" }]);
}

/** The header or, for senders that cannot set one, the path; for browsers the cookie of a session. */
function credentialsOf(request: FastifyRequest): Credentials {
  const token = tokenOf(request);
  const authorization = token === undefined ? request.headers.authorization : `Bearer ${token}`;
  const mayHaveSession = authorization === undefined && request.routeOptions.config.acceptsSession === true;
  return { authorization, sessionId: mayHaveSession ? readSessionCookie(request) : undefined };
}

/** The key in the path; undefined if there is none. */
function tokenOf(request: FastifyRequest): string | undefined {
  const { token } = request.params as { token?: string };
  return request.routeOptions.config.keyInPath && token !== "" ? token : undefined;
}
