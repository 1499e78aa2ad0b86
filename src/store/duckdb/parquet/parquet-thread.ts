import { serveThread } from "../../../lib/thread.ts";
import type { ParquetTask } from "../../../model/export.ts";
import { writeParquet } from "./write-parquet.ts";

const stop = new AbortController();

const api = {
  convert: (task: ParquetTask, scratch: string) => writeParquet(task, scratch, stop.signal),
  cancel(): void {
    stop.abort(new Error("the conversion was cancelled"));
  },
};

export type ParquetThreadApi = typeof api;

serveThread(api);
