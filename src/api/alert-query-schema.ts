import { z } from "zod";
import { BESIDE_OTHERS } from "../lib/fault.ts";
import { boundSchema, refuseBackwards } from "../model/time-bound.ts";
import { alertFilters, eventIdParameter } from "./alert-filters.ts";
import { searchParameter } from "./paging.ts";

// The filters of the list of alerts, as an object in a body.

const VALUES_MAX = 100;

/** A filter of the list in a body: one value, or a list instead of commas. */
function listField<Parameter extends z.ZodType>(parameter: Parameter) {
  const item = z
    .string()
    .min(1)
    .refine((text) => !text.includes(","), "must not contain a comma; send several values as a list");
  return z
    .union([item, z.array(item).min(1).max(VALUES_MAX)], { error: "must be a text or a list of texts" })
    .transform((values) => (typeof values === "string" ? values : values.join(",")))
    .pipe(parameter as unknown as z.ZodType<z.output<Parameter>, string>)
    .optional();
}

export function alertQuerySchema(sources: readonly string[]) {
  const { status, severity, rule_name, source, assignee, tag, entity, time } = alertFilters(sources);
  return z
    .strictObject({
      status: listField(status),
      severity: listField(severity),
      rule_name: listField(rule_name),
      source: listField(source),
      assignee: listField(assignee),
      tag: listField(tag),
      entity: listField(entity),
      event_id: listField(eventIdParameter),
      time,
      from: boundSchema.optional().describe("earliest `created_at`, inclusive; see `time`"),
      to: boundSchema.optional().describe("latest `created_at`, exclusive; see `time`"),
      search: searchParameter("words, as in the list"),
    })
    .superRefine(refuseBackwards, BESIDE_OTHERS)
    .meta({
      id: "AlertQuery",
      description: "the filters of the list of alerts; each takes a value or a list of values",
    });
}

/** Made once for all calls: a schema with a name may be in the OpenAPI document only once. */
export type AlertQuerySchema = ReturnType<typeof alertQuerySchema>;
