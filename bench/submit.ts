import { withBareServer } from "./bare-server.ts";
import { withServer, type Bench } from "./bench.ts";
import { ms, perSecond, type Measurement } from "./figures.ts";
import { startLoad } from "./load.ts";

// One event per request, each acknowledged only once it is on disk. The same requests to a bare server give the baseline.

const CONNECTIONS = 64;
const WARM_UP_MS = 3000;
const DURATION_MS = 15_000;
const BARE_DURATION_MS = 5000;
const P99_MS_MAX = 50;
const RATE_MIN = 5000;

export async function submit(bench: Bench): Promise<readonly Measurement[]> {
  const run = (port: number, key: string, durationMs: number) => {
    const work = { kind: "submit" } as const;
    return startLoad({ port, key, connections: CONNECTIONS, warmUpMs: WARM_UP_MS, durationMs, work }).report;
  };
  const bare = await withBareServer((port) => run(port, "none", BARE_DURATION_MS));
  const { responses, eventsPerSecond, refused } = await withServer(await bench.writable(), ({ port, key }) =>
    run(port, key, DURATION_MS),
  );
  const refusals = Object.values(refused).reduce((sum, count) => sum + count, 0);
  return [
    {
      name: `single submits, ${CONNECTIONS} connections`,
      result: `${perSecond(eventsPerSecond)}${refusals > 0 ? `, ${refusals} refused` : ""}`,
      baseline: `${perSecond(bare.eventsPerSecond)} on a server that stores nothing`,
      ratio: eventsPerSecond / bare.eventsPerSecond,
      target: `at least ${perSecond(RATE_MIN)}`,
      met: eventsPerSecond >= RATE_MIN && refusals === 0,
      values: { eventsPerSecond, refusals, bare: bare.eventsPerSecond },
    },
    {
      name: "response time of single submits",
      result: `p99 ${ms(responses.p99)}; p50 ${ms(responses.p50)}; slowest ${ms(responses.max)}`,
      target: `p99 at most ${P99_MS_MAX} ms`,
      met: responses.p99 <= P99_MS_MAX,
      values: { ...responses },
    },
  ];
}
