import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startLocalCluster, type ClusterPorts, type LocalCluster } from "../cluster/local-cluster.ts";
import { CannotStart } from "../cluster/process-files.ts";
import { serviceEnvironment, TocsinNode, runTocsin } from "../cluster/tocsin-node.ts";
import { freePorts } from "../test/cluster/opensearch.ts";
import { CannotInstall } from "../test/cluster/opensearch-install.ts";
import { postgresPrograms } from "../test/cluster/postgres.ts";
import { awaitDetection, compareFindings, readFindings, type Findings } from "./chaos-check.ts";
import { isWhole, startFaults } from "./chaos-faults.ts";
import { BATCH_EVENTS, chaosBatch } from "./chaos-input.ts";
import { callApi, createChaosRules, startChaosLoad, type ChaosLoad } from "./chaos-load.ts";

// `npm run chaos` kills or pauses parts of a cluster under load and checks that nothing acknowledged is lost or doubled: every event is
// there once, every alert once, as on a single node that gets the same events and is left alone.

const MINUTES_DEFAULT = 10;
const RATE_DEFAULT = 100;
const RATE_MAX = 10_000;
const RESTART_MS = 2000;
const PORTS_FROM = 20_000;
const PORTS_EACH = 200;
const TRIALS_MAX = 50;
const HEAP_MB = 512;
const RECOVERY_MS_MAX = 300_000;
const DETECTION_MS_MAX = 300_000;
const EXIT_FAULTS = 1;
const EXIT_WRONG_USE = 2;

const usage = `npm run chaos -- [--minutes N] [--seed N] [--pause] [--rate N] [--nodes N] [--keep]
Starts a cluster as npm run cluster does, sends events to all nodes, and every few seconds kills (-9) a random node of Tocsin or
OpenSearch, or the primary of PostgreSQL. At the end, what the cluster has stored and found is compared with a single node.
--minutes N: duration of the load; default ${MINUTES_DEFAULT}
--seed N: of events and victims; default: the time
--pause: stops the victim for 1 to 15 s (SIGSTOP) instead of killing it
--rate N: events per second; default ${RATE_DEFAULT}
--nodes N: nodes of Tocsin; default 3
--keep: keeps the folder with data and logs, which a failure always keeps
Exit codes: 0 nothing lost or doubled, ${EXIT_FAULTS} otherwise, ${EXIT_WRONG_USE} wrong usage.\n`;

interface ChaosOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly isPausing: boolean;
  readonly eventsPerSecond: number;
  readonly nodes: number;
}

