import type { FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { z } from "zod";
import { CLASSES } from "../model/event.ts";
import { classSchema, typeSchema } from "../model/event-schema.ts";
import type { ApiKey, Scope } from "../model/key.ts";
import { QuestionRefused, type Store } from "../store/store.ts";
import { alertFilters } from "./alerts.ts";
import { createIdentify, type Identify } from "./auth.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { alertNews, eventNews, Feed, type AlertNews, type EventNews, type News } from "./feed.ts";
import { invalid, Problem } from "./problems.ts";
import { StreamOutput } from "./stream-output.ts";

// Server-sent events: what changes, as it changes. A stream tells what the feed hears. One that comes back after a break,
// or whose reader is too slow for the feed, reads from the store on its own until it has caught up.

const STREAMS_MAX = 200;
const STREAMS_PER_KEY_MAX = 20;
/** Text that waits for a reader; beyond it nothing is read for them. */
const BUFFER_BYTES_MAX = 1024 * 1024;
const CHANGES_AT_ONCE_MAX = 100;
/** How long a client waits before it comes back, in milliseconds. */
const RETRY_MS = 3000;
const FULL_RETRY_SECONDS = 10;

const KINDS = ["alerts", "events"] as const;
type Kind = (typeof KINDS)[number];
const SCOPE_OF = { alerts: "alerts:read", events: "events:read" } as const satisfies Record<Kind, Scope>;
const FIELDS_OF = {
  alerts: ["severity", "source", "status", "rule_name", "assignee"],
  events: ["severity", "source", "type", "class"],
} as const;

/** Which values each field may have; a field that is not named may have any. */
type Filters = Readonly<Partial<Record<string, readonly string[] | undefined>>>;

interface Place {
  readonly change: number;
  readonly eventId: string | null;
}

export interface StreamTimes {
  readonly tickMs: number;
  readonly heartbeatTicks: number;
  /** A reader who takes nothing for so long is sent away. */
  readonly stalledTicksMax: number;
}
const TIMES: StreamTimes = { tickMs: 1000, heartbeatTicks: 15, stalledTicksMax: 30 };

export interface StreamsOptions {
  readonly store: Pick<Store, "alerts" | "events" | "keys">;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  readonly times?: StreamTimes;
}

interface Opening {
  readonly key: ApiKey;
  readonly authorization: string | undefined;
  readonly kinds: readonly Kind[];
  readonly filters: Filters;
  /** Where the reader left off; undefined: from now on. */
  readonly place: Place | undefined;
}

type EndReason = "client" | "slow_reader" | "key" | "failure" | "shutdown";

/** All streams that are open. */
export class Streams {
  readonly #store: StreamsOptions["store"];
  readonly #log: Logger;
  readonly #feed: Feed;
  readonly #identify: Identify;
  readonly #now: () => number;
  readonly #times: StreamTimes;
  readonly #streams = new Set<Stream>();
  readonly #ended: Counter;
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor({ store, registry, log, now, times = TIMES }: StreamsOptions) {
    this.#store = store;
    this.#log = log;
    this.#feed = new Feed(store);
    this.#identify = createIdentify(store.keys);
    this.#now = now;
    this.#times = times;
    const streams = this.#streams;
    new Gauge({
      name: "tocsin_streams",
      help: "Streams that are open",
      registers: [registry],
      collect() {
        this.set(streams.size);
      },
    });
    this.#ended = new Counter({
      name: "tocsin_streams_ended_total",
      help: "Streams that have ended, and why",
      labelNames: ["reason"],
      registers: [registry],
    });
  }

  async open(opening: Opening): Promise<StreamOutput> {
    this.#requireRoom(opening.key);
    this.#requireEvent(opening.place?.eventId ?? null);
    const stream = new Stream(this.#store, this.#feed, opening, (reason, error) => {
      this.#leave(stream);
      this.#ended.inc({ reason });
      if (error !== undefined) this.#log.warn({ err: error }, "a stream ended before its reader wanted it to");
    });
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#tick(), this.#times.tickMs).unref();
    try {
      await stream.start();
      return stream.output;
    } catch (error) {
      this.#leave(stream);
      throw error;
    }
  }

  #leave(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #requireRoom(key: ApiKey): void {
    const own = [...this.#streams].filter((stream) => stream.opening.key.id === key.id).length;
    const refusal = this.#isClosing
      ? "the service is stopping"
      : this.#streams.size >= STREAMS_MAX
        ? `there are ${STREAMS_MAX} streams already`
        : own >= STREAMS_PER_KEY_MAX
          ? `the key has ${STREAMS_PER_KEY_MAX} streams already`
          : undefined;
    if (refusal === undefined) return;
    throw new Problem("unavailable", refusal, { headers: { "Retry-After": String(FULL_RETRY_SECONDS) } });
  }

  /** Asked before the answer begins: later nobody could be told. */
  #requireEvent(eventId: string | null): void {
    try {
      this.#store.events.arrivals(eventId, AbortSignal.abort());
    } catch (error) {
      throw error instanceof QuestionRefused ? noPlace() : error;
    }
  }

  #tick(): void {
    for (const stream of this.#streams) {
      const { authorization, kinds } = stream.opening;
      const key = this.#identify(authorization, this.#now());
      if (!key || kinds.some((kind) => !key.scopes.includes(SCOPE_OF[kind]))) stream.end("key");
      else stream.tick(this.#times);
    }
  }

  /** Ends them all: their readers come back to whoever answers next. */
  close(): void {
    this.#isClosing = true;
    for (const stream of this.#streams) stream.end("shutdown");
  }
}

