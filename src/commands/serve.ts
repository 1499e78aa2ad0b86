import type { Command } from "commander";
import type { Logger } from "pino";
import type { App } from "../app.ts";
import { endProcess } from "../lib/ending.ts";
import { saveMemoryAtRest } from "../lib/rest.ts";
import { readVersion } from "../lib/version.ts";
import { createKey, SCOPES } from "../model/key.ts";
import { EXIT_FAILED, EXIT_WRONG_USE, explainFailure } from "./failure.ts";
import { addSettingFlags, requireSettings } from "./settings.ts";
import { bold } from "./terminal.ts";

const CLOSE_MS_MAX = 15_000;
const SAME_SIGNAL_MS = 1000;

export function addServe(program: Command): void {
  const command = program.command("serve").description("run the service until it is told to stop");
  addSettingFlags(command)
    .addHelpText(
      "after",
      `
Every setting can stand in the file and in a TOCSIN_ variable too; a flag wins over both. docs/configuration.md has them.

Examples:
  tocsin serve
  tocsin serve --port 9000 --data-dir /srv/tocsin
  TOCSIN_RATE_LIMITS=off tocsin serve --config site.yaml

Exit codes: 0 stopped as told, ${EXIT_FAILED} could not start or go on, ${EXIT_WRONG_USE} wrong flags or configuration.`,
    )
    .action(async () => {
      const { settings, file } = requireSettings(command);
      const { createLog } = await import("../lib/log.ts");
      const log = createLog({ level: settings.logLevel });
      const stop = watchProcess(log);
      saveMemoryAtRest();
      const { startApp } = await import("../app.ts");
      let app: App;
      try {
        app = await startApp(settings, log);
      } catch (error) {
        throw explainFailure(error, settings);
      }
      log.info({ address: app.address, version: readVersion(), dataDir: settings.dataDir, file }, "listening");
      welcome(app, log);
      log.info({ signal: await stop }, "stopping");
      await app.close();
      log.info("stopped");
      log.flush(() => process.exit(0));
    });
}

/** Resolves with the signal that asks to stop. What nobody caught ends the process: its state is not to be trusted. */
function watchProcess(log: Logger): Promise<string> {
  const die = (reason: string, error?: unknown): never => {
    log.fatal({ err: error }, reason);
    endProcess(EXIT_FAILED);
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
        // Ctrl-C reaches the whole process group and npm passes it on once more: only a later one is a second one.
        die(`${signal} while stopping`);
      }
    };
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, onSignal);
  });
}

/**
 * On the very first start nobody has a key yet, whether `tocsin demo` has made events or not, and none is left where keys.db
 * was lost: one is made and shown to whoever started the service.
 */
function welcome({ address, store }: App, log: Logger): void {
  if (store.keys.list().length > 0) return;
  const made = createKey({ name: "first key", scopes: SCOPES, plan: "enterprise", expiresAt: null, now: Date.now() });
  store.keys.put(made.key);
  // With the log sent to a file, the key still goes to the person at the terminal and not into that file.
  const terminal = process.stderr.isTTY && !process.stdout.isTTY ? process.stderr : process.stdout;
  const why = store.keys.wereLost
    ? `${bold("The data folder has events and no key:")} keys that there were before are gone.`
    : bold("Tocsin runs for the first time.");
  const text = `
${why} This key has every right; it is shown this once and kept nowhere:

  ${made.secret}

Try it:

  curl -H "Authorization: Bearer ${made.secret}" "${address}/v1/events"

The API is described at ${address}/docs. More keys: npx tocsin keys --help

`;
  terminal.write(text, (error) => {
    if (error) log.error({ err: error }, "the first key could not be shown; make another: tocsin keys create");
  });
}
