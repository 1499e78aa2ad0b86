import { RESOLUTIONS, STATUSES } from "../../model/alert-state.ts";
import { SEVERITIES } from "../../model/event.ts";
import { isAlertField, type AlertField } from "../../model/alert-field.ts";
import { NONE, type AlertColumns } from "./alert-columns.ts";
import { NO_TEXT, type Dictionary } from "./dictionary.ts";
import type { ListColumn } from "./list-column.ts";
import type { CodedColumn, SlotColumn, NumberColumn } from "./slot-column.ts";

// The fields of alerts that are columns in memory.

type Fields = AlertColumns["fields"];

const COLUMNS: Partial<Record<AlertField, (fields: Fields) => SlotColumn>> = {
  severity: ({ severity }) => closedColumn(SEVERITIES, severity),
  status: ({ status }) => closedColumn(STATUSES, status),
  resolution: ({ resolution }) => closedColumn(RESOLUTIONS, resolution),
  rule_name: ({ rule, rules }) => textColumn(rules, rule),
  source: ({ source, sources }) => textColumn(sources, source),
  assignee: ({ assignee, assignees }) => textColumn(assignees, assignee),
  "group.field": ({ groupField, groupFields }) => textColumn(groupFields, groupField),
  "group.value": ({ groupValue, groupValues }) => textColumn(groupValues, groupValue),
  tags: ({ tags }) => listColumn(tags),
  entities: ({ entities }) => listColumn(entities),
  "entities.kind": ({ entities }) => partOf(listColumn(entities), (text) => text.slice(0, text.indexOf(":"))),
  "entities.value": ({ entities }) => partOf(listColumn(entities), (text) => text.slice(text.indexOf(":") + 1)),
  event_count: ({ eventCount }) => numberColumn((slot) => eventCount[slot]!),
  "ai_analysis.threat_score": ({ threatScore }) =>
    numberColumn((slot) => (threatScore[slot] === NONE ? Number.NaN : threatScore[slot]!)),
  created_at: ({ createdAt }) => timeColumn(createdAt),
  first_event_at: ({ firstEventAt }) => timeColumn(firstEventAt),
  last_event_at: ({ lastEventAt }) => timeColumn(lastEventAt),
};

/** Undefined for a field that is in the documents alone. */
export function alertColumn(columns: AlertColumns, path: string): SlotColumn | undefined {
  return isAlertField(path) ? COLUMNS[path]?.(columns.fields) : undefined;
}

function closedColumn(values: readonly string[], codes: Uint8Array): CodedColumn {
  return {
    kind: "codes",
    end: values.length,
    valueOf: (code) => values[code],
    count: (slot) => (codes[slot] === NONE ? 0 : 1),
    at: (slot) => codes[slot]!,
    isOrdered: true,
  };
}

function textColumn(dictionary: Dictionary, codes: Uint32Array): CodedColumn {
  return {
    ...dictionaryOf(dictionary),
    count: (slot) => (codes[slot] === NO_TEXT ? 0 : 1),
    at: (slot) => codes[slot]!,
  };
}

function listColumn(list: ListColumn): CodedColumn {
  return {
    ...dictionaryOf(list.dictionary),
    count: (slot) => list.countOf(slot),
    at: (slot, index) => list.codeAt(slot, index),
  };
}

function dictionaryOf(dictionary: Dictionary): Pick<CodedColumn, "kind" | "end" | "valueOf" | "codeOf"> {
  return {
    kind: "codes",
    end: dictionary.end,
    valueOf: (code) => dictionary.textOf(code),
    codeOf: (value) => (typeof value === "string" ? dictionary.codeOf(value) : undefined),
  };
}

/** The column of a part of each value. */
function partOf({ kind, end, valueOf, count, at }: CodedColumn, part: (text: string) => string): CodedColumn {
  return {
    kind,
    end,
    valueOf: (code) => {
      const text = valueOf(code);
      return text === undefined ? undefined : part(text as string);
    },
    count,
    at,
    sharesValues: true,
  };
}

function numberColumn(at: (slot: number) => number): NumberColumn {
  return { kind: "numbers", isTime: false, at };
}

function timeColumn(times: Float64Array): NumberColumn {
  return { kind: "numbers", isTime: true, at: (slot) => times[slot]! };
}
