import { mkdtemp, rm } from "node:fs/promises";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Registry } from "prom-client";
import { loadSettings, type Settings } from "../src/config.ts";
import { Hostnames, type HostnamesOptions } from "../src/enrichment/hostnames.ts";
import { openExporter } from "../src/exports/exporter.ts";
import { openIntake, type Intake } from "../src/intake/intake.ts";
import { createLog } from "../src/lib/log.ts";
import { createKey, SCOPES, type MadeKey, type NewKey } from "../src/model/key.ts";
import { openStore } from "../src/store/index.ts";
import type { Store } from "../src/store/store.ts";
import type { StatusOfCollectors } from "../src/api/collectors.ts";
import { createServer } from "../src/api/server.ts";

// The real server over the real store in a folder of its own, for tests.

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; undefined when it is none. */
  readonly body: any;
}

interface CallOptions {
  /** The full text of a key; null for none. Default: a key with every scope. */
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is when text or bytes, else as JSON. */
  readonly body?: unknown;
}

export interface TestServer {
  readonly store: Store;
  readonly intake: Intake;
  readonly port: number;
  readonly key: MadeKey;
  readonly log: Record<string, any>[];
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  addKey(key?: Partial<NewKey>): MadeKey;
  /** Stops and starts again on the same folder. */
  restart(): Promise<TestServer>;
  close(): Promise<void>;
}

export interface TestOptions {
  readonly settings?: Partial<Settings>;
  readonly now?: () => number;
  /** Stands between the server and its store. */
  readonly around?: (store: Store) => Store;
  /** Without it nobody is asked for names. */
  readonly hostnames?: Partial<HostnamesOptions>;
  readonly statusOfCollectors?: StatusOfCollectors;
}

export async function openTestServer(options: TestOptions = {}): Promise<TestServer> {
  return openIn(await mkdtemp(join(tmpdir(), "tocsin-api-")), options);
}

async function openIn(dataDir: string, options: TestOptions): Promise<TestServer> {
  const now = options.now ?? Date.now;
  const loaded = loadSettings({ environment: {}, workingFolder: dataDir });
  if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
  const settings: Settings = { ...loaded.settings, dataDir, ...options.settings };
  const lines: Record<string, any>[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().split("\n")) if (line !== "") lines.push(JSON.parse(line));
      done();
    },
  });
  const log = createLog({ level: "info", destination });
  const registry = new Registry();
  const { platform, indexPrefix } = settings;
  const opened = await openStore({ dataDir, platform, indexPrefix, registry, log, now });
  const store = options.around?.(opened) ?? opened;
  const intake = openIntake({ store, registry, retentionDays: settings.retention.eventsDays, now });
  const exporter = await openExporter({ store, registry, log, now });
  const { statusOfCollectors } = options;
  const hostnames = new Hostnames({ enabled: false, perSecondMax: 1, resolver: null, registry, ...options.hostnames });
  const server = await createServer({
    settings,
    store,
    intake,
    exporter,
    hostnames,
    registry,
    log,
    now,
    ...(statusOfCollectors && { statusOfCollectors }),
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const addKey = (key: Partial<NewKey> = {}) => {
    const made = createKey({ name: "test", scopes: SCOPES, plan: "enterprise", expiresAt: null, now: now(), ...key });
    store.keys.put(made.key);
    return made;
  };
  const key = addKey();
  const stop = async () => {
    await server.close();
    hostnames.close();
    await exporter.close();
    await intake.close();
    await opened.close();
  };
  return {
    store,
    intake,
    port,
    key,
    log: lines,
    addKey,
    call: (method, path, call = {}) => callServer(port, method, path, { key: key.secret, ...call }),
    restart: async () => {
      await stop();
      return openIn(dataDir, options);
    },
    close: async () => {
      await stop();
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
