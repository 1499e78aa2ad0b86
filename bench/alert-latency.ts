import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { withServer, type Bench, type Serving } from "./bench.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";
import { startLoad } from "./load.ts";

// Time from the acknowledgement of an event to its alert, on the API and on the stream, under a steady load of events.

const EVENTS_PER_SECOND = 2000;
const CONNECTIONS = 100;
const WARM_UP_MS = 3000;
const DURATION_MS = 40_000;
const PROBES = 300;
const PROBE_EVERY_MS = 100;
const LATENCY_MS_MAX = 250;
const POLL_MS = 5;

const RULE = {
  name: "bench.probe",
  description: "Every probe creates an alert",
  severity: "low",
  title: "Probe {{raw.probe}}",
  conditions: [{ field: "type", equals: "bench_probe" }],
  dedup: { by: "raw.probe" },
  actions: [{ alert: { channels: [] } }],
};

export async function alertLatency(bench: Bench): Promise<readonly Measurement[]> {
  const folder = await bench.writable();
  return withServer(folder, async (server) => {
    await server.post("/v1/rules", RULE);
    const streamed = listen(server);
    const load = startLoad({
      port: server.port,
      key: server.key,
      connections: CONNECTIONS,
      warmUpMs: WARM_UP_MS,
      durationMs: DURATION_MS,
      work: { kind: "submit" },
      perSecond: EVENTS_PER_SECOND,
    });
    await load.started;
    const onApi: number[] = [];
    const onStream: number[] = [];
    for (let probe = 0; probe < PROBES; probe++) {
      const submission = { type: "bench_probe", source: "custom", data: { probe: `p${probe}` } };
      await server.post("/v1/events", submission);
      const acknowledgedAt = performance.now();
      const seen = streamed.wait(`Probe p${probe}`);
      onApi.push((await untilListed(server, `Probe p${probe}`)) - acknowledgedAt);
      onStream.push(Math.max(0, (await seen) - acknowledgedAt));
      await sleep(PROBE_EVERY_MS);
    }
    streamed.close();
    const { eventsPerSecond } = await load.report;
    const measurementOf = (where: string, spread: ReturnType<typeof spreadOf>): Measurement => ({
      name: `acknowledged event to alert on the ${where}, at ${Math.round(eventsPerSecond)} events/s`,
      result: `p50 ${ms(spread.p50)}, p99 ${ms(spread.p99)}`,
      target: `p99 at most ${LATENCY_MS_MAX} ms`,
      met: spread.p99 <= LATENCY_MS_MAX && eventsPerSecond > 0.95 * EVENTS_PER_SECOND,
      values: { ...spread, eventsPerSecond },
    });
    return [measurementOf("API", spreadOf(onApi)), measurementOf("stream", spreadOf(onStream))];
  });
}

/** Resolves with the time at which this alert is the newest in the list. */
async function untilListed(server: Serving, title: string): Promise<number> {
  for (;;) {
    const { data } = await server.get<{ data: { title: string }[] }>("/v1/alerts?rule_name=bench.probe&per_page=1");
    if (data[0]?.title === title) return performance.now();
    // Polling without a pause would take CPU time from the load.
    await sleep(POLL_MS);
  }
}

/** Reads the stream of alerts and records when each title arrives. */
function listen(server: Serving): { wait(title: string): Promise<number>; close(): void } {
  const seen = new Map<string, PromiseWithResolvers<number>>();
  const entry = (title: string) => {
    const known = seen.get(title) ?? Promise.withResolvers<number>();
    seen.set(title, known);
    return known;
  };
  const request = get(
    { port: server.port, path: "/v1/stream?kinds=alerts", headers: { authorization: `Bearer ${server.key}` } },
    (response) => {
      let text = "";
      response.on("data", (bytes: Buffer) => {
        text += bytes.toString();
        const lines = text.split("\n");
        text = lines.pop()!;
        for (const line of lines) {
          const title = /^data: .*"title":"(Probe p\d+)"/.exec(line)?.[1];
          if (title) entry(title).resolve(performance.now());
        }
      });
    },
  );
  return { wait: (title) => entry(title).promise, close: () => request.destroy() };
}
