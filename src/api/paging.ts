import { z } from "zod";
import { PER_PAGE_DEFAULT, PER_PAGE_MAX, type Position } from "../model/page.ts";
import { QuestionRefused, type Store } from "../store/store.ts";
import { integerParameter, list, pageParameter, paginate, perPageParameter, type Answer } from "./endpoint.ts";

// How every list is walked: by numbered pages, or by a cursor.

const CURSOR_CHARACTERS_MAX = 100;

/** The parameters of a list, for its query; `what` is what it lists. */
export function pagingParameters(what: string) {
  return {
    page: pageParameter,
    per_page: perPageParameter,
    after: z
      .string()
      .min(1)
      .max(CURSOR_CHARACTERS_MAX)
      .optional()
      .describe(`cursor mode: go on below the ${what} with this id`),
    limit: integerParameter(1, PER_PAGE_MAX, `cursor mode: items in an answer, default ${PER_PAGE_DEFAULT}`),
  };
}

const SEARCH_CHARACTERS_MAX = 1000;

/** Words to look for; what is wrong with them is told beside what is wrong with other parameters. */
export function searchParameter(searchFault: Store["searchFault"], about: string) {
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
    .describe(about);
}

interface Range {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

interface Paging extends Range {
  readonly page?: number | undefined;
  readonly per_page?: number | undefined;
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}

/**
 * Refuses both ways of walking at once, and a range that runs backwards. All faults of a request at once: what
 * parameters say together is looked at even when one of them is wrong alone.
 */
export function refuseMixedPaging<Schema extends z.ZodType<Paging>>(schema: Schema): Schema {
  return refuseReversedRange(schema)
    .refine(({ page, after, limit }) => page === undefined || (after ?? limit) === undefined, {
      message: "cannot stand beside after or limit, which are cursor mode",
      ...unlessWrong("page"),
    })
    .refine(({ per_page, after, limit }) => per_page === undefined || (after ?? limit) === undefined, {
      message: "cannot stand beside after or limit, which are cursor mode: limit sets the size",
      ...unlessWrong("per_page"),
    });
}

/** Refuses a range that runs backwards. */
export function refuseReversedRange<Schema extends z.ZodType<Range>>(schema: Schema): Schema {
  return schema.refine(({ from, to }) => from === undefined || to === undefined || from <= to, {
    message: "is after to",
    ...unlessWrong("from"),
  });
}

/** A parameter that is wrong alone has been told of. */
function unlessWrong(name: keyof Paging) {
  return {
    path: [name],
    when: ({ issues }: z.core.ParsePayload) => !issues.some(({ path }) => path?.[0] === name),
  };
}

export function positionOf({ page, per_page, after, limit }: Paging): Position {
  return after !== undefined || limit !== undefined
    ? { mode: "cursor", after, size: limit ?? PER_PAGE_DEFAULT }
    : { mode: "page", page: page ?? 1, size: per_page ?? PER_PAGE_DEFAULT };
}

/** What a list found; where that is too much, the fault is of the parameter that says how much. */
export async function found<Found>(position: Position, finding: Promise<Found>): Promise<Found> {
  try {
    return await finding;
  } catch (error) {
    const isSize = error instanceof QuestionRefused && error.field === "limit" && position.mode === "page";
    throw isSize ? new QuestionRefused("per_page", error.message) : error;
  }
}

/** The answer of a list: its items as JSON texts. */
export function listPage(
  position: Position,
  found: { readonly total: number; readonly items: readonly string[]; readonly nextCursor: string | null },
): Answer {
  const pagination = paginate(found.total, position.mode === "page" ? position.page : 1, position.size);
  return list(found.items, position.mode === "cursor" ? { ...pagination, next_cursor: found.nextCursor } : pagination);
}
