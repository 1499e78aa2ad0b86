import type { Command } from "commander";
import type { Logger } from "pino";
import type { App } from "../app.ts";
import { exitNow } from "../lib/exit-now.ts";
import { releaseIdleMemory } from "../lib/idle-memory.ts";
import { readVersion } from "../lib/version.ts";
import { createKey, SCOPES } from "../model/key.ts";
import { EXIT_FAILED, EXIT_WRONG_USE, explainFailure } from "./command-failure.ts";
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
    .action(async () => {
      const { settings, file } = requireSettings(command);
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
      await welcome(app, log);
      log.info({ signal: await stop }, "stopping");
      await app.close();
      log.info("stopped");
      log.flush(() => process.exit(0));
    });
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
async function welcome({ address, store }: App, log: Logger): Promise<void> {
  if ((await store.keys.list()).length > 0) return;
  const made = createKey({ name: "first key", scopes: SCOPES, plan: "enterprise", expiresAt: null, now: Date.now() });
  await store.keys.put(made.key);
  // If the log goes to a file, the key still goes to the terminal and not into that file.
  const terminal = process.stderr.isTTY && !process.stdout.isTTY ? process.stderr : process.stdout;
  const why = store.keys.wereLost
    ? `${bold("The data folder has events but no keys:")} its earlier keys are lost.`
    : bold("Tocsin runs for the first time.");
  const text = `
${why} This key has every scope. It is shown only once:

  ${made.secret}

Try it:

  curl -H "Authorization: Bearer ${made.secret}" "${address}/v1/events"

The API is described at ${address}/docs. More keys: npx tocsin keys --help

`;
  terminal.write(text, (error) => {
    if (error) log.error({ err: error }, "the first key could not be shown; create another: tocsin keys create");
  });
}
