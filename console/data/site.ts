import { queryOptions } from "@tanstack/react-query";
import { answered, api, type Schemas } from "./client.ts";

export type Site = Schemas["Site"];
/** What a key with the scope `events:read` learns. */
export type WholeSite = Required<Site>;

export const isWhole = (site: Site): site is WholeSite => site.http !== undefined;
export type Collectors = Schemas["Collectors"];

export const siteQuery = queryOptions({
  queryKey: ["site"],
  staleTime: 60_000,
  queryFn: async ({ signal }) => (await answered(api.GET("/v1/site", { signal }))).data,
});

/** Asked again often while somebody waits for the first line of a device. */
export const collectorsQuery = (refreshMs: number) =>
  queryOptions({
    queryKey: ["collectors"],
    refetchInterval: refreshMs,
    staleTime: 0,
    queryFn: async ({ signal }) => (await answered(api.GET("/v1/collectors", { signal }))).data,
  });
