import { timingSafeEqual } from "node:crypto";
import { isUsable, openKey, parseKey, type ApiKey, type Scope } from "../model/key.ts";
import { hashSessionId, openSession, type Session } from "../model/session.ts";
import type { CaseDatabase } from "../store/ports/store.ts";
import { Problem } from "./problems.ts";

const BEARER = /^Bearer +(\S+) *$/i;

/** What a request presents. The session counts only without an `Authorization` header. */
export interface Credentials {
  readonly authorization: string | undefined;
  readonly sessionId: string | undefined;
}

export interface Caller {
  readonly key: ApiKey;
  /** The session, if the request has no key of its own. */
  readonly session: Session | null;
}

/** Returns the caller of a request; undefined if its credentials are missing or not valid. */
export type Authenticate = (credentials: Credentials, now: number) => Promise<Caller | undefined>;

export function createAuthenticate({ keys, sessions }: Pick<CaseDatabase, "keys" | "sessions">): Authenticate {
  // The secret that last passed for a key, so that the secret of a busy client is hashed once. A rotated or revoked key is a
  // new object. A secret in its grace period is not cached, because it expires.
  const verified = new WeakMap<ApiKey, Buffer>();
  const withKey = async (authorization: string, now: number): Promise<ApiKey | undefined> => {
    const bearer = BEARER.exec(authorization)?.[1];
    const given = bearer === undefined ? undefined : parseKey(bearer);
    const key = given && (await keys.find(given.id));
    if (!key) return undefined;
    const secret = Buffer.from(given.secret, "latin1");
    const known = verified.get(key);
    if (known && timingSafeEqual(known, secret)) return isUsable(key, now) ? key : undefined;
    const opened = openKey(key, given.secret, now);
    if (opened && key.previous.every(({ until }) => until <= now)) verified.set(key, secret);
    return opened;
  };
  const withSession = async (id: string, now: number): Promise<Caller | undefined> => {
    const idHash = hashSessionId(id);
    const session = idHash && (await sessions.find(idHash));
    if (!session) return undefined;
    // Looked up for every request, as for a key itself: a revoked key ends its sessions at once.
    const stored = await keys.find(session.keyId);
    const key = stored && openSession(session, stored, now);
    return key && { key, session };
  };
  return async ({ authorization, sessionId }, now) => {
    if (authorization === undefined) return sessionId === undefined ? undefined : withSession(sessionId, now);
    const key = await withKey(authorization, now);
    return key && { key, session: null };
  };
}

/** Refuses a request whose key lacks a scope that the call requires. */
export function requireScopes(
  key: ApiKey | undefined,
  needed: readonly Scope[],
  { authorization, sessionId }: Credentials,
): asserts key is ApiKey {
  if (!key) {
    const message =
      authorization !== undefined
        ? "the API key is not valid"
        : sessionId !== undefined
          ? "the session has ended; sign in again"
          : "no API key; send Authorization: Bearer <key>";
    throw unauthorized(message);
  }
  const missing = needed.filter((scope) => !key.scopes.includes(scope));
  if (missing.length > 0) throw new Problem("forbidden", `the key lacks the scope ${missing.join(" and ")}`);
}

export function unauthorized(message: string): Problem {
  return new Problem("unauthorized", message, { headers: { "WWW-Authenticate": 'Bearer realm="tocsin"' } });
}
