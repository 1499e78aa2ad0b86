import type { FastifyRequest } from "fastify";
import type { Fault } from "../lib/fault.ts";

// The raw query string, checked before the schema.

/**
 * The query without repeated parameters, whose intended value is ambiguous, and without parameters that cannot be decoded.
 * Both are added to `faults`.
 */
export function readableQuery(request: FastifyRequest, faults: Fault[]): Record<string, unknown> {
  const undecodable = undecodableParameters(request.url);
  for (const name of undecodable) {
    faults.push({ field: name || "query", message: "is not valid percent-encoding; encode a percent sign as %25" });
  }
  const once: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(request.query as Record<string, unknown>)) {
    if (undecodable.has(name)) continue;
    if (Array.isArray(value)) faults.push({ field: name || "query", message: "is given more than once" });
    else Object.defineProperty(once, name, { value, enumerable: true });
  }
  return once;
}

/** The names of parameters that do not decode to UTF-8. The framework would pass them on undecoded. */
function undecodableParameters(url: string): Set<string> {
  const undecodable = new Set<string>();
  const start = url.indexOf("?");
  if (start < 0 || !url.includes("%", start)) return undecodable;
  for (const pair of url.slice(start + 1).split("&")) {
    const [name = ""] = pair.split("=", 1);
    if (decoded(pair) === undefined) undecodable.add(decoded(name) ?? name);
  }
  return undecodable;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
