import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import type { ListStatus } from "../enrichment/enrichment-status.ts";
import { parseEntryValue } from "../enrichment/lists/entry-value.ts";
import type { EntryInput, ManagedList } from "../enrichment/lists/managed-lists.ts";
import {
  allowsType,
  ENTRY_TYPES,
  isExpired,
  LIST_ENTRIES_MAX,
  LIST_KINDS,
  LIST_NAME,
  type ListEntry,
  type ListKind,
} from "../model/watch-list.ts";
import { timeSchema } from "../model/time-bound.ts";
import type { Fault } from "../lib/fault.ts";

// Lists and their entries as requests state them and as responses show them.

const DESCRIPTION_CHARACTERS_MAX = 1000;
export const NOTE_CHARACTERS_MAX = 500;
const WORDS = "an address, a network such as 192.0.2.0/24, a range such as 192.0.2.1-192.0.2.9, or a domain";

export const valueSchema = z
  .string()
  .min(1, { abort: true })
  .transform((text, context) => {
    const value = parseEntryValue(text);
    if (value) return value;
    context.addIssue({ code: "custom", message: `must be ${WORDS}` });
    return z.NEVER;
  })
  .describe(`${WORDS}, which covers its subdomains; stored in canonical form`)
  .meta({ type: "string" });

const entryInputSchema = z
  .strictObject({
    value: valueSchema,
    note: z.string().trim().min(1).max(NOTE_CHARACTERS_MAX).nullable().optional(),
    expires_at: timeSchema.nullable().optional().describe("from then on the entry matches nothing; default: never"),
  })
  .meta({ id: "NewListEntry" });
export const entriesInputSchema = z.array(entryInputSchema).max(LIST_ENTRIES_MAX);
type EntriesInput = z.output<typeof entriesInputSchema>;

const described = {
  description: z.string().trim().max(DESCRIPTION_CHARACTERS_MAX).default(""),
  kind: z.enum(LIST_KINDS).default("any").describe("the values that the list accepts: `addresses` include networks"),
};
export const listInputSchema = z
  .strictObject({
    name: z
      .string()
      .regex(LIST_NAME, "must be 1 to 64 lower-case letters, digits, _ and -, and start with a letter")
      .describe("unique, cannot be changed; events on the list have it in `enrichment.lists`"),
    ...described,
    entries: entriesInputSchema.default([]),
  })
  .meta({ id: "NewList" });
export const listReplacementSchema = z
  .strictObject({ ...described, entries: entriesInputSchema })
  .meta({ id: "ListReplacement" });

/** The entries, and their faults: a value that the list does not accept or that is given twice. */
export function readEntries(input: EntriesInput, kind: ListKind): { entries: EntryInput[]; faults: Fault[] } {
  const faults: Fault[] = [];
  const entries = new Map<string, EntryInput>();
  for (const [i, { value: entryValue, note = null, expires_at: expiresAt = null }] of input.entries()) {
    const { value, type } = entryValue;
    const fault = entries.has(value) ? "is given more than once" : kindFault(kind, type);
    if (fault === undefined) entries.set(value, { value, type, note, expiresAt });
    else faults.push({ field: `entries[${i}].value`, message: fault });
  }
  return { entries: [...entries.values()], faults };
}

export function kindFault(kind: ListKind, type: ListEntry["type"]): string | undefined {
  return allowsType(kind, type) ? undefined : `is a ${type}, and the list accepts ${kind} only`;
}

export const listSchema = z
  .object({
    name: z.string(),
    description: z.string(),
    kind: z.enum(LIST_KINDS),
    origin: z.enum(["api", "file"]).describe("`file`: a file or URL of the settings"),
    read_only: z.boolean().describe("true for lists of the settings"),
    entries: z.int().describe("including expired ones"),
    created_at: z.string().nullable(),
    updated_at: z.string().nullable().describe("the last change, or when the file was last read"),
    updated_by: z.string().nullable().describe("the name of the key that made the last change"),
  })
  .meta({ id: "List" });

export const listDetailSchema = listSchema
  .extend({ used_by: z.array(z.string()).describe("names of the enabled rules with a condition on the list") })
  .meta({ id: "ListDetail" });

export const entrySchema = z
  .object({
    value: z.string(),
    type: z.enum(ENTRY_TYPES),
    note: z.string().nullable(),
    expires_at: z.string().nullable(),
    expired: z.boolean(),
    added_at: z.string(),
    added_by: z.string(),
  })
  .meta({ id: "ListEntry" });

export function managedView({ list, entries }: ManagedList): z.infer<typeof listSchema> {
  return {
    name: list.name,
    description: list.description,
    kind: list.kind,
    origin: "api",
    read_only: false,
    entries: entries.size,
    created_at: formatTime(list.createdAt),
    updated_at: formatTime(list.updatedAt),
    updated_by: list.author,
  };
}

export function fileView({ name, from, readAtMs, ...counts }: ListStatus): z.infer<typeof listSchema> {
  return {
    name,
    description: from,
    kind: "any",
    origin: "file",
    read_only: true,
    entries: counts.addresses + counts.networks + counts.domains,
    created_at: null,
    updated_at: readAtMs === null ? null : formatTime(readAtMs),
    updated_by: null,
  };
}

export function entryView(entry: ListEntry, now: number): z.infer<typeof entrySchema> {
  return {
    value: entry.value,
    type: entry.type,
    note: entry.note,
    expires_at: entry.expiresAt === null ? null : formatTime(entry.expiresAt),
    expired: isExpired(entry, now),
    added_at: formatTime(entry.addedAt),
    added_by: entry.author,
  };
}

export const LIST_EXAMPLE = {
  name: "contractors",
  description: "Laptops of external staff",
  kind: "addresses",
  origin: "api",
  read_only: false,
  entries: 1,
  created_at: "2026-11-15T08:30:00.000Z",
  updated_at: "2026-11-15T08:30:00.000Z",
  updated_by: "ci",
};
export const ENTRY_INPUT_EXAMPLE = { value: "192.0.2.17", note: "until the audit", expires_at: "2027-01-01T00:00:00Z" };
export const ENTRY_EXAMPLE = {
  ...ENTRY_INPUT_EXAMPLE,
  type: "address",
  expires_at: "2027-01-01T00:00:00.000Z",
  expired: false,
  added_at: "2026-11-15T08:30:00.000Z",
  added_by: "ci",
};
