import { timingSafeEqual } from "node:crypto";
import { isUsable, openKey, parseKey, type ApiKey, type Scope } from "../model/key.ts";
import type { KeyStore } from "../store/ports/key-store.ts";
import { Problem } from "./problems.ts";

const BEARER = /^Bearer +(\S+) *$/i;

/** Returns the key of a request; undefined if it is missing or not valid. */
export type Authenticate = (authorization: string | undefined, now: number) => Promise<ApiKey | undefined>;

export function createAuthenticate(keys: KeyStore): Authenticate {
  // The secret that last passed for a key, so that the secret of a busy client is hashed once. A rotated or revoked key is a
  // new object. A secret in its grace period is not cached, because it expires.
  const verified = new WeakMap<ApiKey, Buffer>();
  return async (authorization, now) => {
    const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
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
}

/** Refuses a request whose key lacks a scope that the call requires. */
export function requireScopes(
  key: ApiKey | undefined,
  needed: readonly Scope[],
  authorization: string | undefined,
): asserts key is ApiKey {
  if (!key) {
    const message =
      authorization === undefined ? "no API key; send Authorization: Bearer <key>" : "the API key is not valid";
    throw new Problem("unauthorized", message, { headers: { "WWW-Authenticate": 'Bearer realm="tocsin"' } });
  }
  const missing = needed.filter((scope) => !key.scopes.includes(scope));
  if (missing.length > 0) throw new Problem("forbidden", `the key lacks the scope ${missing.join(" and ")}`);
}
