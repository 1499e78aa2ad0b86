import type { JsonObject } from "../../../model/event.ts";
import { objectOf, put } from "../device-values.ts";
import { readAnyTime } from "../device-times.ts";
import { FieldList } from "../field-list.ts";
import type { LineFormat, LineMessage, MessageReading } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import { putLocalAddress } from "../threat-severity.ts";
import { BoundTemplate, firstMatch } from "./bound-template.ts";
import { DescribedEvent, EventIndex, filler, type ValueOf } from "./described-event.ts";
import type { FormatDescription } from "./description.ts";
import { isTargetName, ownField, putValue, targetField, type TargetField } from "./field-values.ts";
import { scannerOf, type DeviceValues, type ScanValues } from "./scan-values.ts";

// Reads lines by a description.

/** Names of values that a description does not mention. */
const NAMES_MAX = 2000;

/** Turns a description into a format. */
export function describedFormat(description: FormatDescription): LineFormat {
  const { format: name, about, devices, page, match, owns_programs: ownsPrograms, tests } = description;
  const reader = new DescribedReader(description);
  const example = tests.find(({ unparsed }) => !unparsed)?.line ?? tests[0]!.line;
  return {
    name,
    about,
    example,
    ...(devices.length > 0 && { devices }),
    ...(page && { page }),
    ...(match.programs && { programs: match.programs, needsProgram: true }),
    ...(match.begins && !match.programs && { begins: match.begins }),
    ...(ownsPrograms && { ownsPrograms }),
    ...(description.structured_data !== undefined && { readsStructuredData: true }),
    read: (message, context) => reader.read(message, context),
  };
}

class DescribedReader {
  readonly #description: FormatDescription;
  readonly #programs: ReadonlySet<string> | undefined;
  readonly #headers: readonly BoundTemplate[] | undefined;
  readonly #parts: readonly (readonly [string, readonly BoundTemplate[]])[];
  readonly #scan: ScanValues;
  readonly #targets = new Map<string, readonly TargetField[]>();
  /** Words for a missing value by their length, which tells most values from them. */
  readonly #absent: string[][] = [];
  readonly #events: EventIndex;
  readonly #times: readonly ((valueOf: ValueOf) => string | undefined)[];

  constructor(description: FormatDescription) {
    this.#description = description;
    const { match, header, parts, fields, words, absent, events, time = [] } = description;
    this.#programs = match.programs && new Set(match.programs);
    for (const word of ["", ...absent]) (this.#absent[word.length] ??= []).push(word);
    const templateValues = {
      isAbsent: (value: string) => this.#isAbsent(value),
      isRenamed: (name: string) => Object.hasOwn(fields, name),
    };
    const bound = (source: string) => new BoundTemplate(source, templateValues);
    this.#headers = header?.map(bound);
    this.#parts = Object.entries(parts).map(([name, sources]) => [name, sources.map(bound)]);
    this.#scan = scannerOf(description);
    for (const [own, names] of Object.entries(fields)) {
      this.#targets.set(
        own,
        names.map((name) => targetField(name, words[own])),
      );
    }
    this.#events = new EventIndex(events.map((event) => new DescribedEvent(event, templateValues)));
    this.#times = time.map((source) => filler(source.includes("{") ? source : `{${source}}`));
  }

