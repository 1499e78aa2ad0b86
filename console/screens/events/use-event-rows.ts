import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import type { Event } from "../../data/client.ts";
import { eventListQuery, type EventOrder, type EventQuestion } from "../../data/events.ts";

export interface EventRows {
  readonly rows: readonly Event[];
  readonly tailCount: number;
  readonly isAtStart: boolean;
  readonly total: number | undefined;
  readonly error: Error | null;
  readonly isPending: boolean;
  readonly isDimmed: boolean;
  readonly retry: () => void;
  readonly fetchNext: () => void;
  readonly fetchPrevious: () => void;
}

const NO_ROWS: readonly Event[] = [];

/** A window of pages of the answer, with the events of the live tail above its start. */
export function useEventRows(question: EventQuestion, order: EventOrder, tail: readonly Event[]): EventRows {
  const list = useInfiniteQuery(eventListQuery(question, order));
  const { data, hasNextPage, hasPreviousPage, isFetching, fetchNextPage, fetchPreviousPage } = list;
  const isAtStart = data?.pages[0]?.index === 0;
  const rows = useMemo(() => {
    const stored = data?.pages.flatMap(({ events }) => events) ?? NO_ROWS;
    if (tail.length === 0 || !isAtStart) return stored;
    const live = new Set(tail.map(({ id }) => id));
    return [...tail, ...stored.filter(({ id }) => !live.has(id))];
  }, [data, tail, isAtStart]);
  const fetchNext = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  const fetchPrevious = useCallback(() => {
    if (hasPreviousPage && !isFetching) void fetchPreviousPage();
  }, [hasPreviousPage, isFetching, fetchPreviousPage]);
  return {
    rows,
    tailCount: isAtStart ? tail.length : 0,
    isAtStart,
    total: data?.pages[0]?.total,
    error: list.error,
    isPending: data === undefined,
    isDimmed: list.isPlaceholderData,
    retry: () => void list.refetch(),
    fetchNext,
    fetchPrevious,
  };
}
