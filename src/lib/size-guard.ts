import { z } from "zod";

/**
 * Applies the schema only to input within a size limit: each part costs time and may have faults. `tooMuch` returns the
 * message of a refusal; it gets input of any type.
 */
export function withSizeGuard<Schema extends z.ZodType>(
  schema: Schema,
  tooMuch: (input: unknown) => string | undefined,
) {
  return z.preprocess((input, context) => {
    const message = tooMuch(input);
    if (message === undefined) return input;
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  }, schema);
}
