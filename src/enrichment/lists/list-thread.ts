import { readFileSync, statSync } from "node:fs";
import { serveThread } from "../../lib/thread.ts";
import { parseList, type ParsedList } from "./parse-list.ts";

// Parses lists in a separate thread: a million lines take a second or two.

const api = {
  read(path: string, bytesMax: number): ParsedList {
    const found = statSync(path);
    // A device or a pipe may have no end.
    if (!found.isFile()) throw new Error("it is not a regular file");
    if (found.size > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`);
    return parseList(readFileSync(path, "utf8"));
  },
};

export type ListThreadApi = typeof api;

serveThread(api);
