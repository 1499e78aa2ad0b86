import { pino, type DestinationStream, type Logger } from "pino";
import { LineWriter } from "./line-writer.ts";
import type { LogLevel } from "./log-level.ts";

const STANDARD_OUTPUT = 1;

const SECRET_HEADERS = ["authorization", "cookie", "set-cookie", "proxy-authorization"];
const SECRET_PATHS = SECRET_HEADERS.flatMap((name) => [
  `["${name}"]`,
  `headers["${name}"]`,
  `req.headers["${name}"]`,
  `res.headers["${name}"]`,
]);

/** One JSON object per line. A key of ours is taken out of whatever text it stands in, an error's message included. */
export function createLog({ level, destination }: { level: LogLevel; destination?: DestinationStream }): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_PATHS, censor: "[redacted]" },
      hooks: { streamWrite: hideSecrets },
    },
    // Not pino's own destination: with a full disk behind it, that one never lets the process exit.
    destination ?? new LineWriter(STANDARD_OUTPUT),
  );
}

function hideSecrets(line: string): string {
  const hidden = line.includes("tsn_") ? line.replace(/tsn_[A-Za-z0-9_-]+/g, "tsn_[redacted]") : line;
  return /bearer /i.test(hidden) ? hidden.replace(/(bearer )[^\s"\\]+/gi, "$1[redacted]") : hidden;
}
