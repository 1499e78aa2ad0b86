import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Connection, requestBytes } from "./connection.ts";
import { benchEvents } from "./dataset.ts";
import { spreadOf, type Spread } from "./figures.ts";

// Generates load from a separate process, so that it does not distort the measurement.

export interface LoadTask {
  readonly port: number;
  readonly key: string;
  readonly connections: number;
  readonly warmUpMs: number;
  readonly durationMs: number;
  readonly work: { readonly kind: "batch"; readonly size: number } | { readonly kind: "submit" };
  /** Requests per second over all connections; default: as many as possible. */
  readonly perSecond?: number;
}

export interface LoadReport {
  readonly events: number;
  readonly eventsPerSecond: number;
  /** Response times in milliseconds. */
  readonly responses: Spread;
  readonly stalls: readonly { readonly atMs: number; readonly ms: number }[];
  readonly refused: Record<string, number>;
}

const BATCHES = 100;
const SINGLES = 20_000;
const STALL_MS = 250;
const STALLS_MAX = 1000;

export interface RunningLoad {
  readonly started: Promise<void>;
  readonly report: Promise<LoadReport>;
}

/** Starts the load in another process; `started` resolves when the warm-up is over. */
export function startLoad(task: LoadTask): RunningLoad {
  const child = fork(import.meta.filename, { execArgv: [] });
  const started = Promise.withResolvers<void>();
  const report = Promise.withResolvers<LoadReport>();
  child.on("message", (message: "started" | LoadReport) => {
    if (message === "started") started.resolve();
    else {
      report.resolve(message);
      child.disconnect();
    }
  });
  child.on("exit", (code) => {
    const error = new Error(`the load ended with code ${code}`);
    started.reject(error);
    report.reject(error);
  });
  report.promise.catch(() => undefined);
  started.promise.catch(() => undefined);
  child.send(task);
  return { started: started.promise, report: report.promise };
}

async function runTask(task: LoadTask, started: () => void): Promise<LoadReport> {
  const { port, connections, warmUpMs, durationMs } = task;
  const requests = makeRequests(task);
  const perRequest = task.work.kind === "batch" ? task.work.size : 1;
  const took: number[] = [];
  const stalls: { atMs: number; ms: number }[] = [];
  const refused: Record<string, number> = {};
  let events = 0;
  let next = 0;
  const measureFrom = performance.now() + warmUpMs;
  const until = measureFrom + durationMs;
  setTimeout(started, warmUpMs);

  const everyMs = task.perSecond === undefined ? 0 : (1000 * connections) / task.perSecond;
  const drive = async () => {
    const connection = await Connection.open(port);
    let dueAt = performance.now();
    for (let sentAt = dueAt; sentAt < until;) {
      const { status } = await connection.send(requests[next++ % requests.length]!);
      const now = performance.now();
      if (status >= 300) refused[status] = (refused[status] ?? 0) + 1;
      if (sentAt >= measureFrom && now <= until) {
        const ms = now - sentAt;
        took.push(ms);
        if (status < 300) events += perRequest;
        if (ms > STALL_MS && stalls.length < STALLS_MAX) stalls.push({ atMs: now - measureFrom, ms });
      }
      // After a slow response, requests follow without a pause until the rate is met again.
      sentAt = Math.max(now, everyMs === 0 ? now : (dueAt += everyMs));
      if (sentAt > now) await sleep(sentAt - now);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, drive));
  return { events, eventsPerSecond: events / (durationMs / 1000), responses: spreadOf(took), stalls, refused };
}

function makeRequests({ key, work }: LoadTask): Buffer[] {
  const size = work.kind === "batch" ? work.size : 1;
  const count = work.kind === "batch" ? BATCHES : SINGLES;
  const path = work.kind === "batch" ? "/v1/events/batch" : "/v1/events";
  const submissions = submissionTexts(size * count);
  return Array.from({ length: count }, (_, at) => {
    const own = submissions.slice(at * size, (at + 1) * size);
    const body = work.kind === "batch" ? `[${own.join(",")}]` : own[0]!;
    return requestBytes({ method: "POST", path, key, body });
  });
}

/** Without timestamps: each event gets its time of arrival. */
function submissionTexts(count: number): string[] {
  const toMs = Date.now();
  const drafts = benchEvents({ seed: 7, fromMs: toMs - 3_600_000, toMs, count });
  return Array.from(drafts, ({ type, severity, class: eventClass, raw }) =>
    JSON.stringify({ type, source: "custom", severity, class: eventClass, data: raw }),
  );
}

if (import.meta.main && process.send) {
  const send = process.send.bind(process);
  const [task] = (await once(process, "message")) as [LoadTask];
  send(await runTask(task, () => send("started")));
}
