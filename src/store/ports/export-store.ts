import type { ExportJob } from "../../model/export.ts";

/** The queue of exports. Their files are the business of whoever runs them. */
export interface ExportStore {
  list(): Promise<ExportJob[]>;
  get(id: string): Promise<ExportJob | undefined>;
  put(job: ExportJob): Promise<void>;
  remove(id: string): Promise<void>;
}