const startedAt = Date.now();
const tell = (message: string) =>
  void process.stdout.write(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(7)} s  ${message}\n`);

async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: String(MINUTES_DEFAULT) },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      pause: { type: "boolean", default: false },
      rate: { type: "string", default: String(RATE_DEFAULT) },
      nodes: { type: "string", default: "3" },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
  });
  const [minutes, seed, rate, nodes] = [values.minutes, values.seed, values.rate, values.nodes].map(Number);
  const isRight = minutes! > 0 && Number.isSafeInteger(seed) && rate! > 0 && rate! <= RATE_MAX && nodes! > 0;
  if (values.help || !isRight) {
    process.stdout.write(usage);
    return values.help ? 0 : EXIT_WRONG_USE;
  }
  if (postgresPrograms() === undefined) throw new CannotStart("PostgreSQL is not installed; see npm run cluster");
  const options = { minutes: minutes!, seed: seed!, isPausing: values.pause, eventsPerSecond: rate!, nodes: nodes! };
  const folder = mkdtempSync(join(tmpdir(), "tocsin-chaos-"));
  // Root starts PostgreSQL as another user.
  chmodSync(folder, 0o755);
  tell(`seed ${options.seed}, data in ${folder}`);
  const faults = await trial(options, folder);
  if (faults.length === 0 && !values.keep) rmSync(folder, { recursive: true, force: true });
  for (const fault of faults) tell(`FAULT: ${fault}`);
  tell(faults.length === 0 ? "nothing lost, nothing doubled, every alert once" : `failed; logs are in ${folder}`);
  return faults.length === 0 ? 0 : EXIT_FAULTS;
}

async function trial(options: ChaosOptions, folder: string): Promise<string[]> {
  const { seed, eventsPerSecond, isPausing } = options;
  const startMs = Date.now();
  const cluster = await startLocalCluster({
    folder,
    ports: clusterPorts(),
    heapMb: HEAP_MB,
    restartMs: RESTART_MS,
    nodes: options.nodes,
    variables: { TOCSIN_RATE_LIMITS: "off", TOCSIN_LOG_LEVEL: "info", TOCSIN_HOSTNAMES_ENABLED: "off" },
    tell,
  });
  let load: ChaosLoad | undefined;
  let found: Findings;
  try {
    const urls = cluster.nodes.map(({ url }) => url);
    const key = cluster.firstKey!;
    await createChaosRules(urls[0]!, key);
    load = startChaosLoad({ urls, key, seed, eventsPerSecond, startMs });
    const faults = startFaults({ cluster, seed, isPausing, tell });
    await sleep(options.minutes * 60_000);
    await faults.stop();
    tell("no further faults; waiting until everything is back");
    await recovered(cluster, load);
    tell(
      `${cluster.postgres.failovers} failovers of PostgreSQL; ${showCounts(faults.counts)} ${isPausing ? "paused" : "killed"}`,
    );
    tell(
      `${load.acknowledged.size} events acknowledged; the longest wait for any batch was ${(load.longestGapMs / 1000).toFixed(1)} s`,
    );
    tell(`attempts that were not acknowledged: ${showCounts(load.failures) || "none"}`);
    await awaitDetection(urls[0]!, key, Date.now() + DETECTION_MS_MAX);
    found = await readFindings(urls[0]!, key);
  } finally {
    load?.abandon();
    await cluster.close();
  }
  tell(`${found.total} events and ${found.alerts.size} alerts in the cluster; a single node gets the same events ...`);
  const single = await findingsOfSingleNode(options, folder, load.batches, startMs);
  return compareFindings(load.acknowledged, found, single);
}

async function recovered({ nodes, opensearch, postgres }: LocalCluster, load: ChaosLoad): Promise<void> {
  const deadline = Date.now() + RECOVERY_MS_MAX;
  let isDone = false;
  const finished = load.finish().then(() => (isDone = true));
  for (;;) {
    const ready = await Promise.all(
      nodes.map(({ url }) => fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)),
    );
    const isReady = ready.every((answer) => answer?.ok);
    const isEngineWhole = await isWhole(opensearch.urls);
    if (isDone && isReady && isEngineWhole && postgres.isSynchronous) return finished.then(() => undefined);
    if (Date.now() > deadline) {
      const states = ready.map((answer) => answer?.status ?? "no answer").join(", ");
      throw new Error(
        `not recovered: nodes ${states}; OpenSearch ${isEngineWhole ? "whole" : "not whole"}; ` +
          `standby ${postgres.isSynchronous ? "in sync" : "missing"}; batches ${isDone ? "acknowledged" : "pending"}`,
      );
    }
    await sleep(1000);
  }
}

/** The same events, in order, on one node with everything in its folder. */
async function findingsOfSingleNode(
  { seed, eventsPerSecond }: ChaosOptions,
  folder: string,
  batches: number,
  startMs: number,
): Promise<Findings> {
  const [port] = await freePorts(1);
  const off = ["NETFLOW", "IPFIX", "SFLOW", "SYSLOG"].map((name) => [`TOCSIN_${name}_PORT`, "off"]);
  const variables = { ...Object.fromEntries(off), TOCSIN_RATE_LIMITS: "off", TOCSIN_HOSTNAMES_ENABLED: "off" };
  const node = new TocsinNode({ name: "single", port: port!, folder, variables });
  const flags = ["--name", "chaos", "--scopes", "all", "--plan", "enterprise", "--json"];
  const env = serviceEnvironment({ ...variables, TOCSIN_DATA_DIR: node.dataDir });
  const { key } = JSON.parse(await runTocsin(["keys", "create", ...flags], env)) as { key: string };
  await node.start();
  try {
    await createChaosRules(node.url, key);
    for (let nth = 0; nth < batches; nth++) {
      const { body } = chaosBatch(seed, nth, startMs, (BATCH_EVENTS / eventsPerSecond) * 1000);
      const answer = await callApi(node.url, key, "POST", "/v1/events/batch", { body });
      if (answer.status !== 200) throw new Error(`the single node refused a batch: ${JSON.stringify(answer.body)}`);
    }
    await awaitDetection(node.url, key, Date.now() + DETECTION_MS_MAX);
    return await readFindings(node.url, key);
  } finally {
    await node.stop();
  }
}

/** Below the ones that systems give to connections, and different for trials that run at the same time. */
function clusterPorts(): ClusterPorts {
  const first = PORTS_FROM + PORTS_EACH * (process.pid % TRIALS_MAX);
  return { tocsin: first, opensearch: first + 10, postgres: first + 20, syslog: "off", netflow: "off" };
}

const showCounts = (counts: ReadonlyMap<string, number>) =>
  [...counts].map(([kind, count]) => `${kind}: ${count.toLocaleString("en")}`).join(", ");

// The parts are processes of their own, which end with this one only if it exits by itself.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(EXIT_FAULTS));
try {
  process.exitCode = await run();
} catch (error) {
  if (!(error instanceof CannotInstall || error instanceof CannotStart)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = EXIT_FAULTS;
}
