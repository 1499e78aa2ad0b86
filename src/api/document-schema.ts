// Schemas of the OpenAPI document, and walking through them.

export type Schema = { [keyword: string]: unknown };
export type Schemas = Record<string, Schema>;

export const COMPONENTS = "#/components/schemas/";
export const reference = (name: string): Schema => ({ $ref: `${COMPONENTS}${name}` });

/** Calls back with every object of a tree, from the outside in. */
export function visit(node: unknown, each: (node: Schema) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) each(node as Schema);
  for (const inner of Object.values(node)) visit(inner, each);
}