  read(line: LineMessage, context: ReadContext): MessageReading | undefined {
    const { program, message: behindProgram, whole } = line;
    const message = this.#programs === undefined ? whole : behindProgram;
    if (!this.#isRecognised(program, message)) return undefined;
    const known: DeviceValues = new Map();
    const fields = new FieldList();
    let start = 0;
    const isStructured = this.#putStructured(line, known);
    if (this.#headers !== undefined && !isStructured) {
      start = firstMatch(this.#headers, message, 0, known, fields);
      if (start < 0) return undefined;
    }
    const scanned = this.#scan(message, start, known);
    if (scanned === undefined) return undefined;
    const { values, leftOut } = scanned;
    for (const [name, templates] of this.#parts) {
      const value = values.get(name);
      if (value !== undefined) firstMatch(templates, value, 0, values, fields);
    }
    for (const event of this.#events.candidates(values)) {
      if (!event.matches(values, message, start, fields)) continue;
      if (event.description.nothing) return { kind: "nothing" };
      // Constants come first, since a value that is there stays.
      event.putConstants((name) => this.#stated(values, name), fields);
      this.#putAll(values, fields);
      const raw = fields.toObject();
      for (const name of event.removed) if (raw[name] !== undefined) delete raw[name];
      if (leftOut > 0) put(raw, "fields_left_out", leftOut);
      return { kind: "events", events: [this.#event(event, values, message, raw, context)] };
    }
    return undefined;
  }

  /** Puts the parameters of the maker's own structured data; false if there are none. */
  #putStructured({ messageId, structuredData }: LineMessage, values: DeviceValues): boolean {
    const { structured_data: prefix } = this.#description;
    if (prefix === undefined || structuredData === undefined || structuredData === null) return false;
    let isFound = false;
    for (const [id, element] of Object.entries(structuredData)) {
      if (!id.startsWith(prefix)) continue;
      isFound = true;
      for (const [name, value] of Object.entries(objectOf(element) ?? {})) {
        if (typeof value === "string" && !values.has(name)) values.set(name, value);
      }
    }
    if (isFound && messageId !== undefined && messageId !== null) values.set("message_id", messageId);
    return isFound;
  }

  #isRecognised(program: string | null, message: string): boolean {
    const { begins, contains } = this.#description.match;
    if (this.#programs !== undefined && (program === null || !this.#programs.has(program))) return false;
    if (begins !== undefined && !beginsWithOne(message, begins)) return false;
    if (contains !== undefined) for (const text of contains) if (!message.includes(text)) return false;
    return true;
  }

  #putAll(values: DeviceValues, fields: FieldList): void {
    for (const [name, value] of values) {
      if (this.#isAbsent(value)) continue;
      const targets = this.#targets.get(name) ?? this.#ownTargets(name);
      for (let index = 0; index < targets.length; index++) putValue(fields, targets[index]!, value);
    }
  }

  /** Remembers what to do with a value that the description does not name. */
  #ownTargets(name: string): readonly TargetField[] {
    const targets = this.#description.keep && !isTargetName(name) ? [ownField(name)] : [];
    if (this.#targets.size < NAMES_MAX) this.#targets.set(name, targets);
    return targets;
  }

  #isAbsent(value: string): boolean {
    const words = this.#absent[value.length];
    return words !== undefined && words.includes(value);
  }

  #event(
    event: DescribedEvent,
    values: DeviceValues,
    message: string,
    raw: JsonObject,
    context: ReadContext,
  ): ParsedEvent {
    const { source, class: stated } = event.description;
    const type = event.typeOf(values);
    if (type === "ids_alert") putLocalAddress(raw);
    if (raw["message"] === undefined && this.#description.pairs === undefined) put(raw, "message", message);
    return {
      type,
      source: source ?? this.#description.source,
      severity: event.severityOf(values),
      ...(stated && { class: stated }),
      timestampMs: this.#timeOf(values, context),
      raw,
    };
  }

  /** A value that is not one of the words for a missing one. */
  #stated(values: DeviceValues, name: string): string | undefined {
    const value = values.get(name);
    return value === undefined || this.#isAbsent(value) ? undefined : value;
  }

  #timeOf(values: DeviceValues, context: ReadContext): number | null {
    for (const textOf of this.#times) {
      const text = textOf((name) => values.get(name));
      const ms = text === undefined ? null : readAnyTime(text, context);
      if (ms !== null) return ms;
    }
    return null;
  }
}

function beginsWithOne(message: string, texts: readonly string[]): boolean {
  for (const text of texts) if (message.startsWith(text)) return true;
  return false;
}
