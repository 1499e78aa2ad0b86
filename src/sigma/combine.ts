import type { ConditionInput } from "../model/rule.ts";

// Combines conditions with as little nesting as possible.

const ITEMS_MAX = 256;

export function allOf(conditions: readonly ConditionInput[]): ConditionInput {
  const flat = conditions.flatMap((condition) => ("all" in condition ? condition.all : [condition]));
  return flat.length === 1 ? flat[0]! : { all: inChunks(flat, (all) => ({ all })) };
}

export function anyOf(conditions: readonly ConditionInput[]): ConditionInput {
  const flat = conditions.flatMap((condition) => ("any" in condition ? condition.any : [condition]));
  return flat.length === 1 ? flat[0]! : { any: inChunks(flat, (any) => ({ any })) };
}

export function notOf(condition: ConditionInput): ConditionInput {
  return "not" in condition ? condition.not : { not: condition };
}

/** The top-level list of a rule's conditions, all of which must hold. */
export function listOf(condition: ConditionInput): ConditionInput[] {
  return "all" in condition ? condition.all : [condition];
}

/** Splits a list beyond the length limit into chunks one level deeper. */
export function inChunks<Item>(items: Item[], wrap: (chunk: Item[]) => Item, itemsMax = ITEMS_MAX): Item[] {
  if (items.length <= itemsMax) return items;
  const chunks: Item[] = [];
  for (let at = 0; at < items.length; at += itemsMax) chunks.push(wrap(items.slice(at, at + itemsMax)));
  return chunks;
}
