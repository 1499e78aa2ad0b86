import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { makeFolder, startTocsin, tocsin, type Running } from "../tocsin.ts";
import { clusterOf, type FolderCluster } from "./cluster-of-folder.ts";

// Several processes of the service over one database and the same indices.

export interface NodeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: any;
}

export interface CallOptions {
  readonly body?: unknown;
  readonly key?: string;
  readonly headers?: Record<string, string>;
}

export interface Node {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  call(method: string, path: string, options?: CallOptions): Promise<NodeAnswer>;
  /** The roles that the node has; none if it does not answer. */
  roles(): Promise<readonly string[]>;
  signal(signal: NodeJS.Signals): void;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface Nodes {
  readonly cluster: FolderCluster;
  /** A key with every scope. */
  readonly key: string;
  start(name: string): Promise<Node>;
  /** Creates a key on the command line. */
  createKey(...options: string[]): Promise<string>;
  end(): Promise<void>;
}

export async function openNodes(variables: Record<string, string> = {}): Promise<Nodes> {
  const folder = makeFolder();
  const cluster = await clusterOf(folder);
  const env = {
    TOCSIN_STORE_CASES: "postgres",
    TOCSIN_STORE_DATA: "opensearch",
    TOCSIN_POSTGRES_URL: cluster.postgresUrl,
    TOCSIN_POSTGRES_POOL_MAX: "5",
    TOCSIN_OPENSEARCH_ADDRESSES: cluster.openSearchUrl,
    TOCSIN_OPENSEARCH_REPLICAS: "0",
    TOCSIN_INDEX_PREFIX: cluster.indexPrefix,
    TOCSIN_EXPORTS_FOLDER: join(folder, "exports"),
    ...variables,
  };
  const createKey = async (...options: string[]) => {
    const args = ["keys", "create", "--scopes", "all", "--json", ...options];
    const created = await tocsin(args, { ...env, TOCSIN_DATA_DIR: folder });
    expect(created, created.stderr).toMatchObject({ code: 0 });
    return (JSON.parse(created.stdout) as { key: string }).key;
  };
  const key = await createKey("--name", "all", "--plan", "enterprise");
  const running = new Set<Running>();
  return {
    cluster,
    key,
    createKey,
    start: async (name) => {
      const dataDir = join(folder, name);
      mkdirSync(dataDir, { recursive: true });
      const server = await startTocsin(dataDir, { env });
      running.add(server);
      return nodeOf(name, server, key, () => running.delete(server));
    },
    end: async () => {
      for (const server of running) {
        server.child.kill("SIGCONT");
        await server.stop("SIGKILL");
      }
      await cluster.end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function nodeOf(name: string, server: Running, key: string, onEnd: () => void): Node {
  const call: Node["call"] = async (method, path, { body, key: other = key, headers = {} } = {}) => {
    const answer = await fetch(`${server.address}${path}`, {
      method,
      headers: {
        ...(!headers["cookie"] && { authorization: `Bearer ${other}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.includes("json") === true;
    return { status: answer.status, headers: answer.headers, text, body: isJson ? JSON.parse(text) : undefined };
  };
  return {
    name,
    address: server.address,
    port: Number(new URL(server.address).port),
    call,
    roles: async () => {
      const answer = await call("GET", "/readyz").catch(() => undefined);
      return (answer?.body?.data?.roles ?? []) as string[];
    },
    signal: (signal) => void server.child.kill(signal),
    stop: async (signal) => {
      onEnd();
      return server.stop(signal);
    },
  };
}
