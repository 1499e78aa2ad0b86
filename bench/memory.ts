import { setTimeout as sleep } from "node:timers/promises";
import { memoryOf, withServer, type Bench } from "./bench.ts";
import { megabytes, type Measurement } from "./figures.ts";

// Memory of the idle server. Under load: see ingest.

const REST_MS = 15_000;
const MEMORY_MAX = 400e6;

export async function memory({ dataset }: Bench): Promise<readonly Measurement[]> {
  // The first start of a version compiles code that later starts find cached, and keeps that memory.
  await withServer(dataset.folder, () => Promise.resolve());
  return withServer(dataset.folder, async (server) => {
    // Before its first request, a server has not loaded everything yet.
    await server.get("/v1/events?severity=high");
    await server.get("/v1/events?search=admin");
    await server.post("/v1/events/search", { query: {}, aggs: { types: { terms: { field: "type" } } }, limit: 0 });
    await sleep(REST_MS);
    const { total, own } = memoryOf(server.pid);
    return [
      {
        name: `idle memory with ${dataset.events.toLocaleString("en")} events`,
        result: `${megabytes(total)} (${megabytes(own)} without file pages)`,
        target: `at most ${megabytes(MEMORY_MAX)}`,
        met: total <= MEMORY_MAX,
        values: { total, own, startedInMs: server.startedInMs },
      },
    ];
  });
}
