import { readFileSync, statSync } from "node:fs";
import { serveThread } from "../../lib/thread.ts";
import { readList, type ReadList } from "./read.ts";

// A million lines take a second or two: they are read where nobody waits.

const api = {
  read(path: string, bytesMax: number): ReadList {
    const found = statSync(path);
    // What is no file may have no end.
    if (!found.isFile()) throw new Error("it is not a file");
    if (found.size > bytesMax) throw new Error(`it is larger than ${bytesMax} bytes`);
    return readList(readFileSync(path, "utf8"));
  },
};

export type ListsApi = typeof api;

serveThread(api);
