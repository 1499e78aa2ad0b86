import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { readEntryLines } from "../enrichment/lists/entry-value.ts";
import type { EntryInput, ListChange, ManagedList, ManagedLists } from "../enrichment/lists/managed-lists.ts";
import { allowsType, LIST_ENTRIES_MAX, type ListKind } from "../model/watch-list.ts";
import { JSON_TYPE } from "./body.ts";
import { checkBody, endpoint, type Endpoint } from "./endpoint.ts";
import {
  entriesInputSchema,
  ENTRY_EXAMPLE,
  ENTRY_INPUT_EXAMPLE,
  entrySchema,
  entryView,
  kindFault,
  NOTE_CHARACTERS_MAX,
  readEntries,
  valueSchema,
} from "./list-views.ts";
import { pageByKey } from "./name-pages.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging } from "./paging.ts";
import { invalid } from "./problems.ts";
import { data } from "./response.ts";

const TEXT_TYPE = "text/plain";
const IMPORT_TYPES = [JSON_TYPE, TEXT_TYPE];
const SEARCH_CHARACTERS_MAX = 500;
/** A domain has up to 253 characters. */
const VALUE_CURSOR_CHARACTERS_MAX = 256;
/** Of an import; most are comments where a list has so many. */
const IMPORT_LINES_MAX = 100_000;
const LINES_PER_TURN = 200;
/** Refused lines that a response names; `bad_lines` counts all. */
const REFUSED_MAX = 100;

const nameParams = z.object({ name: z.string() });
const changeSchema = z
  .object({
    added: z.int(),
    updated: z.int().describe("known entries whose note and expiry were replaced"),
    removed: z.int(),
    entries: z.int().describe("entries that the list has now"),
  })
  .meta({ id: "ListChange" });
const importSchema = z
  .object({
    ...changeSchema.shape,
    bad_lines: z.int().describe("lines without a valid entry, or with one that the list does not accept"),
    refused: z
      .array(z.object({ line: z.int(), text: z.string(), message: z.string() }))
      .describe(`the first ${REFUSED_MAX} of them`),
  })
  .meta({ id: "ListImport" });

const contentSchema = z
  .strictObject({ content: z.string().min(1).describe("one entry per line") })
  .meta({ id: "ListContent" });

export interface ListEntryEndpointOptions {
  readonly lists: ManagedLists;
  readonly requireManaged: (name: string) => ManagedList;
  readonly importBytesMax: number;
  readonly now: () => number;
}

