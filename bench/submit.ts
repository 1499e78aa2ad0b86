import { withBareServer } from "./bare-server.ts";
import { withServer, type Bench } from "./bench.ts";
import { ms, perSecond, type Answer } from "./figures.ts";
import { startLoad } from "./load.ts";

// One event per request, each acknowledged only once it is on disk. The same requests to a bare server give the baseline.

const CONNECTIONS = 64;
const WARM_UP_MS = 3000;
const DURATION_MS = 15_000;
const BARE_DURATION_MS = 5000;
const P99_MS_MAX = 50;
const RATE_MIN = 5000;

export async function submit(bench: Bench): Promise<readonly Answer[]> {
  const run = (port: number, key: string, durationMs: number) => {
    const work = { kind: "submit" } as const;
    return startLoad({ port, key, connections: CONNECTIONS, warmUpMs: WARM_UP_MS, durationMs, work }).report;
  };
  const bare = await withBareServer((port) => run(port, "none", BARE_DURATION_MS));
  const { answers, eventsPerSecond, refused } = await withServer(await bench.writable(), ({ port, key }) =>
    run(port, key, DURATION_MS),
  );
  const refusals = Object.values(refused).reduce((sum, count) => sum + count, 0);
  return [
    {
      question: `single submits, ${CONNECTIONS} connections`,
      figure: `${perSecond(eventsPerSecond)}${refusals > 0 ? `, ${refusals} refused` : ""}`,
      baseline: `${perSecond(bare.eventsPerSecond)} by a server that stores nothing`,
      ratio: eventsPerSecond / bare.eventsPerSecond,
      reach: `at least ${perSecond(RATE_MIN)}`,
      met: eventsPerSecond >= RATE_MIN && refusals === 0,
      values: { eventsPerSecond, refusals, bare: bare.eventsPerSecond },
    },
    {
      question: "their p99",
      figure: `${ms(answers.p99)}; p50 ${ms(answers.p50)}; slowest ${ms(answers.max)}`,
      reach: `at most ${P99_MS_MAX} ms`,
      met: answers.p99 <= P99_MS_MAX,
      values: { ...answers },
    },
  ];
}
