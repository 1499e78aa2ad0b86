import { z } from "zod";
import { parseEntityText } from "../model/alert-entity.ts";
import { STATUSES } from "../model/alert-state.ts";
import { tagSchema } from "../model/alert-tags.ts";
import { ENTITY_CHARACTERS_MAX, ENTITY_KINDS } from "../model/entity.ts";
import { SEVERITIES } from "../model/event.ts";
import { severitySchema } from "../model/event-schema.ts";
import { ALERT_TIMES, type AlertFilter, type EntityFilter } from "../store/ports/alert-store.ts";
import { ADDRESS_CHARACTERS_MAX } from "./alert-body-fields.ts";
import { commaListParameter } from "./comma-list.ts";
import { sourceSchema } from "./sources.ts";

// The query parameters that select alerts.

const RULE_NAME_CHARACTERS_MAX = 200;
const EVENT_ID_CHARACTERS_MAX = 100;
const KIND_CHARACTERS_MAX = 20;
/** The value of `assignee` that selects alerts nobody is assigned to; it is not an address. */
const NOBODY = "none";

const entityFilterSchema = z
  .string()
  .max(KIND_CHARACTERS_MAX + ENTITY_CHARACTERS_MAX)
  .transform((text): EntityFilter => parseEntityText(text) ?? { value: text });

/** Filters that the list and the stream share. */
export function alertFilters(sources: readonly string[]) {
  return {
    status: commaListParameter(z.enum(STATUSES), STATUSES.join(", ")),
    severity: commaListParameter(severitySchema, SEVERITIES.join(", ")),
    rule_name: commaListParameter(z.string().max(RULE_NAME_CHARACTERS_MAX), "name of the rule"),
    source: commaListParameter(sourceSchema(sources), sources.join(", ")),
    assignee: commaListParameter(
      z
        .string()
        .max(ADDRESS_CHARACTERS_MAX)
        .toLowerCase()
        .transform((name) => (name === NOBODY ? null : name)),
      `e-mail address, case-insensitive; \`${NOBODY}\` selects unassigned alerts`,
    ),
    tag: commaListParameter(tagSchema, "tag of the alert, not of its rule; one of these suffices"),
    entity: commaListParameter(
      entityFilterSchema,
      `alerts that name this entity, as \`kind:value\` or as a value of any kind, case-insensitive; kinds are ${ENTITY_KINDS.join(", ")}`,
    ),
    time: z
      .enum(ALERT_TIMES)
      .optional()
      .describe(
        "what `from` and `to` compare: `created_at` (created, the default), or the time from the first to the last event, which " +
          "must overlap the range (overlap)",
      ),
  };
}

/** The filter that only lists have: a change of an alert does not contain its events. */
export const eventIdParameter = commaListParameter(
  z.string().max(EVENT_ID_CHARACTERS_MAX),
  "id of an event: alerts that list it among their events",
);

type FilterParameters = { readonly rule_name?: readonly string[] | undefined } & Pick<
  AlertFilter,
  "status" | "severity" | "source" | "assignee" | "tag" | "entity" | "time" | "search"
> & {
    readonly event_id?: readonly string[] | undefined;
    readonly from?: number | undefined;
    readonly to?: number | undefined;
  };

export function alertFilterOf(query: FilterParameters): AlertFilter {
  const { status, severity, source, assignee, tag, entity, time, search } = query;
  const { rule_name: ruleName, event_id: eventId, from: fromMs, to: toMs } = query;
  return { status, severity, ruleName, source, assignee, tag, entity, eventId, time, search, fromMs, toMs };
}
