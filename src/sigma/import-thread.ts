import { serveThread } from "../lib/thread.ts";
import type { MappingFault } from "./mapping.ts";
import { readRules, type ImportRequest, type ImportedRules } from "./rule-import.ts";

// Reads rules off the thread that serves requests: thousands take seconds. The caller then fetches them in small batches.

let rules: ImportedRules["rules"] = [];

type ImportSummary = Omit<ImportedRules, "rules"> & { readonly count: number };

const api = {
  read(question: ImportRequest): ImportSummary | { readonly mappingFaults: readonly MappingFault[] } {
    const read = readRules(question);
    if ("mappingFaults" in read) return read;
    rules = read.rules;
    const { refused, remarks, exceptions } = read;
    return { count: rules.length, refused, remarks, exceptions };
  },
  take(from: number, to: number): ImportedRules["rules"] {
    return rules.slice(from, to);
  },
};
export type ImportApi = typeof api;

serveThread(api);