export function listEntryEndpoints(options: ListEntryEndpointOptions): Endpoint[] {
  const { lists, requireManaged, importBytesMax, now } = options;
  return [
    endpoint({
      method: "GET",
      path: "/v1/lists/:name/entries",
      operationId: "listListEntries",
      tag: "Lists",
      summary: "List the entries of a list, by value",
      description: "Entries of lists in files and at URLs are not available (409).",
      scopes: ["rules:read"],
      params: nameParams,
      query: refuseMixedPaging(
        z.strictObject({
          ...pagingParameters("entry", "value", VALUE_CURSOR_CHARACTERS_MAX),
          search: z
            .string()
            .trim()
            .min(1)
            .max(SEARCH_CHARACTERS_MAX)
            .optional()
            .describe("text that the value or the note contains, in upper or lower case"),
        }),
      ),
      responses: {
        200: {
          description: "one page of entries",
          data: z.array(entrySchema),
          paginated: true,
          example: [ENTRY_EXAMPLE],
        },
      },
      problems: ["not_found", "conflict"],
      handle: ({ params, query: { search, ...paging } }) => {
        const position = positionOf(paging);
        const text = search?.toLowerCase();
        const all = [...requireManaged(params.name).entries.values()].filter(
          ({ value, note }) => text === undefined || value.includes(text) || note?.toLowerCase().includes(text),
        );
        const { total, shown, nextCursor } = pageByKey(all, position, ({ value }) => value);
        const at = now();
        return listPage(position, {
          total,
          items: shown.map((entry) => JSON.stringify(entryView(entry, at))),
          nextCursor,
        });
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/lists/:name/entries",
      operationId: "addListEntries",
      tag: "Lists",
      summary: "Add entries to a list",
      description: "Known entries get the new note and expiry. All entries are added, or none.",
      scopes: ["rules:write"],
      params: nameParams,
      body: z.strictObject({ entries: entriesInputSchema.min(1) }).meta({ id: "NewListEntries" }),
      example: { entries: [ENTRY_INPUT_EXAMPLE] },
      responses: {
        200: {
          description: "the change",
          data: changeSchema,
          example: { added: 1, updated: 0, removed: 0, entries: 1 },
        },
      },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const { list } = requireManaged(params.name);
        const { entries, faults } = readEntries(body.entries, list.kind);
        if (faults.length > 0) throw invalid(faults);
        return data(changeView(await lists.addEntries(params.name, entries, key.name)));
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/lists/:name/entries/remove",
      operationId: "removeListEntries",
      tag: "Lists",
      summary: "Remove entries from a list",
      description: "Values are compared in canonical form; those that the list does not have are ignored.",
      scopes: ["rules:write"],
      params: nameParams,
      body: z
        .strictObject({ values: z.array(valueSchema).min(1).max(LIST_ENTRIES_MAX) })
        .meta({ id: "ListEntryRemoval" }),
      example: { values: ["192.0.2.17"] },
      responses: {
        200: {
          description: "the change",
          data: changeSchema,
          example: { added: 0, updated: 0, removed: 1, entries: 0 },
        },
      },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        requireManaged(params.name);
        const values = body.values.map(({ value }) => value);
        return data(changeView(await lists.removeEntries(params.name, values, key.name)));
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/lists/:name/import",
      operationId: "importListEntries",
      tag: "Lists",
      summary: "Import entries from text",
      description:
        "One entry per line, in the format of lists in files, as `content` of a JSON object or as plain text, which a session cannot " +
        "send; a comment behind an entry becomes its note. Lines without a valid entry are skipped and reported. " +
        `At most ${IMPORT_LINES_MAX.toLocaleString("en")} lines with ${LIST_ENTRIES_MAX.toLocaleString("en")} entries; more are refused with 400. ` +
        "With `mode=replace` the imported entries replace all others, unless there is none.",
      scopes: ["rules:write"],
      params: nameParams,
      query: z.strictObject({ mode: z.enum(["add", "replace"]).default("add") }),
      body: contentSchema,
      bodyTypes: IMPORT_TYPES,
      handlesFaults: true,
      example: { content: "192.0.2.17  # until the audit\nevil.example" },
      responses: {
        200: {
          description: "the change",
          data: importSchema,
          example: { added: 2, updated: 0, removed: 0, entries: 2, bad_lines: 0, refused: [] },
        },
      },
      problems: ["not_found", "conflict"],
      refuseEarly: ({ name }) => void requireManaged(name),
      handle: async ({ params, query, key, readBody, faults: found }) => {
        const body = await readBody({ bytesMax: importBytesMax, types: IMPORT_TYPES, defaultType: TEXT_TYPE });
        const faults = [...found];
        const isText = body?.type === TEXT_TYPE;
        const content = isText ? new TextDecoder().decode(body.bytes) : checkBody(contentSchema, body, faults)?.content;
        if (content === undefined || faults.length > 0) throw invalid(faults);
        const { kind } = requireManaged(params.name).list;
        const { entries, badLines, refused } = await readImport(content, kind, isText ? "body" : "content");
        const change =
          query.mode === "replace"
            ? await lists.replace(params.name, {}, entries, key.name)
            : await lists.addEntries(params.name, entries, key.name);
        return data({ ...changeView(change), bad_lines: badLines, refused });
      },
    }),
  ];
}

interface RefusedLine {
  readonly line: number;
  readonly text: string;
  readonly message: string;
}

/** Reads the lines with other requests in between: they may be many. */
async function readImport(content: string, kind: ListKind, field: string) {
  const entries = new Map<string, EntryInput>();
  const refused: RefusedLine[] = [];
  let badLines = 0;
  const refuse = (message: string) => invalid([{ field, message: `${message}; the list is unchanged` }]);
  for (const { line, values, note, bad } of readEntryLines(content)) {
    if (line > IMPORT_LINES_MAX) throw refuse(`has more than ${IMPORT_LINES_MAX.toLocaleString("en")} lines`);
    if (line % LINES_PER_TURN === 0) await setImmediate();
    const misfit = values.find(({ type }) => kindFault(kind, type) !== undefined);
    const fault = misfit
      ? { line, text: misfit.value, message: kindFault(kind, misfit.type)! }
      : bad === null
        ? undefined
        : { line, text: bad, message: "has no address, network or domain" };
    if (fault && ++badLines <= REFUSED_MAX) refused.push(fault);
    for (const { value, type } of values) {
      if (!allowsType(kind, type)) continue;
      entries.set(value, { value, type, note: note?.slice(0, NOTE_CHARACTERS_MAX) ?? null, expiresAt: null });
    }
    if (entries.size > LIST_ENTRIES_MAX) {
      throw refuse(`has more than ${LIST_ENTRIES_MAX.toLocaleString("en")} entries`);
    }
  }
  if (entries.size === 0) throw refuse("has no entry that the list accepts");
  return { entries: [...entries.values()], badLines, refused };
}

function changeView({ added, updated, removed, entries }: ListChange): z.infer<typeof changeSchema> {
  return { added, updated, removed, entries: entries.size };
}
