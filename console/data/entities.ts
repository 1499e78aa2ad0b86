import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client.ts";

const CHOICES_MAX = 8;

/** Entities whose name contains the text. */
export const entitySearchQuery = (search: string) =>
  queryOptions({
    queryKey: ["entities", search],
    staleTime: 60_000,
    queryFn: async ({ signal }) =>
      (await answered(api.GET("/v1/entities", { params: { query: { search, limit: CHOICES_MAX } }, signal }))).data
        .entities,
  });
