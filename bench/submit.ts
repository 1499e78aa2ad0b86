import { withServer, type Bench } from "./bench.ts";
import { ms, perSecond, type Answer } from "./figures.ts";
import { startLoad } from "./load.ts";

// One event a request, each answered only when it is on the disk.

const CONNECTIONS = 64;
const WARM_UP_MS = 3000;
const DURATION_MS = 15_000;
const P99_MS_MAX = 50;
const RATE_MIN = 5000;

export async function submit(bench: Bench): Promise<readonly Answer[]> {
  const { answers, eventsPerSecond, refused } = await withServer(await bench.writable(), async ({ port, key }) => {
    const work = { kind: "submit" } as const;
    return startLoad({ port, key, connections: CONNECTIONS, warmUpMs: WARM_UP_MS, durationMs: DURATION_MS, work })
      .report;
  });
  const refusals = Object.values(refused).reduce((sum, count) => sum + count, 0);
  return [
    {
      question: `single submits, ${CONNECTIONS} connections`,
      figure: `${perSecond(eventsPerSecond)}${refusals > 0 ? `, ${refusals} refused` : ""}`,
      reach: `at least ${perSecond(RATE_MIN)}`,
      met: eventsPerSecond >= RATE_MIN && refusals === 0,
      values: { eventsPerSecond, refusals },
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
