import { z } from "zod";
import { CURSOR_CHARACTERS_MAX, PER_PAGE_DEFAULT, PER_PAGE_MAX, type Position } from "../model/page.ts";
import { QueryRefused } from "../store/ports/store-errors.ts";
import { listResponse, paginate, type ApiResponse } from "./response.ts";
import { integerParameter, pageParameter, perPageParameter } from "./query-parameters.ts";
import { searchFault } from "../store/search/text-search.ts";

// Paging of lists: by page number or by cursor.

/** The paging parameters of a list; `itemName` is the singular name of its items. */
export function pagingParameters(itemName: string, cursor = "id", cursorCharactersMax = CURSOR_CHARACTERS_MAX) {
  return {
    page: pageParameter,
    per_page: perPageParameter,
    after: cursorParameter(itemName, cursor, cursorCharactersMax),
    limit: integerParameter(1, PER_PAGE_MAX, `cursor mode: items per page, default ${PER_PAGE_DEFAULT}`),
  };
}

/** What a page starts after. */
export function cursorParameter(itemName: string, cursor = "id", charactersMax = CURSOR_CHARACTERS_MAX) {
  return z
    .string()
    .min(1)
    .max(charactersMax)
    .optional()
    .describe(`cursor mode: continue after the ${itemName} with this ${cursor}`);
}

const SEARCH_CHARACTERS_MAX = 1000;

/** Search words. Their faults are reported together with those of other parameters. */
export function searchParameter(description: string) {
  return z
    .string()
    .trim()
    .min(1, { abort: true })
    .max(SEARCH_CHARACTERS_MAX, { abort: true })
    .superRefine((words, context) => {
      const message = searchFault(words);
      if (message !== undefined) context.addIssue({ code: "custom", message });
    })
    .optional()
    .describe(description);
}

interface RangeParameters {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

interface PagingParameters extends RangeParameters {
  readonly page?: number | undefined;
  readonly per_page?: number | undefined;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * Refuses a mix of both paging modes and a reversed time range. Combinations are checked even if single parameters have
 * faults, so that all faults are reported at once.
 */
export function refuseMixedPaging<Schema extends z.ZodType<PagingParameters>>(schema: Schema): Schema {
  return refuseReversedRange(schema)
    .refine(({ page, after, limit }) => page === undefined || (after ?? limit) === undefined, {
      message: "cannot be combined with after or limit, which select cursor mode",
      ...unlessFaulty("page"),
    })
    .refine(({ per_page, after, limit }) => per_page === undefined || (after ?? limit) === undefined, {
      message: "cannot be combined with after or limit, which select cursor mode; limit sets the page size",
      ...unlessFaulty("per_page"),
    });
}

export function refuseReversedRange<Schema extends z.ZodType<RangeParameters>>(schema: Schema): Schema {
  return schema.refine(({ from, to }) => from === undefined || to === undefined || from <= to, {
    message: "is after to",
    ...unlessFaulty("from"),
  });
}

/** Skips the check if the parameter already has a fault of its own. */
function unlessFaulty(name: keyof PagingParameters) {
  return {
    path: [name],
    when: ({ issues }: z.core.ParsePayload) => !issues.some(({ path }) => path?.[0] === name),
  };
}

export function positionOf({ page, per_page, after, limit }: PagingParameters): Position {
  return after !== undefined || limit !== undefined
    ? { mode: "cursor", after, size: limit ?? PER_PAGE_DEFAULT }
    : { mode: "page", page: page ?? 1, size: per_page ?? PER_PAGE_DEFAULT };
}

/** Awaits a list. If the page is too large, the fault names the parameter that set its size. */
export async function withSizeField<Result>(position: Position, listed: Promise<Result>): Promise<Result> {
  try {
    return await listed;
  } catch (error) {
    const isSize = error instanceof QueryRefused && error.field === "limit" && position.mode === "page";
    throw isSize ? new QueryRefused("per_page", error.message) : error;
  }
}

/** The response of a list, with its items as JSON text. */
export function listPage(
  position: Position,
  found: { readonly total: number; readonly items: readonly string[]; readonly nextCursor: string | null },
): ApiResponse {
  const pagination = paginate(found.total, position.mode === "page" ? position.page : 1, position.size);
  return listResponse(
    found.items,
    position.mode === "cursor" ? { ...pagination, next_cursor: found.nextCursor } : pagination,
  );
}
