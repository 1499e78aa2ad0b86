import type { Command } from "commander";
import type { Logger } from "pino";
import type { App } from "../app.ts";
import { exitNow } from "../lib/exit-now.ts";
import { releaseIdleMemory } from "../lib/idle-memory.ts";
import { readVersion } from "../lib/version.ts";
import { createKey, revokeKey, SCOPES } from "../model/key.ts";
import { EXIT_FAILED, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
import type { LoadedSettings } from "../config/config.ts";
import { addSettingFlags, requireSettings } from "./setting-flags.ts";
import { bold } from "./terminal.ts";

const CLOSE_MS_MAX = 15_000;
const SAME_SIGNAL_MS = 1000;

export function addServe(program: Command): void {
  const command = program.command("serve").description("run the service");
  addSettingFlags(command)
    .addHelpText(
      "after",
      `
Every setting can also be set in the file or as a TOCSIN_ variable; a flag wins over both. docs/configuration.md lists them.

Examples:
  tocsin serve
  tocsin serve --port 9000 --data-dir /srv/tocsin
  TOCSIN_RATE_LIMITS=off tocsin serve --config site.yaml

Exit codes: 0 stopped by a signal, ${EXIT_FAILED} could not start or crashed, ${EXIT_WRONG_USE} wrong flags or configuration.`,
    )
    .action(() => runServer(requireSettings(command)));
}

/** Serves until a signal. A demo prints a new key at every start: nobody keeps the one of last week. */
export async function runServer({ settings, file }: LoadedSettings, { isDemo = false } = {}): Promise<void> {
  const { createLog } = await import("../lib/log.ts");
  const log = createLog({ level: settings.logLevel });
  const stop = watchProcess(log);
  releaseIdleMemory();
  const { startApp } = await import("../app.ts");
  let app: App;
  try {
    app = await startApp(settings, log);
  } catch (error) {
    throw explainFailure(error, settings);
  }
  log.info({ address: app.address, version: readVersion(), dataDir: settings.dataDir, file }, "listening");
  await (isDemo ? welcomeToDemo(app, log) : welcome(app, log));
  log.info({ signal: await stop }, "stopping");
  await app.close();
  log.info("stopped");
  log.flush(() => process.exit(0));
}

/** Resolves with the signal to stop. An uncaught error ends the process: its state cannot be trusted. */
function watchProcess(log: Logger): Promise<string> {
  const die = (reason: string, error?: unknown): never => {
    log.fatal({ err: error }, reason);
    exitNow(EXIT_FAILED);
  };
  process.on("uncaughtException", (error) => die("uncaught exception", error));
  process.on("unhandledRejection", (error) => die("unhandled rejection", error));
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const onSignal = (signal: string) => {
      const now = performance.now();
      if (firstAt === undefined) {
        firstAt = now;
        setTimeout(() => die(`not closed within ${CLOSE_MS_MAX / 1000} s`), CLOSE_MS_MAX).unref();
        resolve(signal);
      } else if (now - firstAt > SAME_SIGNAL_MS) {
        // Ctrl-C reaches the whole process group and npm forwards it again: only a later signal counts as a second one.
        die(`${signal} while stopping`);
      }
    };
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, onSignal);
  });
}

/**
 * Creates a key and shows it to the operator if there is none: on the first start, with or without the events of
 * `tocsin demo`, and after keys.db was lost.
 */
async function welcome(app: App, log: Logger): Promise<void> {
  const { keys } = app.store;
  if ((await keys.list()).length > 0) return;
  const why = keys.wereLost
    ? `${bold("The data folder has events but no keys:")} its earlier keys are lost.`
    : bold("Tocsin runs for the first time.");
  await showNewKey(app, log, { name: "first key", why, path: "/v1/events" });
}

const DEMO_KEY = "demo";

async function welcomeToDemo(app: App, log: Logger): Promise<void> {
  const { keys } = app.store;
  const earlier = (await keys.list()).filter(({ name, revokedAt }) => name === DEMO_KEY && revokedAt === null);
  for (const { id } of earlier) await keys.change(id, (key) => revokeKey(key, Date.now()));
  const path = "/v1/alerts?status=open&severity=critical,high";
  await showNewKey(app, log, { name: DEMO_KEY, why: bold("Tocsin serves the demo."), path });
}

interface Welcome {
  readonly name: string;
  readonly why: string;
  /** What the example asks for. */
  readonly path: string;
}

async function showNewKey({ address, store }: App, log: Logger, { name, why, path }: Welcome): Promise<void> {
  const made = createKey({ name, scopes: SCOPES, plan: "enterprise", expiresAt: null, now: Date.now() });
  await store.keys.put(made.key);
  // If the log goes to a file, the key still goes to the terminal and not into that file.
  const terminal = process.stderr.isTTY && !process.stdout.isTTY ? process.stderr : process.stdout;
  const text = `
${why} This key has every scope. It is shown only once:

  ${made.secret}

Try it:

  curl -H "Authorization: Bearer ${made.secret}" "${address}${path}"

The API is described at ${address}/docs. More keys: npx tocsin keys --help

`;
  terminal.write(text, (error) => {
    if (error) log.error({ err: error }, "the key could not be shown; create another: tocsin keys create");
  });
}
