import { infiniteQueryOptions, keepPreviousData, queryOptions, type QueryClient } from "@tanstack/react-query";
import { answered, api, type Schemas } from "./client.ts";

// Lists of addresses and domains that rules look things up in.

export type WatchList = Schemas["List"];
export type WatchListDetail = Schemas["ListDetail"];
export type ListEntry = Schemas["ListEntry"];
export type NewList = Schemas["NewList"];
export type NewListEntry = Schemas["NewListEntry"];

const LISTS = "lists";
const PAGE_SIZE = 100;

/** All of them: the service keeps at most a hundred, and those of its settings. */
export const listsQuery = queryOptions({
  queryKey: [LISTS, "all"],
  queryFn: async ({ signal }) => {
    const all: WatchList[] = [];
    let after: string | null | undefined;
    do {
      const query = { limit: PAGE_SIZE, ...(after != null && { after }) };
      const { data, pagination } = await answered(api.GET("/v1/lists", { params: { query }, signal }));
      all.push(...data);
      after = pagination.next_cursor;
    } while (after != null);
    return all;
  },
});

export const listQuery = (name: string) =>
  queryOptions({
    queryKey: [LISTS, "one", name],
    queryFn: async ({ signal }) =>
      (await answered(api.GET("/v1/lists/{name}", { params: { path: { name } }, signal }))).data,
  });

interface EntryPage {
  readonly entries: readonly ListEntry[];
  readonly total: number;
  readonly next: string | null;
}

export const listEntriesQuery = (name: string, search: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [LISTS, "entries", name, search],
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }): Promise<EntryPage> => {
      const query = {
        limit: PAGE_SIZE,
        ...(pageParam !== undefined && { after: pageParam }),
        ...(search !== undefined && { search }),
      };
      const answer = api.GET("/v1/lists/{name}/entries", { params: { path: { name }, query }, signal });
      const { data, pagination } = await answered(answer);
      return { entries: data, total: pagination.total, next: pagination.next_cursor ?? null };
    },
    getNextPageParam: ({ next }) => next ?? undefined,
  });

export async function createList(body: NewList): Promise<WatchListDetail> {
  return (await answered(api.POST("/v1/lists", { body }))).data;
}

export async function deleteList(name: string, force: boolean): Promise<void> {
  const query = force ? { force } : {};
  await answered(api.DELETE("/v1/lists/{name}", { params: { path: { name }, query } }));
}

/** Known entries get the new note and expiry. All are added, or none. */
export async function addEntries(name: string, entries: NewListEntry[]) {
  const path = { name };
  return (await answered(api.POST("/v1/lists/{name}/entries", { params: { path }, body: { entries } }))).data;
}

export async function removeEntries(name: string, values: string[]) {
  const path = { name };
  return (await answered(api.POST("/v1/lists/{name}/entries/remove", { params: { path }, body: { values } }))).data;
}

export const refreshLists = (client: QueryClient) => client.invalidateQueries({ queryKey: [LISTS] });
