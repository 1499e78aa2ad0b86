import { timingSafeEqual } from "node:crypto";
import { isUsable, openKey, parseKey, type ApiKey, type Scope } from "../model/key.ts";
import type { KeyStore } from "../store/store.ts";
import { Problem } from "./problems.ts";

const BEARER = /^Bearer +(\S+) *$/i;

/** Finds the key that a request proves to hold; undefined for none or one that is not valid. */
export type Identify = (authorization: string | undefined, now: number) => ApiKey | undefined;

export function createIdentify(keys: KeyStore): Identify {
  // The secret that last opened a key, so that a busy client's is hashed once. A key that was rotated or revoked is
  // another object; and a secret that only works for a grace is not remembered, since it stops with time.
  const proven = new WeakMap<ApiKey, Buffer>();
  return (authorization, now) => {
    const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
    const given = bearer === undefined ? undefined : parseKey(bearer);
    const key = given && keys.find(given.id);
    if (!key) return undefined;
    const secret = Buffer.from(given.secret, "latin1");
    const known = proven.get(key);
    if (known && timingSafeEqual(known, secret)) return isUsable(key, now) ? key : undefined;
    const opened = openKey(key, given.secret, now);
    if (opened && key.previous.every(({ until }) => until <= now)) proven.set(key, secret);
    return opened;
  };
}

/** Refuses a request whose key does not carry every scope that the call needs. */
export function requireScopes(
  key: ApiKey | undefined,
  needed: readonly Scope[],
  authorization: string | undefined,
): asserts key is ApiKey {
  if (!key) {
    const message =
      authorization === undefined ? "no API key: send Authorization: Bearer <key>" : "not a valid API key";
    throw new Problem("unauthorized", message, { headers: { "WWW-Authenticate": 'Bearer realm="tocsin"' } });
  }
  const missing = needed.filter((scope) => !key.scopes.includes(scope));
  if (missing.length > 0) throw new Problem("forbidden", `the key lacks the scope ${missing.join(" and ")}`);
}
