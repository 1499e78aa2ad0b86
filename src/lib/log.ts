import { pino, type DestinationStream, type Logger } from "pino";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const BUFFER_BYTES = 4096;
const FLUSH_EVERY_MS = 250;

const SECRET_HEADERS = ["authorization", "cookie", "set-cookie", "proxy-authorization"];
const SECRET_PATHS = SECRET_HEADERS.flatMap((name) => [
  `["${name}"]`,
  `headers["${name}"]`,
  `req.headers["${name}"]`,
  `res.headers["${name}"]`,
]);

/**
 * One JSON object per line. Lines are buffered and written off the hot path; what is buffered is written when the
 * process exits. A key of ours is taken out of whatever text it stands in, an error's message included.
 */
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
    destination ?? pino.destination({ fd: 1, sync: false, minLength: BUFFER_BYTES, periodicFlush: FLUSH_EVERY_MS }),
  );
}

function hideSecrets(line: string): string {
  const hidden = line.includes("tsn_") ? line.replace(/tsn_[A-Za-z0-9_-]+/g, "tsn_[redacted]") : line;
  return /bearer /i.test(hidden) ? hidden.replace(/(bearer )[^\s"\\]+/gi, "$1[redacted]") : hidden;
}
