import { z } from "zod";
import { pathFault, type TopField } from "./field.ts";

/** A field path in a request; the fault of a malformed one is explained. */
export const fieldSchema = fieldExcept([], "");

/** A field path other than the given top-level fields, which are refused with the message. */
export function fieldExcept(refused: readonly TopField[], message: string) {
  return z.string().superRefine((path, context) => {
    const fault = (refused as readonly string[]).includes(path) ? message : pathFault(path);
    if (fault) context.addIssue({ code: "custom", message: fault });
  });
}
