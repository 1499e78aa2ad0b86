import { infiniteQueryOptions } from "@tanstack/react-query";
import { answered, api } from "./client.ts";

const EVENTS_PER_PAGE = 50;

/** The events of an alert, newest first. */
export const alertEventsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ["alerts", "events", id],
    initialPageParam: null as string | null,
    queryFn: async ({ pageParam, signal }) => {
      const query = { limit: EVENTS_PER_PAGE, ...(pageParam !== null && { after: pageParam }) };
      const { data, pagination } = await answered(
        api.GET("/v1/alerts/{id}/events", { params: { path: { id }, query }, signal }),
      );
      return { events: data, next: pagination.next_cursor ?? null, listed: pagination.total };
    },
    getNextPageParam: ({ next }) => next,
  });
