import { z } from "zod";

/**
 * A schema that is asked only about what has not too much in it: each part of it costs, and can be at fault in itself.
 * `tooMuch` meets things of any type.
 */
export function unlessTooMuch<Schema extends z.ZodType>(
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
