import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import { parseKey, planSchema, scopeSchema, type ApiKey } from "../model/key.ts";
import { SESSION_AGE_MS_MAX, sessionEndsAt, SESSIONS_PER_KEY_MAX, type Session } from "../model/session.ts";
import { unauthorized, type Authenticate } from "./auth.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import type { RateLimits, WindowUsage } from "./rate-windows.ts";
import { data } from "./response.ts";
import { clearedSessionCookie, readSessionCookie, refuseForeignSignIn, sessionCookie } from "./session-cookie.ts";
import type { Sessions } from "./sessions.ts";

// Signing in and out of the console, and the caller of a request.

export interface SessionEndpointOptions {
  readonly sessions: Sessions;
  readonly authenticate: Authenticate;
  readonly limits: RateLimits;
  readonly now: () => number;
}

const KEY_CHARACTERS_MAX = 200;

const windowSchema = z
  .object({
    limit: z.int(),
    used: z.int().describe("requests in the current window"),
    remaining: z.int(),
    resets_at: z.string().describe("end of the current window"),
  })
  .meta({ id: "WindowUsage" });

const sessionSchema = z
  .object({
    key: z
      .object({
        id: z.string(),
        name: z.string().describe("name of the caller on timelines"),
        scopes: z.array(scopeSchema),
        plan: planSchema,
        expires_at: z
          .string()
          .nullable()
          .describe("expiry of the key, or of the grace period of the rotated secret that was used; null: never"),
      })
      .meta({ id: "CallerKey" }),
    usage: z
      .object({
        enforced: z.boolean().describe("false: request limits are switched off"),
        minute: windowSchema,
        day: windowSchema.nullable().describe("the UTC day; null: the plan has no limit per day"),
      })
      .meta({ id: "KeyUsage" }),
    session: z
      .object({
        created_at: z.string(),
        idle_ends_at: z.string().describe("end of the session if there is no further request"),
        ends_at: z.string().describe("latest end of the session"),
      })
      .meta({ id: "SessionTimes" })
      .nullable()
      .describe("null: the request was authenticated with a key"),
  })
  .meta({ id: "Session" });

const EXAMPLE = {
  key: {
    id: "key_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
    name: "ann",
    scopes: ["events:read", "alerts:read", "alerts:write"],
    plan: "enterprise",
    expires_at: null,
  },
  usage: {
    enforced: true,
    minute: { limit: 1000, used: 12, remaining: 988, resets_at: "2026-11-15T08:30:41.000Z" },
    day: null,
  },
  session: {
    created_at: "2026-11-15T08:30:00.000Z",
    idle_ends_at: "2026-11-15T20:30:00.000Z",
    ends_at: "2026-11-22T08:30:00.000Z",
  },
};

export function sessionEndpoints({ sessions, authenticate, limits, now }: SessionEndpointOptions): Endpoint[] {
  const view = async (key: ApiKey, session: Session | null) => {
    const usage = await limits.windowsOf(key);
    return {
      key: {
        id: key.id,
        name: key.name,
        scopes: key.scopes,
        plan: key.plan,
        expires_at: key.expiresAt === null ? null : formatTime(key.expiresAt),
      },
      usage: {
        enforced: limits.areEnforced,
        minute: windowView(usage.minute),
        day: usage.day && windowView(usage.day),
      },
      session: session && timesOf(session, key),
    };
  };
  return [
    endpoint({
      method: "POST",
      path: "/v1/session",
      operationId: "signIn",
      tag: "Session",
      summary: "Sign in with a key",
      description:
        "For browsers: the response sets a cookie that stands for the key on `/v1` and `/api/v1`, except `/v1/collect`, as long as a " +
        "request has no `Authorization` header. The cookie is `tocsin_session`, or `__Host-tocsin_session` with `Secure` over TLS; scripts " +
        "cannot read it. Requests count against the limits of the key. With the cookie, a request that is not GET needs `Sec-Fetch-Site: " +
        "same-origin`, or an `Origin` equal to the host, and any body must be JSON; otherwise it is refused with 403. " +
        "A session ends 12 hours after its last request, 7 days after the sign-in, and at once when its key is revoked, expires, or is " +
        "rotated without a grace period. An open stream is not a request and does not keep it alive. " +
        `A key can have ${SESSIONS_PER_KEY_MAX} sessions; one more ends the oldest. ` +
        "The call needs no key and counts against the limit of the client address.",
      scopes: [],
      authentication: "none",
      body: z.strictObject({ key: z.string().min(1).max(KEY_CHARACTERS_MAX) }).meta({ id: "SignIn" }),
      example: { key: `tsn_${EXAMPLE.key.id}_<64 hex digits>` },
      responses: { 201: { description: "the caller; the cookie is set", data: sessionSchema, example: EXAMPLE } },
      headers: { 201: ["Set-Cookie"] },
      handle: async ({ body, request }) => {
        refuseForeignSignIn(request);
        const given = parseKey(body.key);
        const credentials = { authorization: `Bearer ${body.key}`, sessionId: undefined };
        const caller = given && (await authenticate(credentials, now()));
        if (!caller) throw unauthorized("the API key is not valid");
        await sessions.sweep();
        const earlier = readSessionCookie(request);
        if (earlier !== undefined) await sessions.endById(earlier);
        const { session, id } = await sessions.start(given);
        return data(await view(caller.key, session), 201, { "Set-Cookie": sessionCookie(request, id) });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/session",
      operationId: "getSession",
      tag: "Session",
      summary: "Get the caller, its limits and the end of its session",
      description: "Works with a key as well; `session` is then null. Any valid key may call it.",
      scopes: [],
      responses: { 200: { description: "the caller", data: sessionSchema, example: EXAMPLE } },
      handle: async ({ key, request }) => {
        // This request is a use, which may have moved the end.
        const session = request.session && ((await sessions.find(request.session)) ?? request.session);
        return data(await view(key, session));
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/session",
      operationId: "signOut",
      tag: "Session",
      summary: "Sign out",
      description:
        "Ends the session of the cookie and clears the cookie. Without a valid session it only clears the cookie, so that signing out never fails.",
      scopes: [],
      authentication: "optional",
      responses: {
        200: {
          description: "the cookie is cleared",
          data: z.object({ ended: z.boolean().describe("false: there was no session to end") }),
          example: { ended: true },
        },
      },
      headers: { 200: ["Set-Cookie"] },
      handle: async ({ request }) => {
        const ended = request.session !== null && (await sessions.end(request.session));
        return data({ ended }, 200, { "Set-Cookie": clearedSessionCookie(request) });
      },
    }),
  ];
}

function windowView({ limit, used, resetAt }: WindowUsage) {
  return { limit, used, remaining: Math.max(0, limit - used), resets_at: formatTime(resetAt) };
}

function timesOf(session: Session, { expiresAt }: ApiKey) {
  const keyEndsAt = expiresAt ?? Infinity;
  return {
    created_at: formatTime(session.createdAt),
    idle_ends_at: formatTime(Math.min(sessionEndsAt(session), keyEndsAt)),
    ends_at: formatTime(Math.min(session.createdAt + SESSION_AGE_MS_MAX, keyEndsAt)),
  };
}
