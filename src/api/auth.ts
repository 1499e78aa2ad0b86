import { keyAccepts, parseKey, type ApiKey, type Scope } from "../model/key.ts";
import type { KeyStore } from "../store/store.ts";
import { Problem } from "./problems.ts";

const BEARER = /^Bearer +(\S+) *$/i;

/** The key that a request proves to hold; undefined for none or one that is not valid. */
export function identify(authorization: string | undefined, keys: KeyStore, now: number): ApiKey | undefined {
  const bearer = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
  const given = bearer === undefined ? undefined : parseKey(bearer);
  const key = given && keys.find(given.id);
  return key && keyAccepts(key, given.secret, now) ? key : undefined;
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
