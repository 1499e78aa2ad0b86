import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import type { Event } from "../../data/client.ts";
import {
  canReadFromEnd,
  eventListQuery,
  type EventOrder,
  type EventQuestion,
  type ListEdge,
} from "../../data/events.ts";

export interface EventRows {
  readonly rows: readonly Event[];
  readonly tailCount: number;
  /** The first row is the first of all. */
  readonly isAtStart: boolean;
  /** The last row is the last of all. */
  readonly isAtEnd: boolean;
  readonly total: number | undefined;
  readonly error: Error | null;
  readonly isPending: boolean;
  readonly isDimmed: boolean;
  readonly retry: () => void;
  readonly fetchNext: () => void;
  readonly fetchPrevious: () => void;
  /** Reads the rows at an edge of the whole list. False if the list cannot be read from there. */
  readonly jumpTo: (edge: ListEdge) => boolean;
}

const NO_ROWS: readonly Event[] = [];

interface Jump {
  readonly question: EventQuestion;
  readonly order: EventOrder;
  readonly edge: ListEdge;
  readonly count: number;
}

/** A window of pages of the answer, with the events of the live tail above its start. */
export function useEventRows(question: EventQuestion, order: EventOrder, tail: readonly Event[]): EventRows {
  const [jump, setJump] = useState<Jump>({ question, order, edge: "start", count: 0 });
  const isJumped = jump.question === question && jump.order === order;
  const list = useInfiniteQuery(
    eventListQuery(question, order, isJumped ? jump.edge : "start", isJumped ? jump.count : 0),
  );
  const { data, hasNextPage, hasPreviousPage, isFetching, fetchNextPage, fetchPreviousPage } = list;
  // While the rows of an edge are on their way, those of before are shown: the pages know from which edge they are.
  const isFromEnd = data?.pages[0]?.edge === "end";
  const isAtFirstPage = data?.pages[0]?.index === 0;
  const isAtLastPage = data?.pages.at(-1)?.next === null;
  const isAtStart = isFromEnd ? isAtLastPage : isAtFirstPage;
  const rows = useMemo(() => {
    const pages = data?.pages ?? [];
    const stored = (isFromEnd ? pages.toReversed() : pages).flatMap(({ events }) => events);
    if (stored.length === 0 && tail.length === 0) return NO_ROWS;
    if (tail.length === 0 || !isAtStart) return stored;
    const live = new Set(tail.map(({ id }) => id));
    return [...tail, ...stored.filter(({ id }) => !live.has(id))];
  }, [data, tail, isAtStart, isFromEnd]);
  const fetchOn = useCallback(() => {
    if (hasNextPage && !isFetching) void fetchNextPage();
  }, [hasNextPage, isFetching, fetchNextPage]);
  const fetchBack = useCallback(() => {
    if (hasPreviousPage && !isFetching) void fetchPreviousPage();
  }, [hasPreviousPage, isFetching, fetchPreviousPage]);
  return {
    rows,
    tailCount: isAtStart ? tail.length : 0,
    isAtStart,
    isAtEnd: isFromEnd ? isAtFirstPage : isAtLastPage,
    total: data?.pages[0]?.total,
    error: list.error,
    isPending: data === undefined,
    isDimmed: list.isPlaceholderData,
    retry: () => void list.refetch(),
    fetchNext: isFromEnd ? fetchBack : fetchOn,
    fetchPrevious: isFromEnd ? fetchOn : fetchBack,
    jumpTo: (edge) => {
      if (edge === "end" && !canReadFromEnd(question, order)) return false;
      setJump({ question, order, edge, count: jump.count + 1 });
      return true;
    },
  };
}
