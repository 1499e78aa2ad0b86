import type { ExportJob } from "../../model/export.ts";

/** The queue of exports. The export runner keeps their files. */
export interface ExportStore {
  list(): Promise<ExportJob[]>;
  get(id: string): Promise<ExportJob | undefined>;
  put(job: ExportJob): Promise<void>;
  remove(id: string): Promise<void>;
}
