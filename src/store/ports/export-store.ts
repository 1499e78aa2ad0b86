import type { ExportJob } from "../../model/export.ts";

/** The queue of exports. The export runner keeps their files. */
export interface ExportStore {
  list(): Promise<ExportJob[]>;
  get(id: string): Promise<ExportJob | undefined>;
  put(job: ExportJob): Promise<void>;
  /** Replaces the export; false if it was removed. */
  update(job: ExportJob): Promise<boolean>;
  remove(id: string): Promise<void>;
  /**
   * Calls the listener after exports changed, and when a change may have been missed. Returns a function that removes it.
   * Undefined if no other node changes them.
   */
  readonly onChange?: ((listener: () => void) => () => void) | undefined;
}
