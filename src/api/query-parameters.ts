import { z } from "zod";
import { PER_PAGE_DEFAULT, PER_PAGE_MAX } from "../model/page.ts";

// Query parameters that several endpoints share.

/** An integer, parsed from the text of the parameter. */
export function integerParameter(min: number, max: number, description: string) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .transform((text, context) => {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .optional()
    .describe(description)
    .meta({ type: "integer", minimum: min, maximum: max });
}

/** A parameter with a text form of its own; `read` returns undefined for any other text. */
export function textParameter<Value>(
  description: string,
  message: string,
  read: (text: string) => Value | undefined,
  meta: Record<string, string | number>,
) {
  return z
    .string()
    .transform((text, context) => {
      const value = read(text);
      if (value !== undefined) return value;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .optional()
    .describe(description)
    .meta(meta);
}

export function booleanParameter() {
  return z
    .string()
    .transform((text, context) => {
      if (text === "true" || text === "false") return text === "true";
      context.addIssue({ code: "custom", message: "must be one of true, false" });
      return z.NEVER;
    })
    .optional()
    .meta({ type: "boolean" });
}

/** Any page past the end is empty. */
const PAGE_MAX = Number.MAX_SAFE_INTEGER;
export const pageParameter = integerParameter(1, PAGE_MAX, "page number, starting at 1 (the default)");
export const perPageParameter = integerParameter(1, PER_PAGE_MAX, `items per page, default ${PER_PAGE_DEFAULT}`);
