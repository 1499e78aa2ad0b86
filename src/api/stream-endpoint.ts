import type { FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";
import { z } from "zod";
import { CLASSES } from "../model/event.ts";
import { classSchema, typeSchema } from "../model/event-schema.ts";
import type { ApiKey } from "../model/key.ts";
import { boundParameter } from "../model/time-bound.ts";
import type { EntityFilter } from "../store/ports/alert-store.ts";
import { QueryRefused } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";
import { alertFilters } from "./alert-filters.ts";
import { createAuthenticate, type Authenticate } from "./auth.ts";
import { commaListParameter } from "./comma-list.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { assigneeField, ChangeFeed, entityField } from "./change-feed.ts";
import { FairShare } from "./fair-share.ts";
import {
  FIELDS_OF,
  STREAM_KINDS,
  SCOPE_OF,
  StreamConnection,
  type StreamFilters,
  type StreamKind,
  type StreamRequest,
  type ResumePosition,
  type StreamTimes,
} from "./stream-connection.ts";
import { refuseReversedRange, searchParameter } from "./paging.ts";
import { invalid, Problem } from "./problems.ts";
import { readSessionCookie } from "./session-cookie.ts";
import type { StreamOutput } from "./stream-output.ts";

// Server-sent events of new events and changed alerts. A stream forwards the change feed. After a reconnection, or when its
// client is too slow for the feed, it reads from the store until it has caught up.

const STREAMS_MAX = 200;
const STREAMS_PER_KEY_MAX = 20;
const FULL_RETRY_SECONDS = 10;

const TIMES: StreamTimes = { tickMs: 1000, heartbeatTicks: 15, stalledTicksMax: 30 };

export interface StreamHubOptions {
  readonly store: Pick<Store, "alerts" | "events" | "keys" | "sessions">;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
  readonly times?: StreamTimes;
  readonly share?: FairShare;
}

/** All open streams. */
export class StreamHub {
  readonly #store: StreamHubOptions["store"];
  readonly #log: Logger;
  readonly #feed: ChangeFeed;
  readonly #share: FairShare;
  readonly #authenticate: Authenticate;
  readonly #now: () => number;
  readonly #times: StreamTimes;
  readonly #streams = new Set<StreamConnection>();
  readonly #ended: Counter;
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor({ store, registry, log, now, times = TIMES, share = new FairShare() }: StreamHubOptions) {
    this.#store = store;
    this.#log = log;
    this.#share = share;
    this.#feed = new ChangeFeed(store, share);
    this.#authenticate = createAuthenticate(store);
    this.#now = now;
    this.#times = times;
    const streams = this.#streams;
    new Gauge({
      name: "tocsin_streams",
      help: "Open streams",
      registers: [registry],
      collect() {
        this.set(streams.size);
      },
    });
    this.#ended = new Counter({
      name: "tocsin_streams_ended_total",
      help: "Ended streams, by reason",
      labelNames: ["reason"],
      registers: [registry],
    });
  }

  async open(request: StreamRequest): Promise<StreamOutput> {
    this.#requireCapacity(request.key);
    if (request.resumeFrom) this.#requirePlace(request.resumeFrom);
    const stream = new StreamConnection({
      store: this.#store,
      feed: this.#feed,
      share: this.#share,
      request,
      mayRead: () => this.#mayRead(request),
      onEnd: (reason, error) => {
        this.#remove(stream);
        this.#ended.inc({ reason });
        if (error !== undefined) this.#log.warn({ err: error }, "stream failed");
      },
    });
    this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#tick(), this.#times.tickMs).unref();
    try {
      await stream.start();
      return stream.output;
    } catch (error) {
      this.#remove(stream);
      throw error;
    }
  }

  #remove(stream: StreamConnection): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #requireCapacity(key: ApiKey): void {
    const headers = { "Retry-After": String(FULL_RETRY_SECONDS) };
    if (this.#isClosing) throw new Problem("unavailable", "the service is stopping", { headers });
    const own = [...this.#streams].filter((stream) => stream.request.key.id === key.id).length;
    if (own >= STREAMS_PER_KEY_MAX) {
      throw new Problem("rate_limited", `the key already has ${STREAMS_PER_KEY_MAX} open streams; close one first`, {
        headers,
      });
    }
    if (this.#streams.size >= STREAMS_MAX) {
      throw new Problem("unavailable", `${STREAMS_MAX} streams are open already; try again later`, { headers });
    }
  }

  /** Checked before the response starts; afterwards an error cannot be reported. */
  #requirePlace({ place, field }: ResumePosition): void {
    try {
      this.#store.events.arrivals(place, AbortSignal.abort());
    } catch (error) {
      throw error instanceof QueryRefused ? invalidPosition(field) : error;
    }
  }

  async #mayRead({ credentials, kinds }: StreamRequest): Promise<boolean> {
    const caller = await this.#authenticate(credentials, this.#now());
    return caller !== undefined && kinds.every((kind) => caller.key.scopes.includes(SCOPE_OF[kind]));
  }

  /** Also ends idle streams whose key is no longer valid. */
  #tick(): void {
    for (const stream of this.#streams) void this.#tickStream(stream);
  }

  async #tickStream(stream: StreamConnection): Promise<void> {
    try {
      if (await this.#mayRead(stream.request)) stream.tick(this.#times);
      else stream.end("key");
    } catch (error) {
      stream.end("failure", error);
    }
  }

  /** Ends all streams; their clients reconnect. */
  close(): void {
    this.#isClosing = true;
    for (const stream of this.#streams) stream.end("shutdown");
  }
}

