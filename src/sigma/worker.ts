import { serveThread } from "../lib/thread.ts";
import type { MappingFault } from "./mapping.ts";
import { readRules, type ImportQuestion, type ReadRules } from "./rule-import.ts";

// Thousands of rules take seconds to read: off the thread that serves requests, which then takes them in small lots.

let rules: ReadRules["rules"] = [];

type Summary = Omit<ReadRules, "rules"> & { readonly count: number };

const api = {
  read(question: ImportQuestion): Summary | { readonly mappingFaults: readonly MappingFault[] } {
    const read = readRules(question);
    if ("mappingFaults" in read) return read;
    rules = read.rules;
    const { refused, remarks, exceptions } = read;
    return { count: rules.length, refused, remarks, exceptions };
  },
  take(from: number, to: number): ReadRules["rules"] {
    return rules.slice(from, to);
  },
};
export type ImportApi = typeof api;

serveThread(api);
