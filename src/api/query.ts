import type { FastifyRequest } from "fastify";
import type { Fault } from "../lib/fault.ts";

// What stands behind the question mark, before any schema looks at it.

/**
 * The query without the parameters that are given twice, since which of the two was meant cannot be known, and without
 * those that cannot be decoded.
 */
export function readableQuery(request: FastifyRequest, faults: Fault[]): Record<string, unknown> {
  const broken = brokenParameters(request.url);
  for (const name of broken) {
    faults.push({ field: name || "query", message: "is not encoded as it must be: %25 stands for a percent sign" });
  }
  const once: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(request.query as Record<string, unknown>)) {
    if (broken.has(name)) continue;
    if (Array.isArray(value)) faults.push({ field: name || "query", message: "is given more than once" });
    else Object.defineProperty(once, name, { value, enumerable: true });
  }
  return once;
}

/** The names of parameters that are not UTF-8 behind their percent signs: the framework takes them as they stand. */
function brokenParameters(url: string): Set<string> {
  const broken = new Set<string>();
  const start = url.indexOf("?");
  if (start < 0 || !url.includes("%", start)) return broken;
  for (const pair of url.slice(start + 1).split("&")) {
    const [name = ""] = pair.split("=", 1);
    if (decoded(pair) === undefined) broken.add(decoded(name) ?? name);
  }
  return broken;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}