class Stream {
  readonly opening: Opening;
  readonly output = new StreamOutput(BUFFER_BYTES_MAX);
  readonly #store: StreamsOptions["store"];
  readonly #feed: Feed;
  readonly #onEnd: (reason: EndReason, error?: unknown) => void;
  readonly #stop = new AbortController();
  #change = 0;
  #eventId: string | null = null;
  /** Whether it tells what the feed hears, or reads on its own. */
  readonly #isLive = { alerts: false, events: false };
  #quietTicks = 0;
  #leaveFeed = () => {};

  constructor(
    store: StreamsOptions["store"],
    feed: Feed,
    opening: Opening,
    onEnd: (reason: EndReason, error?: unknown) => void,
  ) {
    this.#store = store;
    this.#feed = feed;
    this.opening = opening;
    this.#onEnd = onEnd;
  }

  async start(): Promise<void> {
    this.#leaveFeed = await this.#feed.listen({
      hearAlerts: (news) => this.#hearAlerts(news),
      hearEvents: (news) => this.#hearEvents(news),
      hearFailure: (error) => this.end("failure", error),
    });
    const { place, kinds } = this.opening;
    const { change, eventId } = this.#feed;
    this.#change = place?.change ?? change;
    this.#eventId = place ? place.eventId : eventId;
    // A place beyond the end is one of another store, or of one that was torn: what is new is new.
    if (this.#change > change) this.#change = change;
    if (this.#eventId !== null && (eventId === null || this.#eventId > eventId)) this.#eventId = eventId;
    this.output.once("close", () => this.end("client"));
    this.output.give(`retry: ${RETRY_MS}\n\n`);
    if (kinds.includes("alerts")) void this.#unlessEnded(this.#catchUpAlerts());
    if (kinds.includes("events")) void this.#unlessEnded(this.#catchUpEvents());
  }

  tick({ heartbeatTicks, stalledTicksMax }: StreamTimes): void {
    if (this.output.stalledTicks() >= stalledTicksMax) return this.end("slow_reader");
    if (++this.#quietTicks < heartbeatTicks || this.output.readableLength > 0) return;
    // A line that says nothing keeps proxies from hanging up, and finds out that nobody is there any more.
    this.#give(": still here\n\n");
  }

  end(reason: EndReason, error?: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.#leaveFeed();
    if (reason === "slow_reader") this.output.destroy();
    else this.output.end();
    this.#onEnd(reason, error);
  }

  async #unlessEnded(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.end("failure", error);
    }
  }

  #hearAlerts(news: readonly AlertNews[]): void {
    if (!this.#isLive.alerts) return;
    this.#tellAlerts(news);
    if (!this.output.isFull) return;
    this.#isLive.alerts = false;
    void this.#unlessEnded(this.#catchUpAlerts());
  }

  #hearEvents(news: readonly EventNews[]): void {
    if (!this.#isLive.events) return;
    this.#tellEvents(news);
    if (!this.output.isFull) return;
    this.#isLive.events = false;
    void this.#unlessEnded(this.#catchUpEvents());
  }

  async #catchUpAlerts(): Promise<void> {
    for (;;) {
      await this.output.room();
      if (this.#stop.signal.aborted) return;
      // Nothing happens between this question and the answer to it: no news is lost on the way.
      if (this.#change >= this.#feed.change) {
        this.#isLive.alerts = true;
        return;
      }
      const upTo = this.#feed.change;
      const changes = await this.#store.alerts.changedSince(this.#change, CHANGES_AT_ONCE_MAX);
      this.#tellAlerts(changes.map(({ change, alert }) => alertNews(change, alert)));
      if (changes.length === 0) this.#change = upTo;
    }
  }

  async #catchUpEvents(): Promise<void> {
    const hasCaughtUp = () => {
      const { eventId } = this.#feed;
      this.#isLive.events = eventId === null || (this.#eventId !== null && this.#eventId >= eventId);
      return this.#isLive.events;
    };
    await this.output.room();
    if (this.#stop.signal.aborted || hasCaughtUp()) return;
    for await (const chunk of this.#store.events.arrivals(this.#eventId, this.#stop.signal)) {
      this.#tellEvents(chunk.map(({ id, text }) => eventNews(id, text)));
      await this.output.room();
      if (this.#stop.signal.aborted || hasCaughtUp()) return;
    }
  }

  #tellAlerts(news: readonly AlertNews[]): void {
    let text = "";
    for (const item of news) {
      if (item.place <= this.#change) continue;
      this.#change = item.place;
      if (this.#isWanted("alerts", item)) text += this.#withPlace(item.message);
    }
    this.#give(text);
  }

  #tellEvents(news: readonly EventNews[]): void {
    let text = "";
    for (const item of news) {
      if (this.#eventId !== null && item.place <= this.#eventId) continue;
      this.#eventId = item.place;
      if (this.#isWanted("events", item)) text += this.#withPlace(item.message);
    }
    this.#give(text);
  }

  #isWanted(kind: Kind, news: News<number | string>): boolean {
    const { filters } = this.opening;
    return FIELDS_OF[kind].every((field) => filters[field]?.includes(news.fields[field]!) ?? true);
  }

  #withPlace(message: string): string {
    return `id: ${this.#change}.${this.#eventId ?? ""}\n${message}`;
  }

  #give(text: string): void {
    if (text === "") return;
    this.#quietTicks = 0;
    this.output.give(text);
  }
}

