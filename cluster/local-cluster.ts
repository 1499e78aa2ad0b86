import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startOpenSearch, TRANSPORT_PORT, type OpenSearchCluster } from "../test/cluster/opensearch.ts";
import { ProcessFiles, refuseTakenPorts } from "./process-files.ts";
import { PostgresPair } from "./postgres-pair.ts";
import { runTocsin, serviceEnvironment, TocsinNode } from "./tocsin-node.ts";

// The whole service on one machine as it runs on several: three nodes of OpenSearch, PostgreSQL with a standby, and three nodes of
// Tocsin, each a process of its own. A part that ends comes back by itself.

const NODES = 3;

export interface ClusterPorts {
  /** Each the first of several that follow each other. */
  readonly tocsin: number;
  readonly opensearch: number;
  readonly postgres: number;
  /** Of the first node, or off; the next nodes have the ones that follow. */
  readonly syslog: number | "off";
  readonly netflow: number | "off";
}

export interface LocalClusterOptions {
  /** For all data and logs; data that it has are used. */
  readonly folder: string;
  readonly ports: ClusterPorts;
  /** Of each node of OpenSearch. */
  readonly heapMb: number;
  /** How long a part that ended stays away. */
  readonly restartMs: number;
  /** Of Tocsin; default 3. */
  readonly nodes?: number;
  /** Further settings of the service, as TOCSIN_ variables. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly tell: (message: string) => void;
}

export interface LocalCluster {
  readonly folder: string;
  readonly nodes: readonly TocsinNode[];
  readonly opensearch: OpenSearchCluster;
  readonly postgres: PostgresPair;
  /** Settings that every node has, as TOCSIN_ variables. */
  readonly variables: Readonly<Record<string, string>>;
  /** A key with every scope, undefined if an earlier start has created it: a key is shown only once. */
  readonly firstKey: string | undefined;
  /** Stops every part in good order; the data stay. */
  close(): Promise<void>;
}

/** Rejects with CannotStart if parts of an earlier start still run, or ports are taken. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { ports, heapMb, restartMs, tell } = options;
  const folder = resolve(options.folder);
  mkdirSync(folder, { recursive: true });
  const processes = new ProcessFiles(folder);
  await processes.refuseLeftovers();
  await refuseTakenPorts(allPorts(ports));
  const stop = new AbortController();
  const restarting = new Set<Promise<void>>();
  const opened: (() => Promise<void>)[] = [];
  const close = async () => {
    stop.abort();
    for (const part of opened.toReversed()) await part();
    await Promise.all(restarting);
    processes.clear();
  };
  /** Starts a part again until it runs. */
  const revive = (name: string, start: () => Promise<unknown>) => {
    if (stop.signal.aborted) return;
    const reviving = (async () => {
      await sleep(restartMs, undefined, { signal: stop.signal }).catch(() => undefined);
      if (stop.signal.aborted) return;
      try {
        await start();
        if (!stop.signal.aborted) tell(`${name} is back`);
      } catch {
        // A part that ends while it starts is told of when it ends, and started again.
      }
    })();
    restarting.add(reviving);
    void reviving.then(() => restarting.delete(reviving));
  };

  try {
    tell("starting PostgreSQL ...");
    const postgres = await PostgresPair.start({
      folder,
      ports: [ports.postgres, ports.postgres + 1],
      restartMs,
      tell,
      onProcess: (name, pid) => processes.note(name, pid),
    });
    opened.push(() => postgres.close());

    tell("starting OpenSearch ...");
    const opensearch = await startOpenSearch({
      folder: join(folder, "opensearch"),
      nodes: NODES,
      heapMb,
      port: ports.opensearch,
      isDetached: true,
      settings: { "path.repo": join(folder, "snapshots") },
      onExit: (name) => {
        const part = `opensearch-${name.split("-")[1]}`;
        processes.note(part, undefined);
        if (!stop.signal.aborted) tell(`${part} ended; it starts again in ${restartMs / 1000} s`);
        const node = opensearch?.nodes.find((one) => one.name === name);
        if (!node) return;
        revive(part, async () => {
          const started = node.restart();
          processes.note(part, node.pid);
          await started;
        });
      },
    });
    opened.push(() => opensearch.stop());
    opensearch.nodes.forEach(({ pid }, nth) => processes.note(`opensearch-${nth + 1}`, pid));

    const variables: Record<string, string> = {
      TOCSIN_STORE_CASES: "postgres",
      TOCSIN_STORE_DATA: "opensearch",
      TOCSIN_POSTGRES_URL: postgres.url,
      TOCSIN_OPENSEARCH_ADDRESSES: opensearch.urls.join(","),
      TOCSIN_EXPORTS_FOLDER: join(folder, "exports"),
      TOCSIN_IPFIX_PORT: "off",
      TOCSIN_SFLOW_PORT: "off",
      TOCSIN_COLLECTORS_ADDRESSES: "127.0.0.1",
      TOCSIN_FLOWS_ADDRESSES: "127.0.0.1",
      ...options.variables,
    };
    const firstKey = await createFirstKey(folder, variables);
    tell("starting Tocsin ...");
    const following = (port: number | "off", nth: number) => (port === "off" ? port : String(port + nth));
    const nodes = Array.from({ length: options.nodes ?? NODES }, (_, nth): TocsinNode => {
      const name = `tocsin-${nth + 1}`;
      return new TocsinNode({
        name,
        port: ports.tocsin + nth,
        folder,
        variables: {
          ...variables,
          TOCSIN_SYSLOG_PORT: following(ports.syslog, nth),
          TOCSIN_NETFLOW_PORT: following(ports.netflow, nth),
        },
        onExit: (code) => {
          processes.note(name, undefined);
          if (stop.signal.aborted) return;
          const why = code === null ? "ended" : `ended with exit code ${code}`;
          tell(`${name} ${why}; it starts again in ${restartMs / 1000} s`);
          revive(name, () => startNode(nodes[nth]!));
        },
      });
    });
    const startNode = async (node: TocsinNode) => {
      const started = node.start();
      processes.note(node.name, node.pid);
      await started;
    };
    opened.push(async () => void (await Promise.all(nodes.map((node) => node.stop()))));
    // The first one creates the tables and index templates.
    for (const node of nodes) await startNode(node);
    return { folder, nodes, opensearch, postgres, variables, firstKey, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Before the nodes start: a node that finds no keys creates one, and writes it to its log. */
async function createFirstKey(
  folder: string,
  variables: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const env = serviceEnvironment({ ...variables, TOCSIN_DATA_DIR: join(folder, "tocsin-1") });
  const tocsin = async (...args: string[]): Promise<unknown> => JSON.parse(await runTocsin([...args, "--json"], env));
  if (((await tocsin("keys", "list")) as unknown[]).length > 0) return undefined;
  const flags = ["--name", "first key", "--scopes", "all", "--plan", "enterprise"];
  return ((await tocsin("keys", "create", ...flags)) as { key: string }).key;
}

function allPorts({ tocsin, opensearch, postgres, syslog, netflow }: ClusterPorts): number[] {
  const run = (first: number | "off", count: number) =>
    first === "off" ? [] : Array.from({ length: count }, (_, nth) => first + nth);
  return [
    ...run(tocsin, NODES),
    ...run(opensearch, NODES),
    ...run(opensearch + TRANSPORT_PORT, NODES),
    ...run(postgres, 2),
    ...run(syslog, NODES),
    ...run(netflow, NODES),
  ];
}
