import pino from "pino";
import { Registry } from "prom-client";

/** For a store in which questions meet everything that can be under way. */
export const options = (dataDir: string, now: () => number = Date.now) => ({
  dataDir,
  platform: "platform",
  indexPrefix: "tocsin",
  registry: new Registry(),
  log: pino({ level: "silent" }),
  now,
  // So few that questions find rows in several places, and lots on their way between them.
  tailRowsMax: 300,
  // So short that the engine forgets between all of them.
  restMs: 10,
});
