import { severityOfCef, severityOfSyslog } from "../../../model/device-severity.ts";
import type { Severity } from "../../../model/event.ts";
import { integerOf, typeOf } from "../device-values.ts";
import type { FieldList } from "../field-list.ts";
import { BoundTemplate, firstMatch, type TemplateValues } from "./bound-template.ts";
import type { EventDescription } from "./description.ts";
import { setValue, targetField, type TargetField } from "./field-values.ts";
import type { DeviceValues } from "./scan-values.ts";
import { valueTester } from "./value-tester.ts";

// The events of a description: which lines they are, and what they add to the values of the device.

export type ValueOf = (name: string) => string | undefined;

/** A text with names in braces, and how to put values in their place; undefined if one is missing. */
export function filler(source: string): (valueOf: ValueOf) => string | undefined {
  const [first = "", ...rest] = source.split("{");
  const parts = rest.map((part) => {
    const close = part.indexOf("}");
    return [part.slice(0, close), part.slice(close + 1)] as const;
  });
  return (valueOf) => {
    let text = first;
    for (const [name, after] of parts) {
      const value = valueOf(name);
      if (value === undefined) return undefined;
      text += value + after;
    }
    return text;
  };
}

export class DescribedEvent {
  readonly description: EventDescription;
  readonly #tests: readonly (readonly [string, (value: string | undefined) => boolean])[];
  readonly #patterns: readonly BoundTemplate[] | undefined;
  readonly #constants: readonly (readonly [TargetField, (valueOf: ValueOf) => string | boolean | undefined])[];
  /** Fields that an empty constant removes. */
  readonly removed: readonly string[];

  constructor(description: EventDescription, templateValues: TemplateValues) {
    this.description = description;
    this.#tests = Object.entries(description.when ?? {}).map(([name, test]) => [name, valueTester(test)] as const);
    this.#patterns = description.pattern?.map((source) => new BoundTemplate(source, templateValues));
    this.removed = Object.entries(description.set ?? {}).flatMap(([name, value]) => (value === "" ? [name] : []));
    this.#constants = Object.entries(description.set ?? {})
      .filter(([, value]) => value !== "")
      .map(([name, value]) => [targetField(name), typeof value === "boolean" ? () => value : filler(String(value))]);
  }

  /** The words that the value of this name may be; undefined if it may be any. */
  wordsOf(name: string): readonly string[] | undefined {
    return this.description.when?.[name]?.is;
  }

  /** Puts what its pattern finds. */
  matches(values: DeviceValues, message: string, start: number, fields: FieldList): boolean {
    for (const [name, test] of this.#tests) if (!test(values.get(name))) return false;
    return this.#patterns === undefined || firstMatch(this.#patterns, message, start, values, fields) >= 0;
  }

  /** Constants take the place of what the device says. */
  putConstants(valueOf: ValueOf, fields: FieldList): void {
    for (const [target, textOf] of this.#constants) {
      const text = textOf(valueOf);
      if (typeof text === "boolean") fields.set(target.slot, text);
      else if (text !== undefined) setValue(fields, target, text);
    }
  }

  typeOf(values: DeviceValues): string {
    const { type } = this.description;
    if (typeof type === "string") return type;
    const value = values.get(type!.of);
    if (value === undefined || value === "") return type!.else;
    const { values: types } = type!;
    return types === undefined ? typeOf(value, type!.else) : Object.hasOwn(types, value) ? types[value]! : type!.else;
  }

  severityOf(values: DeviceValues): Severity {
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

/** Finds the events that a line may be by the value that most of them ask for, such as a message number. */
export class EventIndex {
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

  candidates(values: DeviceValues): readonly DescribedEvent[] {
    const value = this.#key === undefined ? undefined : values.get(this.#key);
    return (value === undefined ? undefined : this.#byValue.get(value)) ?? this.#others;
  }
}
