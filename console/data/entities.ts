import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { Entity } from "../components/entities/entity.ts";
import { answered, api, type Schemas } from "./client.ts";

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

export type EntityDetail = Schemas["EntityDetail"];

/** Everything about one entity in a range of time. */
export const entityDetailQuery = ({ kind, value }: Entity, fromMs: number, toMs: number) =>
  queryOptions({
    queryKey: ["entity", kind, value, fromMs, toMs],
    // Of the same entity only: what another was called is worse than nothing.
    placeholderData: (previous: EntityDetail | undefined, query) =>
      query?.queryKey[1] === kind && query.queryKey[2] === value ? keepPreviousData(previous) : undefined,
    queryFn: async ({ signal }): Promise<EntityDetail> => {
      const query = { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
      return (
        await answered(api.GET("/v1/entities/{kind}/{value}", { params: { path: { kind, value }, query }, signal }))
      ).data;
    },
  });