const PLACE = /^(\d{1,15})\.(evt_[0-9a-z]{1,64})?$/;

export function streamEndpoint(streams: Streams, sources: readonly string[]): Endpoint {
  return endpoint({
    method: "GET",
    path: "/v1/stream",
    operationId: "stream",
    tag: "Stream",
    summary: "New and changed alerts and new events, as they come",
    about:
      "Server-sent events. `event: alert` is an alert of a list with the number of its `change`: sent when it is made and " +
      "whenever it changes, as it is then; of several changes in a row the last may stand for all. `event: event` is an event. " +
      "Filters say what is sent: `status`, `rule_name` and `assignee` are about alerts, `type` and `class` about events, `severity` and " +
      "`source` about both. The `id` of each message is a place to go on from: send it back as the header `Last-Event-ID`, " +
      "as browsers do by themselves, or as `last_event_id`, and nothing is missed. A reader who is too slow is sent away and may " +
      "come back.\n\nScope: `alerts:read` for alerts, `events:read` for events. The stream ends when the key does.",
    scopes: [],
    requestHeaders: z.object({ "last-event-id": z.string().optional() }),
    query: z.strictObject({
      kinds: commaListParameter(z.enum(KINDS), "alerts, events; default: what the key may read"),
      ...alertFilters(sources),
      type: commaListParameter(typeSchema, "type of an event"),
      class: commaListParameter(classSchema, CLASSES.join(", ")),
      last_event_id: z.string().optional().describe("the id of the last message that was read"),
    }),
    answers: {
      200: { about: "messages, for as long as both sides stay", content: { "text/event-stream": z.string() } },
    },
    handle: async ({ query, key, request }) => {
      const { kinds: wanted, last_event_id: last, ...filters } = query;
      const kinds = wanted ?? KINDS.filter((kind) => key.scopes.includes(SCOPE_OF[kind]));
      requireScopesOf(kinds, key);
      refuseIdleFilters(kinds, filters);
      const place = readPlace(request, last);
      const { authorization } = request.headers;
      const stream = await streams.open({ key, authorization, kinds, filters, place });
      // Whoever asks for the headers alone would leave a stream that nobody reads.
      if (request.method === "HEAD") stream.end();
      const headers = { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" };
      return { kind: "stream", stream, headers };
    },
  });
}

function requireScopesOf(kinds: readonly Kind[], key: ApiKey): void {
  const missing = kinds.map((kind) => SCOPE_OF[kind]).filter((scope) => !key.scopes.includes(scope));
  if (kinds.length === 0) throw new Problem("forbidden", "the key lacks the scope alerts:read or events:read");
  if (missing.length > 0) throw new Problem("forbidden", `the key lacks the scope ${missing.join(" and ")}`);
}

/** A filter that nothing on the stream would heed is a mistake. */
function refuseIdleFilters(kinds: readonly Kind[], filters: Filters): void {
  const heeded = new Set<string>(kinds.flatMap((kind) => FIELDS_OF[kind]));
  const idle = Object.keys(filters).filter((field) => filters[field] !== undefined && !heeded.has(field));
  const message = `is not about ${kinds.join(" and ")}`;
  if (idle.length > 0) throw invalid(idle.map((field) => ({ field, message })));
}

function readPlace(request: FastifyRequest, parameter: string | undefined): Place | undefined {
  // A browser that comes back sends the header beside the address it began with.
  const header = request.headers["last-event-id"];
  const text = typeof header === "string" && header !== "" ? header : parameter;
  if (text === undefined) return undefined;
  const match = PLACE.exec(text);
  if (match) return { change: Number(match[1]), eventId: match[2] ?? null };
  throw noPlace();
}

function noPlace(): Problem {
  return invalid([{ field: "last_event_id", message: "is not the id of a message of this stream" }]);
}
