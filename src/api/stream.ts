import type { FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { z } from "zod";
import { CLASSES } from "../model/event.ts";
import { classSchema, typeSchema } from "../model/event-schema.ts";
import type { ApiKey } from "../model/key.ts";
import { boundParameter } from "../model/query.ts";
import { QuestionRefused, type Store } from "../store/store.ts";
import { alertFilters } from "./alerts.ts";
import { createIdentify, type Identify } from "./auth.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { Feed } from "./feed.ts";
import {
  FIELDS_OF,
  KINDS,
  SCOPE_OF,
  Stream,
  type Filters,
  type Kind,
  type Opening,
  type Place,
  type StreamTimes,
} from "./open-stream.ts";
import { refuseReversedRange, searchParameter } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";
import type { StreamOutput } from "./stream-output.ts";

// Server-sent events: what changes, as it changes. A stream tells what the feed hears. One that comes back after a break,
// or whose reader is too slow for the feed, reads from the store on its own until it has caught up.

const STREAMS_MAX = 200;
const STREAMS_PER_KEY_MAX = 20;
const FULL_RETRY_SECONDS = 10;

const TIMES: StreamTimes = { tickMs: 1000, heartbeatTicks: 15, stalledTicksMax: 30 };

export interface StreamsOptions {
  readonly store: Pick<Store, "alerts" | "events" | "keys" | "searchable" | "searchIn">;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  readonly times?: StreamTimes;
}

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
    if (opening.place) this.#requireEvent(opening.place);
    const stream = new Stream({
      store: this.#store,
      feed: this.#feed,
      opening,
      mayRead: () => this.#mayRead(opening),
      onEnd: (reason, error) => {
        this.#leave(stream);
        this.#ended.inc({ reason });
        if (error !== undefined) this.#log.warn({ err: error }, "a stream ended before its reader wanted it to");
      },
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
    const headers = { "Retry-After": String(FULL_RETRY_SECONDS) };
    if (this.#isClosing) throw new Problem("unavailable", "the service is stopping", { headers });
    const own = [...this.#streams].filter((stream) => stream.opening.key.id === key.id).length;
    if (own >= STREAMS_PER_KEY_MAX) {
      throw new Problem("rate_limited", `the key has ${STREAMS_PER_KEY_MAX} streams already`, { headers });
    }
    if (this.#streams.size >= STREAMS_MAX) {
      throw new Problem("unavailable", `there are ${STREAMS_MAX} streams already`, { headers });
    }
  }

  /** Asked before the answer begins: later nobody could be told. */
  #requireEvent({ eventId, field }: Place): void {
    try {
      this.#store.events.arrivals(eventId, AbortSignal.abort());
    } catch (error) {
      throw error instanceof QuestionRefused ? noPlace(field) : error;
    }
  }

  #mayRead({ authorization, kinds }: Opening): boolean {
    const key = this.#identify(authorization, this.#now());
    return key !== undefined && kinds.every((kind) => key.scopes.includes(SCOPE_OF[kind]));
  }

  /** A stream on which nothing happens ends with its key too. */
  #tick(): void {
    for (const stream of this.#streams) {
      if (this.#mayRead(stream.opening)) stream.tick(this.#times);
      else stream.end("key");
    }
  }

  /** Ends them all: their readers come back to whoever answers next. */
  close(): void {
    this.#isClosing = true;
    for (const stream of this.#streams) stream.end("shutdown");
  }
}

const PLACE = /^(\d{1,15})\.(evt_[0-9a-z]{1,64})?$/;

const MESSAGE_EXAMPLE =
  "id: 17.evt_01a1de53db4c70008000499d449120c4\nevent: event\n" +
  'data: {"id":"evt_01a1de53db4c70008000499d449120c4","type":"login_failure","source":"custom","class":"security",' +
  '"severity":"medium","timestamp":"2026-11-15T08:30:00.000Z","raw":{"src_ip":"192.0.2.17"},"enrichment":{}}';
const SHOWN = [
  "```sh",
  'curl -N -H "Authorization: Bearer $KEY" "$SERVICE/v1/stream?kinds=events&type=login_failure"',
  "```",
  "",
  "```text",
  MESSAGE_EXAMPLE,
  "```",
].join("\n");

export function streamEndpoint(
  streams: Streams,
  sources: readonly string[],
  searchFault: Store["searchFault"],
): Endpoint {
  return endpoint({
    method: "GET",
    path: "/v1/stream",
    operationId: "stream",
    tag: "Stream",
    summary: "New and changed alerts and new events, as they come",
    about:
      "Server-sent events, for `curl -N` or `fetch`: a browser's `EventSource` cannot send a key. `event: alert` is an alert of a list with the number of its `change`: sent when it is made and " +
      "whenever it changes, as it is then; of several changes in a row the last may stand for all. `event: event` is an event. " +
      "The filters of the lists say what is sent: `status`, `rule_name` and `assignee` are about alerts, `type` and `class` about " +
      "events, the others about both. The `id` of each message is a place to go on from: send that of the last one back as the header " +
      "`Last-Event-ID` or as `last_event_id`, and nothing is missed. A reader who is too slow is sent away and may come back. " +
      `A key may have ${STREAMS_PER_KEY_MAX} streams open, and all keys together ${STREAMS_MAX}: one more is a 429, or a 503.\n\n` +
      `${SHOWN}\n\nScope: \`alerts:read\` for alerts, \`events:read\` for events. The stream ends when the key does.`,
    scopes: [],
    requestHeaders: z.object({
      "Last-Event-ID": z
        .string()
        .optional()
        .describe("the same as `last_event_id`; where both are given, this one counts"),
    }),
    query: refuseReversedRange(
      z.strictObject({
        kinds: commaListParameter(z.enum(KINDS), "alerts, events; default: what the key may read"),
        ...alertFilters(sources),
        type: commaListParameter(typeSchema, "type of an event"),
        class: commaListParameter(classSchema, CLASSES.join(", ")),
        from: boundParameter.optional().describe("of an event's timestamp or an alert's created_at, inclusive"),
        to: boundParameter.optional().describe("of the same, exclusive"),
        search: searchParameter(
          searchFault,
          "words that must all occur, as in the list of events and in that of alerts",
        ),
        last_event_id: z.string().optional().describe("the id of the last message that was read"),
      }),
    ),
    answers: {
      200: { about: "messages, for as long as both sides stay", content: { "text/event-stream": z.string() } },
    },
    handle: async ({ query, key, request }) => {
      const { kinds: wanted, last_event_id: last, from: fromMs, to: toMs, search, ...filters } = query;
      const kinds = wanted ?? KINDS.filter((kind) => key.scopes.includes(SCOPE_OF[kind]));
      requireScopesOf(kinds, key);
      refuseIdleFilters(kinds, filters);
      const place = readPlace(request, last);
      const { authorization } = request.headers;
      const stream = await streams.open({ key, authorization, kinds, filters, fromMs, toMs, search, place });
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
  const field = text === header ? "Last-Event-ID" : "last_event_id";
  if (match) return { change: Number(match[1]), eventId: match[2] ?? null, field };
  throw noPlace(field);
}

function noPlace(field: Place["field"]): Problem {
  return invalid([{ field, message: "is not the id of a message of this stream" }]);
}
