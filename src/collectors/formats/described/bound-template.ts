import type { FieldList } from "../field-list.ts";
import { kindOfName, putValue, targetField, type TargetField } from "./field-values.ts";
import type { DeviceValues } from "./scan-values.ts";
import { Template } from "./template.ts";

export interface TemplateValues {
  /** True for the words for a missing value. */
  readonly isAbsent: (value: string) => boolean;
  /** True for a value that the description puts under another name. */
  readonly isRenamed: (name: string) => boolean;
}

/** A template whose fields are put into an event, and become values. */
export class BoundTemplate {
  readonly #template: Template;
  readonly #names: readonly string[];
  readonly #targets: readonly TargetField[];
  readonly #isValueOnly: readonly boolean[];
  readonly #captured: string[] = [];
  readonly #converted: ReturnType<TargetField["convert"]>[] = [];
  /** Where the converted values are put. */
  readonly #slots: TargetField["slot"][] = [];
  readonly #isAbsent: (value: string) => boolean;

  constructor(source: string, { isAbsent, isRenamed }: TemplateValues) {
    this.#isAbsent = isAbsent;
    this.#template = new Template(source, kindOfName);
    this.#names = this.#template.fields.map(({ name }) => name);
    this.#targets = this.#names.map((name) => targetField(name));
    this.#isValueOnly = this.#names.map(isRenamed);
  }

  /** Position behind the match; -1 if there is none, or a value does not fit its field. */
  match(message: string, start: number, values: DeviceValues, fields: FieldList): number {
    const end = this.#template.match(message, start, this.#captured);
    if (end < 0) return -1;
    for (let index = 0; index < this.#names.length; index++) {
      if (this.#names[index] === "") continue;
      this.#converted[index] = undefined;
      const value = this.#captured[index]!;
      if (this.#isAbsent(value)) continue;
      const { slot, convert, other, isOptional } = this.#targets[index]!;
      const converted = convert(value);
      if (converted !== undefined || other === undefined) {
        if (converted === undefined && !isOptional) return -1;
        this.#converted[index] = converted;
        this.#slots[index] = slot;
      } else {
        this.#converted[index] = other.convert(value);
        this.#slots[index] = other.slot;
        if (this.#converted[index] === undefined) return -1;
      }
    }
    for (let index = 0; index < this.#names.length; index++) {
      const name = this.#names[index]!;
      if (name === "") continue;
      const value = this.#captured[index]!;
      values.set(name, value);
      const converted = this.#converted[index];
      if (converted === undefined || this.#isValueOnly[index]) continue;
      const slot = this.#slots[index]!;
      if (!fields.has(slot)) fields.add(slot, converted);
      const { port } = this.#targets[index]!;
      if (port !== undefined) putValue(fields, port, value);
    }
    return end;
  }
}

/** Puts what the first template that matches finds. Position behind the match; -1 if there is none. */
export function firstMatch(
  templates: readonly BoundTemplate[],
  message: string,
  start: number,
  values: DeviceValues,
  fields: FieldList,
): number {
  for (const template of templates) {
    const end = template.match(message, start, values, fields);
    if (end >= 0) return end;
  }
  return -1;
}
