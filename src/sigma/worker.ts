import { serveThread } from "../lib/thread.ts";
import { readRules } from "./rule-import.ts";

// Thousands of rules take seconds to read: off the thread that serves requests.

const api = { readRules };
export type ImportApi = typeof api;

serveThread(api);
