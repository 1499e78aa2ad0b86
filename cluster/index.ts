import { parseArgs } from "node:util";
import { CannotInstall } from "../test/cluster/opensearch-install.ts";
import { postgresPrograms } from "../test/cluster/postgres.ts";
import { guideOf, howToInstall } from "./guide.ts";
import { startLocalCluster, type ClusterPorts, type LocalCluster } from "./local-cluster.ts";
import { CannotStart } from "./process-files.ts";

// `npm run cluster` starts a whole cluster on this machine, to try what happens when a part of it fails.

const FOLDER_DEFAULT = "cluster-data";
const HEAP_MB_DEFAULT = 512;
const HEAP_MB_MIN = 256;
const HEAP_MB_MAX = 32_768;
const RESTART_DEFAULT = 15;
const RESTART_MAX = 3600;
const EXIT_FAILED = 1;
const EXIT_WRONG_USE = 2;
const PORTS: ClusterPorts = { tocsin: 8081, opensearch: 9201, postgres: 5441, syslog: 5515, netflow: 2056 };

const usage = `npm run cluster -- [--data-dir FOLDER] [--ports N] [--heap MB] [--restart-after SECONDS]

Starts three nodes of OpenSearch, PostgreSQL with a synchronous standby, and three nodes of Tocsin on 127.0.0.1, and shows how to
kill each part. A part that ends comes back by itself. Ctrl-C stops everything; the data stay.

--data-dir FOLDER: for data and logs; default ./${FOLDER_DEFAULT}
--ports N: take ports from N on, instead of ${PORTS.tocsin} for Tocsin, ${PORTS.opensearch} for OpenSearch, ${PORTS.postgres} for PostgreSQL, ${PORTS.syslog} for syslog and ${PORTS.netflow} for
  NetFlow: N, N+10, N+20, N+30 and N+40
--heap MB: memory of each OpenSearch, besides as much again for its buffers and code; default ${HEAP_MB_DEFAULT}
--restart-after SECONDS: how long a part that ended stays away; default ${RESTART_DEFAULT}

It needs PostgreSQL and Java 21 with Maven (or pip, which fetches a Java), about 4 GB of memory and 1 GB of disk.
Exit codes: 0 stopped by a signal, ${EXIT_FAILED} something is missing or failed, ${EXIT_WRONG_USE} wrong usage.
`;

interface ClusterFlags {
  readonly folder: string;
  readonly ports: ClusterPorts;
  readonly heapMb: number;
  readonly restartMs: number;
}

/** Undefined for wrong usage. */
function readFlags(args: readonly string[]): ClusterFlags | "help" | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      "data-dir": { type: "string", default: FOLDER_DEFAULT },
      ports: { type: "string" },
      heap: { type: "string", default: String(HEAP_MB_DEFAULT) },
      "restart-after": { type: "string", default: String(RESTART_DEFAULT) },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) return "help";
  const first = values.ports === undefined ? undefined : numberIn(values.ports, 1024, 65_000);
  const heapMb = numberIn(values.heap, HEAP_MB_MIN, HEAP_MB_MAX);
  const restart = numberIn(values["restart-after"], 0, RESTART_MAX);
  if (heapMb === undefined || restart === undefined || (values.ports !== undefined && first === undefined))
    return undefined;
  const ports =
    first === undefined
      ? PORTS
      : { tocsin: first, opensearch: first + 10, postgres: first + 20, syslog: first + 30, netflow: first + 40 };
  return { folder: values["data-dir"], ports, heapMb, restartMs: restart * 1000 };
}

function numberIn(text: string, min: number, max: number): number | undefined {
  const value = Number(text);
  return /^\d+$/.test(text) && value >= min && value <= max ? value : undefined;
}

const tell = (message: string) => void process.stdout.write(`${message}\n`);

async function run(args: readonly string[]): Promise<number> {
  let flags: ReturnType<typeof readFlags>;
  try {
    flags = readFlags(args);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
  }
  if (flags === "help" || flags === undefined) {
    (flags ? process.stdout : process.stderr).write(usage);
    return flags ? 0 : EXIT_WRONG_USE;
  }
  const stopped = signalled();
  if (postgresPrograms() === undefined) return fail(`PostgreSQL is not installed.\n${howToInstall()}`);
  let cluster: LocalCluster;
  try {
    cluster = await startLocalCluster({ ...flags, tell });
  } catch (error) {
    if (error instanceof CannotInstall)
      return fail(`OpenSearch cannot be installed: ${error.message}.\n${howToInstall()}`);
    if (error instanceof CannotStart) return fail(error.message);
    throw error;
  }
  tell(guideOf(cluster));
  await stopped;
  tell("stopping ...");
  await cluster.close();
  return 0;
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return EXIT_FAILED;
}

/** Further signals are ignored: the parts are being stopped. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
  });
}

process.exitCode = await run(process.argv.slice(2));
