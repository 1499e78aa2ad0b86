import { parseSent } from "../../../lib/exact-json.ts";
import { objectOf } from "../device-values.ts";
import type { TimeContext } from "../device-times.ts";
import { readHeader, type SyslogHeader } from "./syslog-header.ts";
import { isRelay } from "./syslog-relay.ts";

// Lines that a relay sends inside a JSON object, with fields of its own beside them: Graylog, Cribl, Logstash, Fluent Bit, Vector.

/** Keys of the original line, if the header names a relay as the program. */
const LINE_KEYS = ["_raw", "full_message", "message", "short_message", "log", "raw", "msg"] as const;
/** Keys that only relays use. Other programs have text that strangers typed under the usual ones. */
const RELAY_KEYS = ["_raw"] as const;
const GELF_KEYS = ["_raw", "full_message", "short_message"] as const;
/** Keys of the host that the relay knows. */
const HOST_KEYS = ["host", "hostname", "source"] as const;
const HOST_CHARACTERS_MAX = 255;
const PRIORITY = /^\s*<\d{1,3}>/;

export interface CarriedLine {
  readonly line: string;
  readonly host: string | null;
}

/** Undefined if the message is no object with a whole line in it: one with a priority and a time. */
export function lineInJson(header: SyslogHeader, context: TimeContext): CarriedLine | undefined {
  const { message } = header;
  if (!message.startsWith("{") || !message.includes("<") || !isRelay(header)) return undefined;
  let object;
  try {
    object = objectOf(parseSent(message));
  } catch {
    return undefined;
  }
  if (object === undefined) return undefined;
  const isGelf = typeof object["version"] === "string" && typeof object["host"] === "string";
  for (const key of header.program !== null ? LINE_KEYS : isGelf ? GELF_KEYS : RELAY_KEYS) {
    const line = object[key];
    if (typeof line !== "string" || !PRIORITY.test(line)) continue;
    const inner = readHeader(line, context);
    if (inner.severity === null || inner.timeMs === null || inner.message.startsWith("{")) continue;
    const host = HOST_KEYS.map((name) => object[name]).find((value) => typeof value === "string" && value !== "");
    return { line, host: typeof host === "string" && host.length <= HOST_CHARACTERS_MAX ? host : null };
  }
  return undefined;
}
