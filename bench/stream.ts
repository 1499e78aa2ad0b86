import { get } from "node:http";
import { withServer, type Bench, type Serving } from "./bench.ts";
import { perSecond, type Measurement } from "./figures.ts";
import { BATCH_SIZE, ingestInTurns } from "./ingest.ts";

// Cost of a stream with a text filter for ingest: the same load without it and with it, alternating.

const SHARE_MIN = 0.7;

const STREAMS = {
  none: undefined,
  type: "kinds=events&type=bench_never",
  search: "kinds=events&search=192.0.2.250+never",
} as const;
type Kind = keyof typeof STREAMS;

export async function stream(bench: Bench): Promise<readonly Measurement[]> {
  const folder = await bench.writable();
  return withServer(folder, async (server) => {
    const rates = await ingestInTurns(server, Object.keys(STREAMS) as Kind[], (kind) => listen(server, STREAMS[kind]));
    const measurementOf = (kind: Kind, what: string): Measurement => {
      const ratio = rates[kind] / rates.none;
      return {
        name: `durable batches of ${BATCH_SIZE} beside a stream with ${what}`,
        result: perSecond(rates[kind]),
        baseline: `${perSecond(rates.none)} without a stream`,
        ratio,
        target: `at least ${SHARE_MIN}`,
        met: ratio >= SHARE_MIN,
        values: { with: rates[kind], without: rates.none },
      };
    };
    return [measurementOf("type", "a filter"), measurementOf("search", "a search")];
  });
}

async function listen(server: Serving, query: string | undefined): Promise<() => void> {
  if (query === undefined) return () => {};
  const headers = { authorization: `Bearer ${server.key}` };
  return new Promise((resolve, reject) => {
    const request = get({ port: server.port, path: `/v1/stream?${query}`, headers }, (response) => {
      response.resume();
      resolve(() => request.destroy());
    });
    request.on("error", reject);
  });
}
