import { z } from "zod";
import { rulesUsingList } from "../detection/rules/list-usage.ts";
import type { ListStatus } from "../enrichment/enrichment-status.ts";
import type { ManagedList, ManagedLists } from "../enrichment/lists/managed-lists.ts";
import { LIST_ENTRIES_MAX, MANAGED_ENTRIES_MAX, MANAGED_LISTS_MAX } from "../model/watch-list.ts";
import type { Rule } from "../model/rule.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { listEntryEndpoints } from "./list-entry-endpoints.ts";
import {
  ENTRY_INPUT_EXAMPLE,
  fileView,
  LIST_EXAMPLE,
  listDetailSchema,
  listInputSchema,
  listReplacementSchema,
  listSchema,
  managedView,
  readEntries,
} from "./list-views.ts";
import { pageByKey } from "./name-pages.ts";
import { listPage, pagingParameters, positionOf, refuseMixedPaging } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";
import { booleanParameter } from "./query-parameters.ts";
import { data } from "./response.ts";

export interface ListEndpointOptions {
  readonly enrichment: { readonly managedLists: ManagedLists; readonly fileLists: readonly ListStatus[] };
  readonly rulebook: { all(): readonly Rule[] };
  readonly importBytesMax: number;
  readonly now: () => number;
}

const DETAIL_EXAMPLE = { ...LIST_EXAMPLE, used_by: ["site.contractor_at_night"] };
const nameParams = z.object({ name: z.string() });

export function listEndpoints(options: ListEndpointOptions): Endpoint[] {
  const { enrichment, rulebook } = options;
  const { managedLists: lists } = enrichment;
  const fileList = (name: string) => enrichment.fileLists.find((list) => list.name === name);
  const usedBy = (name: string) => rulesUsingList(rulebook.all(), name);
  const respond = (list: ManagedList, status = 200, headers: Readonly<Record<string, string>> = {}) =>
    data({ ...managedView(list), used_by: usedBy(list.list.name) }, status, headers);
  /** Lists of the settings come first where both have a name. */
  const requireManaged = (name: string): ManagedList => {
    if (fileList(name)) {
      throw new Problem(
        "conflict",
        `the list ${name} is read from a file or URL of the settings and cannot be changed here`,
      );
    }
    const found = lists.find(name);
    if (!found) throw new Problem("not_found", `list ${name} does not exist`);
    return found;
  };
  return [
    endpoint({
      method: "GET",
      path: "/v1/lists",
      operationId: "listLists",
      tag: "Lists",
      summary: "List the lists of addresses and domains, by name",
      description: "Lists that are managed here, and lists in files and at URLs of the settings, which are read-only.",
      scopes: ["rules:read"],
      query: refuseMixedPaging(z.strictObject(pagingParameters("list", "name"))),
      responses: {
        200: { description: "one page of lists", data: z.array(listSchema), paginated: true, example: [LIST_EXAMPLE] },
      },
      handle: ({ query }) => {
        const files = enrichment.fileLists.map(fileView);
        const names = new Set(files.map(({ name }) => name));
        const managed = lists.all.map(managedView).filter(({ name }) => !names.has(name));
        const all = [...files, ...managed].sort((a, b) => (a.name < b.name ? -1 : 1));
        const position = positionOf(query);
        const { total, shown, nextCursor } = pageByKey(all, position, ({ name }) => name);
        return listPage(position, { total, items: shown.map((list) => JSON.stringify(list)), nextCursor });
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/lists",
      operationId: "createList",
      tag: "Lists",
      summary: "Create a list",
      description:
        "Events that arrive from now on and have an address or domain of the list get its name in `enrichment.lists`, on which rules, " +
        `filters and exports work. At most ${MANAGED_LISTS_MAX} lists with ${LIST_ENTRIES_MAX.toLocaleString("en")} entries each, and ` +
        `${MANAGED_ENTRIES_MAX.toLocaleString("en")} in all; longer lists belong in files.`,
      scopes: ["rules:write"],
      body: listInputSchema,
      example: {
        name: LIST_EXAMPLE.name,
        description: LIST_EXAMPLE.description,
        kind: LIST_EXAMPLE.kind,
        entries: [ENTRY_INPUT_EXAMPLE],
      },
      responses: { 201: { description: "the list", data: listDetailSchema, example: DETAIL_EXAMPLE } },
      problems: ["conflict"],
      headers: { 201: ["Location"] },
      handle: async ({ body, key }) => {
        const { entries, faults } = readEntries(body.entries, body.kind);
        if (faults.length > 0) throw invalid(faults);
        const { name, description, kind } = body;
        const list = await lists.create(name, { description, kind }, entries, key.name);
        return respond(list, 201, { Location: `/v1/lists/${name}` });
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/lists/:name",
      operationId: "getList",
      tag: "Lists",
      summary: "Get a list, and the rules that use it",
      scopes: ["rules:read"],
      params: nameParams,
      responses: { 200: { description: "the list", data: listDetailSchema, example: DETAIL_EXAMPLE } },
      problems: ["not_found"],
      handle: ({ params: { name } }) => {
        const file = fileList(name);
        return file ? data({ ...fileView(file), used_by: usedBy(name) }) : respond(requireManaged(name));
      },
    }),
    endpoint({
      method: "PUT",
      path: "/v1/lists/:name",
      operationId: "replaceList",
      tag: "Lists",
      summary: "Replace a list with all its entries",
      description: "Entries that stay keep `added_at` and `added_by`.",
      scopes: ["rules:write"],
      params: nameParams,
      body: listReplacementSchema,
      example: { description: LIST_EXAMPLE.description, kind: "addresses", entries: [ENTRY_INPUT_EXAMPLE] },
      responses: { 200: { description: "the list", data: listDetailSchema, example: DETAIL_EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: async ({ params: { name }, body: { description, kind, entries: input }, key }) => {
        requireManaged(name);
        const { entries, faults } = readEntries(input, kind);
        if (faults.length > 0) throw invalid(faults);
        return respond(await lists.replace(name, { description, kind }, entries, key.name));
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/lists/:name",
      operationId: "deleteList",
      tag: "Lists",
      summary: "Delete a list",
      description:
        "Refused with 409 while an enabled rule has a condition on the list; `force=true` deletes it all the same. Stored events keep " +
        "the name.",
      scopes: ["rules:write"],
      params: nameParams,
      query: z.strictObject({ force: booleanParameter().describe("true: also if enabled rules use the list") }),
      responses: {
        200: {
          description: "the list is deleted",
          data: z.object({ name: z.string(), deleted: z.literal(true) }),
          example: { name: LIST_EXAMPLE.name, deleted: true },
        },
      },
      problems: ["not_found", "conflict"],
      handle: async ({ params: { name }, query }) => {
        requireManaged(name);
        const rules = usedBy(name);
        if (rules.length > 0 && query.force !== true) throw stillUsed(name, rules);
        await lists.remove(name);
        return data({ name, deleted: true });
      },
    }),
    ...listEntryEndpoints({ ...options, lists, requireManaged }),
  ];
}

const RULES_NAMED_MAX = 20;

function stillUsed(name: string, rules: readonly string[]): Problem {
  const users = rules.length === 1 ? "an enabled rule; change it" : `${rules.length} enabled rules; change them`;
  const message = `the list ${name} is used by ${users} first, or send force=true`;
  const details = rules
    .slice(0, RULES_NAMED_MAX)
    .map((rule) => ({ field: "name", message: `is used by the rule ${rule}` }));
  return new Problem("conflict", message, { details });
}
