// Schemas of the OpenAPI document.

export type OpenapiSchema = { [keyword: string]: unknown };
export type OpenapiSchemas = Record<string, OpenapiSchema>;

export const COMPONENTS = "#/components/schemas/";
export const reference = (name: string): OpenapiSchema => ({ $ref: `${COMPONENTS}${name}` });

/** Calls `each` for every object of a tree, parents first. */
export function visit(node: unknown, each: (node: OpenapiSchema) => void): void {
  if (typeof node !== "object" || node === null) return;
  if (!Array.isArray(node)) each(node as OpenapiSchema);
  for (const inner of Object.values(node)) visit(inner, each);
}
