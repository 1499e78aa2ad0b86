import { timed, withServer, type Bench } from "./bench.ts";
import { BATCH_SIZE, CONNECTIONS } from "./ingest.ts";
import { ms, perSecond, spreadOf, type Measurement, type Spread } from "./figures.ts";
import { startLoad } from "./load.ts";

// Latency of reads during ingest at full speed.

const IDLE_MS = 10_000;
const LOADED_MS = 20_000;
const WARM_UP_MS = 5000;
const RATIO_MAX = 5;

interface Page {
  data: { id: string }[];
}

export async function readers(bench: Bench): Promise<readonly Measurement[]> {
  return withServer(await bench.writable(), async (server) => {
    const { data } = await server.get<Page>("/v1/events?per_page=50");
    const reads: Record<string, () => Promise<unknown>> = {
      "newest 50": () => server.get("/v1/events"),
      "newest 50 with a filter": () => server.get("/v1/events?severity=high"),
      "one event": () => server.get(`/v1/events/${data[Math.floor(Math.random() * data.length)]!.id}`),
      "word search": () => server.get("/v1/events?search=tamper"),
    };
    await readFor(reads, 2000);
    const idle = await readFor(reads, IDLE_MS);
    const load = startLoad({
      port: server.port,
      key: server.key,
      connections: CONNECTIONS,
      warmUpMs: WARM_UP_MS,
      durationMs: LOADED_MS,
      work: { kind: "batch", size: BATCH_SIZE },
    });
    await load.started;
    const loaded = await readFor(reads, LOADED_MS - 1000);
    const { eventsPerSecond } = await load.report;
    return Object.keys(reads).map((name) => measurementOf(name, idle[name]!, loaded[name]!, eventsPerSecond));
  });
}

function measurementOf(name: string, idle: Spread, loaded: Spread, eventsPerSecond: number): Measurement {
  const ratio = loaded.p99 / idle.p99;
  return {
    name: `${name} during ingest at ${perSecond(eventsPerSecond)}`,
    result: `p99 ${ms(loaded.p99)}; p50 ${ms(loaded.p50)}`,
    baseline: `p99 ${ms(idle.p99)}; p50 ${ms(idle.p50)} without load`,
    ratio,
    target: `at most ${RATIO_MAX} times`,
    met: ratio <= RATIO_MAX,
    values: { idleP99: idle.p99, loadedP99: loaded.p99, idleP50: idle.p50, loadedP50: loaded.p50, eventsPerSecond },
  };
}

/** Runs each kind of read in turn, one at a time, for this long. */
async function readFor(
  reads: Record<string, () => Promise<unknown>>,
  durationMs: number,
): Promise<Record<string, Spread>> {
  const took = new Map(Object.keys(reads).map((name) => [name, [] as number[]]));
  const until = performance.now() + durationMs;
  while (performance.now() < until) {
    for (const [name, read] of Object.entries(reads)) took.get(name)!.push((await timed(read)).ms);
  }
  return Object.fromEntries([...took].map(([name, values]) => [name, spreadOf(values)]));
}
