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

/** Writes one JSON object per line. API keys are redacted everywhere, including error messages. */
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
    // Not pino's own destination: with a full disk, it prevents the process from exiting.
    destination ?? new LineWriter(STANDARD_OUTPUT),
  );
}

function hideSecrets(line: string): string {
  const hidden = line.includes("tsn_") ? line.replace(/tsn_[A-Za-z0-9_-]+/g, "tsn_[redacted]") : line;
  return /bearer /i.test(hidden) ? hidden.replace(/(bearer )[^\s"\\]+/gi, "$1[redacted]") : hidden;
}