const RESUME_POSITION = /^(\d{1,15})\.([a-z]{3}_[0-9a-z]{1,64})?$/;

const MESSAGE_EXAMPLE =
  "id: 17.evt_01a1de53db4c70008000499d449120c4\nevent: event\n" +
  'data: {"id":"evt_01a1de53db4c70008000499d449120c4","type":"login_failure","source":"custom","class":"security",' +
  '"severity":"medium","timestamp":"2026-11-15T08:30:00.000Z","raw":{"src_ip":"192.0.2.17"},"enrichment":{}}';
const CURL_EXAMPLE = [
  "```sh",
  'curl -N -H "Authorization: Bearer $KEY" "$SERVICE/v1/stream?kinds=events&type=login_failure"',
  "```",
  "",
  "```text",
  MESSAGE_EXAMPLE,
  "```",
].join("\n");

export function streamEndpoint(streams: StreamHub, sources: readonly string[]): Endpoint {
  return endpoint({
    method: "GET",
    path: "/v1/stream",
    operationId: "stream",
    tag: "Stream",
    summary: "Stream new events and new or changed alerts",
    description:
      "Server-sent events, for `curl -N`, `fetch` or, with a session, a browser's `EventSource`. `event: alert` is an alert as in the " +
      "list, with its `change` number. It is sent when the alert is created and whenever it changes; several changes in quick succession " +
      "may be sent as one. `event: event` is an event. The filters are those of the lists: `status`, `rule_name`, `assignee`, `tag`, `entity` and `time` apply " +
      "to alerts, `type` and `class` to events, all others to both. The `id` of each message is a resume position: send the last one as the " +
      "header `Last-Event-ID` or as `last_event_id` to continue without a gap. A client that reads too slowly is disconnected and can resume. " +
      `A key may have ${STREAMS_PER_KEY_MAX} open streams (429 past that), all keys together ${STREAMS_MAX} (503 past that).\n\n` +
      `${CURL_EXAMPLE}\n\nScope: \`alerts:read\` for alerts, \`events:read\` for events. The stream ends when the key or the session is no longer valid.`,
    scopes: [],
    requestHeaders: z.object({
      "Last-Event-ID": z.string().optional().describe("same as `last_event_id`, over which it takes precedence"),
    }),
    query: refuseReversedRange(
      z.strictObject({
        kinds: commaListParameter(z.enum(STREAM_KINDS), "alerts, events; default: all that the key can read"),
        ...alertFilters(sources),
        type: commaListParameter(typeSchema, "type of an event"),
        class: commaListParameter(classSchema, CLASSES.join(", ")),
        from: boundParameter
          .optional()
          .describe(
            "earliest `timestamp` of an event or `created_at` of an alert (see `time`), inclusive; also relative to the time of the request, such as `now-1h`",
          ),
        to: boundParameter.optional().describe("latest such time, exclusive"),
        search: searchParameter("words that must all occur, as in the lists of events and alerts"),
        last_event_id: z.string().optional().describe("the id of the last message received"),
      }),
    ),
    responses: {
      200: { description: "a stream of messages", content: { "text/event-stream": z.string() } },
    },
    handle: async ({ query, key, request }) => {
      const { kinds: requested, last_event_id: last, from: fromMs, to: toMs, search, time, ...lists } = query;
      const filters = textFilters(lists);
      const kinds = requested ?? STREAM_KINDS.filter((kind) => key.scopes.includes(SCOPE_OF[kind]));
      requireScopesOf(kinds, key);
      refuseUnusedFilters(kinds, { ...filters, time: time && [time] });
      const resumeFrom = readResumePosition(request, last);
      const { authorization } = request.headers;
      const credentials = { authorization, sessionId: request.session ? readSessionCookie(request) : undefined };
      const stream = await streams.open({ key, credentials, kinds, filters, fromMs, toMs, time, search, resumeFrom });
      // A HEAD request would leave a stream that nobody reads.
      if (request.method === "HEAD") stream.end();
      const headers = { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" };
      return { kind: "stream", stream, headers };
    },
  });
}

function requireScopesOf(kinds: readonly StreamKind[], key: ApiKey): void {
  const missing = kinds.map((kind) => SCOPE_OF[kind]).filter((scope) => !key.scopes.includes(scope));
  if (kinds.length === 0) throw new Problem("forbidden", "the key lacks the scope alerts:read or events:read");
  if (missing.length > 0) throw new Problem("forbidden", `the key lacks the scope ${missing.join(" and ")}`);
}

interface ListFilters {
  readonly assignee?: readonly (string | null)[] | undefined;
  readonly entity?: readonly EntityFilter[] | undefined;
  /** All others are lists of texts. */
  readonly [field: string]: readonly (string | null | EntityFilter)[] | undefined;
}

/** The filters in the form that feed items are compared with. */
function textFilters({ assignee, entity, ...filters }: ListFilters): StreamFilters {
  return { ...(filters as StreamFilters), assignee: assignee?.map(assigneeField), entity: entity?.map(entityField) };
}

/** Refuses a filter that applies to none of the requested kinds. */
function refuseUnusedFilters(kinds: readonly StreamKind[], filters: StreamFilters): void {
  const applicable = new Set<string>(kinds.flatMap((kind) => FIELDS_OF[kind]));
  if (kinds.includes("alerts")) applicable.add("time");
  const unused = Object.keys(filters).filter((field) => filters[field] !== undefined && !applicable.has(field));
  const message = `does not apply to ${kinds.join(" and ")}`;
  if (unused.length > 0) throw invalid(unused.map((field) => ({ field, message })));
}

function readResumePosition(request: FastifyRequest, parameter: string | undefined): ResumePosition | undefined {
  // A reconnecting browser sends the header together with the original URL.
  const header = request.headers["last-event-id"];
  const text = typeof header === "string" && header !== "" ? header : parameter;
  if (text === undefined) return undefined;
  const match = RESUME_POSITION.exec(text);
  const field = text === header ? "Last-Event-ID" : "last_event_id";
  if (match) return { change: Number(match[1]), place: match[2] ?? null, field };
  throw invalidPosition(field);
}

function invalidPosition(field: ResumePosition["field"]): Problem {
  return invalid([{ field, message: "is not the id of a message of this stream" }]);
}
