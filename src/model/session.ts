import { hashSecret, makeSecret } from "../lib/secret.ts";
import { openKeyByHash, type ApiKey } from "./key.ts";

// Sessions: a browser signs in with a key and from then on sends a random id instead of it.

const HOUR_MS = 3_600_000;
/** A session without a request for this long ends. */
export const SESSION_IDLE_MS = 12 * HOUR_MS;
/** A session ends this long after the sign-in, however busy it is. */
export const SESSION_AGE_MS_MAX = 7 * 24 * HOUR_MS;
/** Uses are saved once a minute and not for every request, so a session ends up to this much early. */
export const SESSION_TOUCH_MS = 60_000;
/** At the limit, the oldest session of the key ends. */
export const SESSIONS_PER_KEY_MAX = 50;
/** At the limit, the session that was used least recently ends. */
export const SESSIONS_MAX = 2000;

/** A stored session, with a hash of its id. */
export interface Session {
  /** SHA-256 of the id. */
  readonly idHash: Uint8Array;
  readonly keyId: string;
  /** SHA-256 of the key's secret at the sign-in: the session ends with that secret. */
  readonly secretHash: Uint8Array;
  readonly createdAt: number;
  readonly lastUsedAt: number;
}

/** The prefix is that of keys, which the log redacts. */
const SESSION_ID = /^tsn_session_[0-9a-f]{64}$/;

/** A session to store, and its id, which only the cookie has. */
export function createSession(key: { id: string; secret: string }, now: number): { session: Session; id: string } {
  const id = `tsn_session_${makeSecret()}`;
  const session: Session = {
    idHash: hashSecret(id),
    keyId: key.id,
    secretHash: hashSecret(key.secret),
    createdAt: now,
    lastUsedAt: now,
  };
  return { session, id };
}

/** The hash of an id as a client sends it; undefined if it is malformed. */
export function hashSessionId(id: string): Uint8Array | undefined {
  return SESSION_ID.test(id) ? hashSecret(id) : undefined;
}

/** When the session ends if it is not used again; its key may end it earlier. */
export function sessionEndsAt({ createdAt, lastUsedAt }: Session): number {
  return Math.min(lastUsedAt + SESSION_IDLE_MS, createdAt + SESSION_AGE_MS_MAX);
}

/** The key of a session; undefined if the session, the key or the secret that signed in is no longer valid. */
export function openSession(session: Session, key: ApiKey, now: number): ApiKey | undefined {
  return now < sessionEndsAt(session) ? openKeyByHash(key, session.secretHash, now) : undefined;
}
