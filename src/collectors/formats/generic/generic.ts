import { severityOfSyslog } from "../../../model/device-severity.ts";
import type { JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import { FIELD_NAMES } from "../../../model/field-names.ts";
import { readAnyTime } from "../device-times.ts";
import { put, putForeign } from "../device-values.ts";
import { jsonLeaves } from "../json-leaves.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import type { SyslogHeader } from "../syslog/syslog-header.ts";
import { commonName, severityOfLevel, severityOfWord } from "./common-names.ts";
import { strictPairs } from "./strict-pairs.ts";

// The reader of last resort: a line of an unknown program that is JSON, pairs or CSV below its column names keeps its fields, and
// those with common names get ours. What is not sure is left out; the type is never guessed.

export const GENERIC = "generic";
const GENERIC_TYPE = "log_line";
/** Mark of structured messages in syslog. */
const CEE = "@cee:";
const ABSENT = new Set(["", "-", "null", "N/A", "n/a"]);
/** Numbers of seconds below it are times since a start rather than dates. */
const SECONDS_MIN = 1_000_000_000;

/** Undefined if the message has no form that is sure. */
export function readGeneric(header: SyslogHeader, context: ReadContext): ParsedEvent | undefined {
  const { message } = header;
  const text = message.startsWith(CEE) ? message.slice(CEE.length).trimStart() : message;
  if (text.startsWith("{")) {
    const { leaves = [], leftOut = 0 } = jsonLeaves(text, 0) ?? {};
    if (leaves.length === 0) return undefined;
    const event = eventOf(leaves, header, context);
    if (leftOut > 0) put(event.raw, "fields_left_out", leftOut);
    return event;
  }
  const pairs = strictPairs(text);
  if (pairs !== undefined) return eventOf(pairs, header, context);
  const key = `${context.sender} ${header.host ?? ""} ${header.program ?? ""}`;
  const csv = context.tables?.read(key, text);
  if (csv === undefined) return undefined;
  if (csv.kind === "names") return eventOf([["message", text]], header, context);
  const { misfits, event } = read(csv.pairs, header, context);
  // Free text may have as many commas as the table has columns.
  return misfits > 0 ? undefined : event;
}

type Pair = readonly [string, string];

function eventOf(pairs: readonly Pair[], header: SyslogHeader, context: ReadContext): ParsedEvent {
  return read(pairs, header, context).event;
}

/** `misfits`: values that do not fit the common name that they have. */
function read(
  pairs: readonly Pair[],
  header: SyslogHeader,
  context: ReadContext,
): { readonly event: ParsedEvent; readonly misfits: number } {
  const raw: JsonObject = {};
  const doubtful = new Set<string>();
  const times: string[] = [];
  let date: string | undefined;
  let severity: Severity | undefined;
  let level: Severity | undefined;
  let misfits = 0;
  const putOnce = (name: string, value: JsonValue) => {
    if (doubtful.has(name)) return;
    if (!Object.hasOwn(raw, name)) putForeign(raw, name, value);
    else if (raw[name] !== value) {
      // Two values for one name: either may be what somebody typed.
      delete raw[name];
      doubtful.add(name);
    }
  };
  for (const [own, value] of pairs) {
    if (ABSENT.has(value)) continue;
    const common = commonName(own);
    if (common?.kind === "time") times[common.rank] ??= value;
    else if (common?.kind === "date") date ??= value;
    else if (common?.kind === "severity") severity ??= severityOfWord(value);
    else if (common?.kind === "level") level ??= severityOfLevel(value);
    if (common?.kind === "field") {
      const converted = common.convert(value);
      if (converted !== undefined) putOnce(common.field, converted);
      else misfits++;
      if (converted !== undefined || Object.hasOwn(FIELD_NAMES, own)) continue;
    }
    if (!Object.hasOwn(FIELD_NAMES, own)) putOnce(own, value);
  }
  const event: ParsedEvent = {
    type: GENERIC_TYPE,
    source: "network",
    severity: severity ?? level ?? severityOfSyslog(header.severity),
    timestampMs: timeOf(times, date, context),
    raw,
  };
  return { event, misfits };
}

function timeOf(times: readonly (string | undefined)[], date: string | undefined, context: ReadContext): number | null {
  for (const text of times) {
    if (text === undefined) continue;
    if (/^\d/.test(text) && Number(text) < SECONDS_MIN) continue;
    const ms = readAnyTime(text, context) ?? (date === undefined ? null : readAnyTime(`${date} ${text}`, context));
    if (ms !== null) return ms;
  }
  return null;
}
