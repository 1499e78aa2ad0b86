import { severityOfCef, severityOfSyslog } from "../../../model/device-severity.ts";
import type { JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import { FIELDS_MAX, integerOf, put, putForeign, typeOf } from "../device-values.ts";
import { readAnyTime } from "../device-times.ts";
import { parseRecord } from "../json-record.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import { splitColumns } from "./columns.ts";
import type { EventDescription, FormatDescription, ValueTest } from "./description.ts";
import { fieldPutter, isTargetName, kindOfName, type PutField } from "./field-values.ts";
import { scanPairs } from "./pairs.ts";
import { Template } from "./template.ts";

// Reads lines by a description.

/** A device's values by its own names, before they get ours. */
type Values = Map<string, string>;

interface Scanned {
  readonly values: Values;
  readonly leftOut: number;
}

/** Turns a description into a format. */
export function describedFormat(description: FormatDescription): LineFormat {
  const { format: name, about, match, owns_programs: ownsPrograms, tests } = description;
  const reader = new DescribedReader(description);
  const example = tests.find(({ unparsed }) => !unparsed)?.line ?? tests[0]!.line;
  return {
    name,
    about,
    example,
    ...(match.programs && { programs: match.programs }),
    ...(ownsPrograms && { ownsPrograms }),
    read: (message, context) => reader.read(message, context),
  };
}

class DescribedReader {
  readonly #description: FormatDescription;
  readonly #programs: ReadonlySet<string> | undefined;
  readonly #headers: readonly BoundTemplate[] | undefined;
  readonly #scan: (text: string, start: number, known: Values) => Scanned | undefined;
  readonly #putters = new Map<string, readonly PutField[]>();
  readonly #absent: ReadonlySet<string>;
  readonly #events: EventIndex;
  readonly #times: readonly Fill[];

  constructor(description: FormatDescription) {
    this.#description = description;
    const { match, header, fields, absent, events, time = [] } = description;
    this.#programs = match.programs && new Set(match.programs);
    this.#headers = header?.map((one) => new BoundTemplate(one));
    this.#scan = scannerOf(description);
    for (const [own, names] of Object.entries(fields)) this.#putters.set(own, names.map(fieldPutter));
    this.#absent = new Set(["", ...absent]);
    this.#events = new EventIndex(events.map((event) => new DescribedEvent(event)));
    this.#times = time.map((source) => filler(source.includes("{") ? source : `{${source}}`));
  }

  read({ program, message: behindProgram, whole }: LineMessage, context: ReadContext): MessageReading | undefined {
    const message = this.#programs === undefined ? whole : behindProgram;
    if (!this.#isRecognised(program, message)) return undefined;
    const known: Values = new Map();
    let start = 0;
    let header: JsonObject = {};
    if (this.#headers !== undefined) {
      start = -1;
      for (const one of this.#headers) {
        header = {};
        start = one.match(message, 0, known, header);
        if (start >= 0) break;
      }
      if (start < 0) return undefined;
    }
    const scanned = this.#scan(message, start, known);
    if (scanned === undefined) return undefined;
    const { values, leftOut } = scanned;
    for (const event of this.#events.candidates(values)) {
      const raw: JsonObject = { ...header };
      if (!event.matches(values, message, start, raw)) continue;
      if (event.description.nothing) return { kind: "nothing" };
      this.#putAll(values, raw);
      if (leftOut > 0) put(raw, "fields_left_out", leftOut);
      return { kind: "events", events: [this.#event(event, values, message, raw, context)] };
    }
    return undefined;
  }

  #isRecognised(program: string | null, message: string): boolean {
    const { begins, contains } = this.#description.match;
    if (this.#programs !== undefined && (program === null || !this.#programs.has(program))) return false;
    if (begins !== undefined && !begins.some((text) => message.startsWith(text))) return false;
    return contains === undefined || contains.every((text) => message.includes(text));
  }

  #putAll(values: Values, raw: JsonObject): void {
    const { keep } = this.#description;
    for (const [name, value] of values) {
      if (this.#absent.has(value)) continue;
      const putters = this.#putters.get(name);
      if (putters !== undefined) for (const putField of putters) putField(raw, value);
      else if (keep && !isTargetName(name) && !Object.hasOwn(raw, name)) putForeign(raw, name, value);
    }
  }

  #event(event: DescribedEvent, values: Values, message: string, raw: JsonObject, context: ReadContext): ParsedEvent {
    const { source, class: stated } = event.description;
    event.putConstants(values, raw);
    if (raw["message"] === undefined && this.#description.pairs === undefined) put(raw, "message", message);
    return {
      type: event.typeOf(values),
      source: source ?? this.#description.source,
      severity: event.severityOf(values),
      ...(stated && { class: stated }),
      timestampMs: this.#timeOf(values, context),
      raw,
    };
  }

  #timeOf(values: Values, context: ReadContext): number | null {
    for (const source of this.#times) {
      const text = source(values);
      const ms = text === undefined ? null : readAnyTime(text, context);
      if (ms !== null) return ms;
    }
    return null;
  }
}

type Fill = (values: Values) => string | undefined;

/** Makes a text with values in place of their names in braces; undefined if one is missing. */
function filler(source: string): Fill {
  const parts = source.split(/\{([^{}]{1,64})\}/);
  return (values) => {
    let text = parts[0]!;
    for (let at = 1; at < parts.length; at += 2) {
      const value = values.get(parts[at]!);
      if (value === undefined) return undefined;
      text += value + parts[at + 1]!;
    }
    return text;
  };
}

/** A template whose fields are put into an event; those with another name become values. */
class BoundTemplate {
  readonly #template: Template;
  readonly #names: readonly string[];
  readonly #putters: readonly PutField[];
  readonly #captured: string[] = [];

  constructor(source: string) {
    this.#template = new Template(source, kindOfName);
    this.#names = this.#template.fields.map(({ name }) => name);
    this.#putters = this.#names.map(fieldPutter);
  }

  /** Position behind the match; -1 if there is none, or a value does not fit its field. */
  match(message: string, start: number, values: Values, raw: JsonObject): number {
    const end = this.#template.match(message, start, this.#captured);
    if (end < 0) return -1;
    for (let index = 0; index < this.#names.length; index++) {
      if (this.#names[index] !== "" && !this.#putters[index]!(raw, this.#captured[index]!)) return -1;
    }
    for (let index = 0; index < this.#names.length; index++) {
      if (this.#names[index] !== "") values.set(this.#names[index]!, this.#captured[index]!);
    }
    return end;
  }
}

class DescribedEvent {
  readonly description: EventDescription;
  readonly #tests: readonly (readonly [string, (value: string | undefined) => boolean])[];
  readonly #patterns: readonly BoundTemplate[] | undefined;
  readonly #constants: readonly (readonly [string, PutField, Fill | boolean])[];

  constructor(description: EventDescription) {
    this.description = description;
    this.#tests = Object.entries(description.when ?? {}).map(([name, test]) => [name, valueTester(test)] as const);
    this.#patterns = description.pattern?.map((source) => new BoundTemplate(source));
    this.#constants = Object.entries(description.set ?? {}).map(
      ([name, value]) => [name, fieldPutter(name), typeof value === "boolean" ? value : filler(String(value))] as const,
    );
  }

  /** The words that the value of this name may be; undefined if it may be any. */
  wordsOf(name: string): readonly string[] | undefined {
    return this.description.when?.[name]?.is;
  }

  /** Puts what its pattern finds. */
  matches(values: Values, message: string, start: number, raw: JsonObject): boolean {
    for (const [name, test] of this.#tests) if (!test(values.get(name))) return false;
    if (this.#patterns === undefined) return true;
    for (const pattern of this.#patterns) {
      const found: JsonObject = {};
      if (pattern.match(message, start, values, found) < 0) continue;
      Object.assign(raw, found);
      return true;
    }
    return false;
  }

  /** Constants replace what the device says. */
  putConstants(values: Values, raw: JsonObject): void {
    for (const [name, putField, value] of this.#constants) {
      const text = typeof value === "boolean" ? value : value(values);
      if (text === undefined) continue;
      delete raw[name];
      if (typeof text === "boolean") raw[name] = text;
      else putField(raw, text);
    }
  }

  typeOf(values: Values): string {
    const { type } = this.description;
    if (typeof type === "string") return type;
    const value = values.get(type!.of);
    if (value === undefined || value === "") return type!.else;
    const { values: types } = type!;
    return types === undefined ? typeOf(value, type!.else) : Object.hasOwn(types, value) ? types[value]! : type!.else;
  }

  severityOf(values: Values): Severity {
    const { severity } = this.description;
    if (typeof severity === "string") return severity;
    const { of, values: words, scale, else: otherwise } = severity!;
    const value = values.get(of);
    if (value === undefined) return otherwise;
    if (words !== undefined && Object.hasOwn(words, value)) return words[value]!;
    if (scale === "cef") return severityOfCef(value) ?? otherwise;
    const level = scale === "syslog" ? integerOf(value) : undefined;
    return level === undefined ? otherwise : severityOfSyslog(level);
  }
}

function valueTester(test: ValueTest): (value: string | undefined) => boolean {
  const { is, not, begins, ends, contains, exists } = {
    not: undefined,
    begins: undefined,
    ends: undefined,
    contains: undefined,
    exists: undefined,
    ...test,
  };
  const accepted = is && new Set(is);
  const refused = not && new Set(not);
  return (value) => {
    if (exists === false) return value === undefined || value === "";
    if (value === undefined) return false;
    if (exists === true && value === "") return false;
    if (accepted !== undefined && !accepted.has(value)) return false;
    if (refused?.has(value)) return false;
    if (begins !== undefined && !begins.some((text) => value.startsWith(text))) return false;
    if (ends !== undefined && !ends.some((text) => value.endsWith(text))) return false;
    return contains === undefined || contains.some((text) => value.includes(text));
  };
}

/** Finds the events that a line may be by the value that most of them ask for, such as a message number. */
class EventIndex {
  readonly #key: string | undefined;
  readonly #byValue = new Map<string, readonly DescribedEvent[]>();
  readonly #others: readonly DescribedEvent[];

  constructor(events: readonly DescribedEvent[]) {
    const counts = new Map<string, number>();
    for (const { description } of events) {
      for (const [name, test] of Object.entries(description.when ?? {})) {
        if (test.is !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
      }
    }
    const key = [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
    this.#key = key;
    this.#others = key === undefined ? events : events.filter((event) => event.wordsOf(key) === undefined);
    if (key === undefined) return;
    for (const value of new Set(events.flatMap((event) => event.wordsOf(key) ?? []))) {
      this.#byValue.set(
        value,
        events.filter((event) => event.wordsOf(key)?.includes(value) ?? true),
      );
    }
  }

  candidates(values: Values): readonly DescribedEvent[] {
    const value = this.#key === undefined ? undefined : values.get(this.#key);
    return (value === undefined ? undefined : this.#byValue.get(value)) ?? this.#others;
  }
}

function scannerOf({
  pairs,
  columns,
  json,
}: FormatDescription): (text: string, start: number, known: Values) => Scanned | undefined {
  if (pairs !== undefined) {
    return (text, start, known) => {
      const { values, leftOut } = scanPairs(text, start, pairs);
      for (const [name, value] of known) values.set(name, value);
      return { values, leftOut };
    };
  }
  if (columns !== undefined) return columnScanner(columns);
  if (json) return scanJson;
  return (_text, _start, values) => ({ values, leftOut: 0 });
}

function columnScanner({ separator, groups }: NonNullable<FormatDescription["columns"]>) {
  const chosen = groups.map((group) => {
    const cases = group.map((one) => (typeof one === "string" ? undefined : one));
    if (cases[0] === undefined) return () => group as readonly string[];
    const tested = (cases as { when: Record<string, ValueTest>; columns: string[] }[]).map(({ when, columns }) => ({
      columns,
      tests: Object.entries(when).map(([name, test]) => [name, valueTester(test)] as const),
    }));
    return (values: Values) =>
      tested.find(({ tests }) => tests.every(([name, test]) => test(values.get(name))))?.columns ?? [];
  });
  return (text: string, start: number, values: Values): Scanned => {
    const cells = splitColumns(text, start, separator);
    let at = 0;
    for (const columnsOf of chosen) {
      for (const name of columnsOf(values)) {
        const cell = cells[at++];
        if (name !== "" && cell !== undefined) values.set(name, cell);
      }
    }
    return { values, leftOut: Math.max(0, cells.length - at) };
  };
}

/** The leaves of an object by their paths. */
function scanJson(text: string, start: number, values: Values): Scanned | undefined {
  if (text.charCodeAt(start) !== 0x7b) return undefined;
  const parsed = parseRecord(start === 0 ? text : text.slice(start));
  if (parsed === undefined) return undefined;
  let leftOut = 0;
  const visit = (value: JsonValue, path: string) => {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      for (const [key, inner] of Object.entries(value)) visit(inner, path === "" ? key : `${path}.${key}`);
    } else if (values.size >= FIELDS_MAX) leftOut++;
    else if (value !== null)
      values.set(path, Array.isArray(value) ? value.map(plainText).join(", ") : plainText(value));
  };
  visit(parsed, "");
  return { values, leftOut };
}

const plainText = (value: JsonValue) =>
  typeof value === "string" ? value : typeof value === "bigint" ? String(value) : JSON.stringify(value);
