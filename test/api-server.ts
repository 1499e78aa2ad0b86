import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { startApp, type AppOptions } from "../src/app.ts";
import { loadSettings } from "../src/config/config.ts";
import type { Settings } from "../src/config/settings.ts";
import type { Intake } from "../src/intake/intake.ts";
import { createLog } from "../src/lib/log.ts";
import { createKey, SCOPES, type CreatedKey, type NewKey } from "../src/model/key.ts";
import type { Store } from "../src/store/ports/store.ts";
import { clusterOf } from "./cluster/cluster-of-folder.ts";

// The real server over the real store in a temporary folder, for tests.

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body parsed as JSON; undefined if it is not JSON. */
  readonly body: any;
}

interface CallOptions {
  /** The full text of a key; null for none. Default: a key with every scope. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent unchanged, anything else as JSON. */
  readonly body?: unknown;
}

export interface TestServer {
  readonly store: Store;
  readonly intake: Intake;
  readonly port: number;
  readonly address: string;
  readonly dataDir: string;
  readonly key: CreatedKey;
  readonly log: Record<string, any>[];
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  addKey(key?: Partial<NewKey>): Promise<CreatedKey>;
  /** Stops and starts again on the same folder; `between` runs while it is stopped. */
  restart(between?: () => unknown, more?: TestOptions): Promise<TestServer>;
  /** Stops and leaves the folder. */
  stop(): Promise<void>;
  close(): Promise<void>;
}

export interface TestOptions extends AppOptions {
  readonly settings?: Partial<Settings>;
  /** The same for settings that are made from the defaults. */
  readonly settingsFrom?: (defaults: Settings) => Partial<Settings>;
  /** Keeps cases in PostgreSQL and data in OpenSearch; also for all servers with TOCSIN_TEST_STORE=cluster. */
  readonly usesCluster?: boolean;
}

/** The same part with some methods replaced; the others still run on the original. */
export function changed<Part extends object>(part: Part, methods: Partial<Part>): Part {
  return new Proxy(part, {
    get: (target, name) => {
      const value: unknown = Reflect.get(name in methods ? methods : target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

export async function openTestServer(options: TestOptions = {}): Promise<TestServer> {
  return openTestServerIn(await mkdtemp(join(tmpdir(), "tocsin-api-")), options);
}

/** A server on a folder that a test has prepared, or looks into. */
export async function openTestServerIn(dataDir: string, options: TestOptions = {}): Promise<TestServer> {
  const now = options.now ?? Date.now;
  const usesCluster = options.usesCluster ?? process.env["TOCSIN_TEST_STORE"] === "cluster";
  const loaded = loadSettings({ environment: {}, workingFolder: dataDir });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  // Tests run in parallel, so no server takes the well-known exporter ports. Hostname lookups would leave the machine.
  const quiet = { netflowPort: null, ipfixPort: null, sflowPort: null, syslogPort: null };
  const hostnames = { ...loaded.settings.hostnames, enabled: false };
  // Automatic analysis would change alerts in the middle of a test.
  const analysis = { ...loaded.settings.analysis, automaticFrom: "off" as const };
  const settings: Settings = {
    ...loaded.settings,
    dataDir,
    port: 0,
    ...quiet,
    hostnames,
    analysis,
    ...(usesCluster && (await clusterOf(dataDir)).settings(loaded.settings)),
    ...options.settings,
    ...options.settingsFrom?.(loaded.settings),
  };
  const lines: Record<string, any>[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split("\n")) if (line !== "") lines.push(JSON.parse(line));
      done();
    },
  });
  const log = createLog({ level: "info", destination });
  const app = await startApp(settings, log, options);
  const { store, intake, port, address } = app;
  const addKey = async (key: Partial<NewKey> = {}) => {
    const made = createKey({ name: "test", scopes: SCOPES, plan: "enterprise", expiresAt: null, now: now(), ...key });
    await store.keys.put(made.key);
    return made;
  };
  const key = await addKey();
  return {
    store,
    intake,
    port,
    address,
    dataDir,
    key,
    log: lines,
    addKey,
    call: (method, path, call = {}) => callServer(port, method, path, { key: key.secret, ...call }),
    restart: async (between, more) => {
      await app.close();
      await between?.();
      return openTestServerIn(dataDir, { ...options, ...more });
    },
    stop: () => app.close(),
    close: async () => {
      await app.close();
      if (usesCluster) await (await clusterOf(dataDir)).end();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function callServer(port: number, method: string, path: string, options: CallOptions): Promise<Answer> {
  const { key, body } = options;
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  const content = body === undefined ? undefined : isRaw ? body : JSON.stringify(body);
  const headers = {
    ...(key && { authorization: `Bearer ${key}` }),
    ...(content !== undefined && { "content-type": "application/json" }),
    ...options.headers,
  };
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, method, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode!, headers: response.headers, text, body: asJson(text) });
      });
    });
    sent.on("error", reject);
    sent.end(content);
  });
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
