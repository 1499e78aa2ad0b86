import type { AlertFilters } from "./alerts.ts";
import { answered, api, type Schemas } from "./client.ts";

// The list as a file, which the service writes.

export type ExportFormat = Schemas["ExportFormat"];

const POLL_MS = 700;
const POLLS_MAX = 400;

/** Resolves to the address of the file when it is written. */
export async function exportAlerts(filters: AlertFilters, format: ExportFormat): Promise<string> {
  let { data: job } = await answered(api.POST("/v1/alerts/export", { body: { format, query: filters as never } }));
  for (let poll = 0; poll < POLLS_MAX; poll++) {
    if (job.status === "completed") return job.download_url;
    if (job.status === "failed") throw new Error(job.error ?? "the export failed");
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    job = (await answered(api.GET("/v1/alerts/exports/{id}", { params: { path: { id: job.id } } }))).data;
  }
  throw new Error("the export takes too long; it goes on in the background");
}
