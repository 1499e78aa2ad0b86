import type { Severity } from "./client.ts";

/** Worst first. */
export const SEVERITIES = ["critical", "high", "medium", "low", "info"] as const satisfies readonly Severity[];
