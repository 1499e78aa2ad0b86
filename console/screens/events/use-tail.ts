import { useEffect, useMemo, useRef, useState } from "react";
import type { Event } from "../../data/client.ts";
import type { EventFilter } from "./address.ts";
import { eventMatcher } from "./matches.ts";
import { arrived, EMPTY_TAIL, letIn, type Tail } from "./tail.ts";

const RETRY_MS = 3000;
/** Events are shown this often, however fast they come. */
const SHOW_MS = 250;
/** Between two looks, events are kept; more than that would be skipped anyway. */
const BATCH_MAX = 1000;

export type TailState = "off" | "connecting" | "live" | "offline";

interface TailOptions {
  readonly isOn: boolean;
  readonly isPaused: boolean;
  readonly filter: EventFilter;
  /** The stream is open: from now on, nothing is missed. */
  readonly onOpen: () => void;
}

/** What the stream itself can filter by. */
function streamAddress({ conditions, words }: EventFilter): string {
  const parameters = new URLSearchParams({ kinds: "events" });
  for (const field of ["source", "type", "severity"]) {
    const wanted = conditions.filter((one) => one.field === field && one.operator === "=").map(({ value }) => value);
    const isPlain = wanted.every((value) => !/[*?\\/,]/.test(value));
    if (wanted.length > 0 && isPlain) parameters.set(field, wanted.join(","));
  }
  if (words !== "") parameters.set("search", words);
  return `/v1/stream?${parameters.toString()}`;
}

export interface LiveTail {
  readonly tail: Tail;
  readonly state: TailState;
  readonly letIn: () => void;
  /** Forgets what it showed: the list has it. */
  readonly clear: () => void;
}

/** Events as they come. While somebody reads, they wait. */
export function useTail({ isOn, isPaused, filter, onOpen }: TailOptions): LiveTail {
  const [tail, setTail] = useState<Tail>(EMPTY_TAIL);
  const [state, setState] = useState<TailState>("off");
  const current = useRef({ isPaused, onOpen });
  useEffect(() => {
    current.current = { isPaused, onOpen };
  });
  const address = streamAddress(filter);
  const matches = useMemo(() => eventMatcher(filter.conditions), [filter.conditions]);

  useEffect(() => {
    if (!isOn) return;
    let batch: Event[] = [];
    let source: EventSource;
    let retry: ReturnType<typeof setTimeout> | undefined;
    const connect = () => {
      let hasOpened = false;
      source = new EventSource(address);
      source.addEventListener("open", () => {
        setState("live");
        // The browser resumes where it was, so only the first time needs a look at the store.
        if (!hasOpened) current.current.onOpen();
        hasOpened = true;
      });
      source.addEventListener("event", ({ data }) => {
        const event = JSON.parse(data as string) as Event;
        if (matches(event) && batch.length < BATCH_MAX) batch.push(event);
      });
      source.addEventListener("error", () => {
        setState("offline");
        // After a refusal the browser gives up for good.
        if (source.readyState === EventSource.CLOSED) retry = setTimeout(connect, RETRY_MS);
      });
    };
    connect();
    const timer = setInterval(() => {
      const { isPaused } = current.current;
      if (batch.length === 0 && isPaused) return;
      const events = batch;
      batch = [];
      setTail((before) => {
        const next = arrived(before, events, isPaused);
        return isPaused || next.waiting.length === 0 ? next : letIn(next);
      });
    }, SHOW_MS);
    return () => {
      clearInterval(timer);
      clearTimeout(retry);
      source.close();
      setState("off");
      setTail(EMPTY_TAIL);
    };
  }, [isOn, address, matches]);

  return {
    tail,
    state: isOn && state === "off" ? "connecting" : state,
    letIn: () => setTail(letIn),
    clear: () => setTail(EMPTY_TAIL),
  };
}
