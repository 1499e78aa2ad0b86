import { parseSent } from "../../../lib/exact-json.ts";
import { severityOfSyslog } from "../../../model/device-severity.ts";
import type { JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import type { FieldNameKey } from "../../../model/field-names.ts";
import { fieldPutter, isFieldName, type PutField } from "../described/field-values.ts";
import { readAnyTime } from "../device-times.ts";
import { FIELDS_MAX, objectOf, putForeign } from "../device-values.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import type { SyslogHeader } from "../syslog/syslog-header.ts";
import { commonName, hasMeaning, severityOfLevel, severityOfWord } from "./common-names.ts";
import { strictPairs } from "./strict-pairs.ts";

// The reader of last resort: a line of an unknown program that is JSON, pairs or CSV below its column names keeps its fields, and
// those with common names get ours. What is not sure is left out; the type is never guessed.

export const GENERIC = "generic";
const GENERIC_TYPE = "log_line";
/** Mark of structured messages in syslog. */
const CEE = "@cee:";
const DEPTH_MAX = 16;
const ABSENT = new Set(["", "-", "null", "N/A", "n/a"]);
/** Numbers of seconds below it are times since a start rather than dates. */
const SECONDS_MIN = 1_000_000_000;

/** Undefined if the message has no form that is sure. */
export function readGeneric(header: SyslogHeader, context: ReadContext): ParsedEvent | undefined {
  const { message } = header;
  const text = message.startsWith(CEE) ? message.slice(CEE.length).trimStart() : message;
  if (text.startsWith("{")) {
    const pairs = leavesOf(text);
    return pairs && eventOf(pairs, header, context);
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

/** The leaves of a JSON object by their paths; undefined if it is none, or too large. */
function leavesOf(text: string): Pair[] | undefined {
  let object: JsonObject | undefined;
  try {
    object = objectOf(parseSent(text));
  } catch {
    return undefined;
  }
  if (object === undefined) return undefined;
  const pairs: Pair[] = [];
  const visit = (value: JsonValue, path: string, depth: number): boolean => {
    if (depth > DEPTH_MAX || pairs.length >= FIELDS_MAX) return false;
    const inner = objectOf(value);
    if (inner !== undefined) {
      return Object.entries(inner).every(([key, one]) => visit(one, path === "" ? key : `${path}.${key}`, depth + 1));
    }
    if (value !== null) pairs.push([path, typeof value === "string" ? value : JSON.stringify(value)]);
    return true;
  };
  return visit(object, "", 0) && pairs.length > 0 ? pairs : undefined;
}

const putters = new Map<FieldNameKey, PutField>();

function putterOf(field: FieldNameKey): PutField {
  let putter = putters.get(field);
  if (putter === undefined) putters.set(field, (putter = fieldPutter(field)));
  return putter;
}

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
      const converted = convertedBy(common.field, value);
      if (converted !== undefined) putOnce(common.field, converted);
      else misfits++;
      if (converted !== undefined || isFieldName(own)) continue;
    }
    if (!isFieldName(own)) putOnce(own, value);
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

function convertedBy(field: FieldNameKey, value: string): JsonValue | undefined {
  const converted: JsonObject = {};
  putterOf(field)(converted, value);
  const is = converted[field];
  return is !== undefined && hasMeaning(field, value, is) ? is : undefined;
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
