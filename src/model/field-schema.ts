import { z } from "zod";
import { EVENT_FIELDS, type QueryFields } from "./query-fields.ts";

/** A field path in a request; the fault of a malformed one is explained. */
export const fieldSchema = fieldExcept(EVENT_FIELDS, () => false, "");

/** A field path other than those that are refused with the message. */
export function fieldExcept(fields: QueryFields, isRefused: (path: string) => boolean, message: string) {
  return z.string().superRefine((path, context) => {
    const fault = isRefused(path) ? message : fields.pathFault(path);
    if (fault) context.addIssue({ code: "custom", message: fault });
  });
}
