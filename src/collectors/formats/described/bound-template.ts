import type { FieldList } from "../field-list.ts";
import { kindOfName, targetField, type TargetField } from "./field-values.ts";
import type { DeviceValues } from "./scan-values.ts";
import { Template } from "./template.ts";

/** A template whose fields are put into an event, and become values. */
export class BoundTemplate {
  readonly #template: Template;
  readonly #names: readonly string[];
  readonly #targets: readonly TargetField[];
  readonly #captured: string[] = [];
  readonly #converted: ReturnType<TargetField["convert"]>[] = [];

  constructor(source: string) {
    this.#template = new Template(source, kindOfName);
    this.#names = this.#template.fields.map(({ name }) => name);
    this.#targets = this.#names.map((name) => targetField(name));
  }

  /** Position behind the match; -1 if there is none, or a value does not fit its field. */
  match(message: string, start: number, values: DeviceValues, fields: FieldList): number {
    const end = this.#template.match(message, start, this.#captured);
    if (end < 0) return -1;
    for (let index = 0; index < this.#names.length; index++) {
      if (this.#names[index] === "") continue;
      const { convert, otherSlot } = this.#targets[index]!;
      const value = this.#captured[index]!;
      const converted = convert(value);
      if (converted === undefined && otherSlot === undefined && value !== "") return -1;
      this.#converted[index] = converted;
    }
    for (let index = 0; index < this.#names.length; index++) {
      const name = this.#names[index]!;
      if (name === "") continue;
      const value = this.#captured[index]!;
      values.set(name, value);
      const { slot, otherSlot } = this.#targets[index]!;
      const converted = this.#converted[index];
      if (converted !== undefined) {
        if (!fields.has(slot)) fields.add(slot, converted);
      } else if (otherSlot !== undefined && value !== "" && !fields.has(otherSlot)) fields.add(otherSlot, value);
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
