import fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { Histogram, type Registry } from "prom-client";
import type { Alerts } from "../alerts/alerts.ts";
import type { Posts } from "../collectors/posts.ts";
import type { Settings } from "../config/config.ts";
import type { Rulebook } from "../detection/rulebook.ts";
import type { EnrichmentStatus } from "../enrichment/status.ts";
import type { Hostnames } from "../enrichment/hostnames.ts";
import type { Exporter } from "../exports/exporter.ts";
import type { Intake } from "../intake/intake.ts";
import { idMaker } from "../lib/id.ts";
import { memoryShare } from "../lib/memory.ts";
import { sourceNames } from "../model/event.ts";
import { mayStandInPath } from "../model/key.ts";
import type { Channel } from "../model/rule.ts";
import type { Store } from "../store/store.ts";
import { alertEndpoints } from "./alerts.ts";
import { analysisEndpoints, type Analyse } from "./analysis.ts";
import { createIdentify, requireScopes } from "./auth.ts";
import { Bodies, ClientGone, type Pace } from "./body.ts";
import { answerBrokenRequest } from "./broken-request.ts";
import { collectEndpoints } from "./collect.ts";
import { collectorEndpoints, type StatusOfCollectors } from "./collectors.ts";
import { limitConnections } from "./connections.ts";
import { enrichmentEndpoints } from "./enrichment.ts";
import { addEndpoint, metaOf, type Endpoint } from "./endpoint.ts";
import { eventEndpoints } from "./events.ts";
import { exportEndpoints } from "./exports.ts";
import { OpenFiles } from "./open-files.ts";
import { flowEndpoints } from "./flows.ts";
import { keyEndpoints } from "./keys.ts";
import { limitHeaders, SECURITY_HEADERS, tooMany } from "./headers.ts";
import { Limits } from "./limits.ts";
import { methodTable, mistakenRoutes } from "./methods.ts";
import { notificationEndpoints } from "./notifications.ts";
import { collectOpenapi, DOCS_PATH, DOCUMENT_PATH, serveDocs } from "./openapi.ts";
import { invalid, Problem, problemBody, toProblem } from "./problems.ts";
import { Room } from "./room.ts";
import { importEndpoints } from "./rules-import.ts";
import { ruleEndpoints } from "./rules.ts";
import { simulateEndpoints } from "./simulate.ts";
import { streamEndpoint, Streams } from "./stream.ts";
import { addStatus, type DetectionStatus, type RetentionStatus } from "./status.ts";

/** How long a connection may take until a request is there. */
export interface ConnectionLimits {
  /** Until anything is sent on it. */
  readonly firstRequestMs: number;
  /** Until a request's headers are complete. */
  readonly headersTimeoutMs: number;
  /** Between two looks for connections that have taken too long. */
  readonly lookMs: number;
  readonly bodyPace?: Pace;
}
const CONNECTION_LIMITS: ConnectionLimits = { firstRequestMs: 5000, headersTimeoutMs: 20_000, lookMs: 1000 };
/** For a whole request, body included: the largest batch over a slow line. */
const REQUEST_TIMEOUT_MS = 120_000;
/** A socket on which nothing moves, in either direction. */
const IDLE_TIMEOUT_MS = 180_000;
/** Longer than the minute after which common proxies let go, so that it is never we who hang up on a request. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
const HEADER_BYTES_MAX = 16 * 1024;
/** Of all bodies that are being read or worked on, or four times the largest allowed where that is more: a client alone
 * gets half of it, and needs the largest body twice while it is unpacked. */
const BODIES_BYTES_MAX = 128 * 1024 * 1024;
/** Of all answers that are on their way to clients; less where the process may not use much. The largest one is a quarter of the most. */
const MEBIBYTE = 1024 * 1024;
const ANSWERS_CHARACTERS = { min: 128 * MEBIBYTE, max: 256 * MEBIBYTE };

const STATUS_PATHS = ["/healthz", "/readyz", "/metrics", DOCUMENT_PATH];
const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export interface ServerOptions {
  readonly settings: Settings;
  readonly store: Store;
  readonly intake: Intake;
  readonly exporter: Exporter;
  readonly alerts: Alerts;
  readonly rulebook: Rulebook;
  readonly detector: DetectionStatus & { flush(): Promise<void> };
  readonly hostnames: Pick<Hostnames, "nameOf">;
  readonly statusOfCollectors: StatusOfCollectors;
  readonly analyse: Analyse;
  /** Those that there are to tell people with. */
  readonly channels: readonly Channel[];
  readonly enrichment: { readonly status: EnrichmentStatus };
  readonly posts: Pick<Posts, "take">;
  readonly retention: { readonly status: RetentionStatus };
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly connections?: Partial<ConnectionLimits> | undefined;
}

/** The HTTP server, ready to listen. */
export async function createServer(options: ServerOptions): Promise<FastifyInstance> {
  const { settings, store, intake, exporter, hostnames, statusOfCollectors, registry, log, now = Date.now } = options;
  const { alerts, rulebook, detector, channels, analyse } = options;
  const limits = new Limits({ settings, keys: store.keys, log, now });
  const times = { ...CONNECTION_LIMITS, ...options.connections };
  const app = createApp(settings, log, limits, now, times);
  const openFiles = new OpenFiles({ registry, log });
  const max = openFiles.connectionsMax(settings.connections.max);
  const { perAddressMax } = settings.connections;
  limitConnections(app, { ...times, max, perAddressMax, trustedProxies: settings.trustedProxies, registry, log });
  app.addHook("onClose", () => {
    limits.close();
    openFiles.close();
  });
  observe(app, registry);
  admit(app, { store, limits, now });
  const sources = sourceNames(settings.platform);
  const streams = new Streams({ store, registry, log, now });
  app.addHook("preClose", async () => streams.close());
  const endpoints: Endpoint[] = [
    ...eventEndpoints({ store, intake, sources, bodyLimits: settings.bodyLimits }),
    ...exportEndpoints(exporter, store, sources),
    ...alertEndpoints({ alerts, store, sources, now }),
    ...analysisEndpoints(analyse, store),
    ...notificationEndpoints({ notifications: store.notifications, channels, now }),
    ...ruleEndpoints({ rulebook, store, sources, countMatches: () => detector.flush(), now }),
    ...simulateEndpoints({ store, sources, now }),
    streamEndpoint(streams, sources, (words) => store.searchFault(words)),
    ...importEndpoints({ rulebook, settings }),
    ...flowEndpoints({ store, hostnameOf: (address) => hostnames.nameOf(address), now }),
    ...collectorEndpoints(statusOfCollectors),
    ...enrichmentEndpoints(() => options.enrichment.status),
    ...collectEndpoints({ posts: options.posts, bodyBytesMax: settings.bodyLimits.batchBytes }),
    ...keyEndpoints({ keys: store.keys, limits, now }),
  ];
  await collectOpenapi(app, endpoints);
  // Before the routes: each keeps the handlers that are there when it is added.
  refuse(app, endpoints, now);
  const { submitBytes, batchBytes } = settings.bodyLimits;
  const bytesMax = Math.max(BODIES_BYTES_MAX, 4 * batchBytes);
  const bodies = new Bodies({ bytesMax, registry, pace: times.bodyPace });
  const answerRoom = new Room(memoryShare(ANSWERS_CHARACTERS));
  for (const spec of endpoints) addEndpoint(app, spec, { bodyBytesMax: submitBytes, bodies, answerRoom, now });
  for (const { method, path } of mistakenRoutes(routesOf(endpoints))) {
    app.route({ method, url: path, schema: { hide: true }, handler: (_request, reply) => reply.callNotFound() });
  }
  addStatus(app, { store, detection: detector, retention: options.retention, openFiles, registry, now });
  await serveDocs(app);
  return app;
}

function createApp(
  settings: Settings,
  log: Logger,
  limits: Limits,
  now: () => number,
  { headersTimeoutMs, lookMs }: ConnectionLimits,
): FastifyInstance {
  const nextId = idMaker("req_", now);
  const app = fastify({
    loggerInstance: log as never,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: nextId,
    // A logger for each request would cost more than its one line: the lines name the request themselves.
    childLoggerFactory: (logger) => logger,
    trustProxy: settings.trustedProxies.length > 0 ? [...settings.trustedProxies] : false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // A request without Host is refused by us, in the error body, instead of by the server, without one.
    http: {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: lookMs,
      requireHostHeader: false,
    },
    // As long as a path can be: the framework's own refusal would show the path, and a key may stand in it.
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    // Said here, the framework does not load the compilers that it has of its own.
    schemaController: {
      compilersFactory: {
        buildValidator: (() => () => () => true) as never,
        buildSerializer: () => () => (value) => JSON.stringify(value),
      },
    },
    // A request that is in before the doors close is answered.
    return503OnClosing: false,
    // A path that cannot be decoded is one that nothing stands at.
    rewriteUrl: ({ url = "/" }) => (isDecodable(url) ? url : "/-"),
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(error, socket, { limits, headerBytesMax: HEADER_BYTES_MAX, nextId, now }),
  }) as unknown as FastifyInstance;
  // An expectation that the server does not know is no reason to answer without a body: the request is taken as it is.
  app.server.on("checkExpectation", (request, response) => app.routing(request, response));
  // Bodies are read and checked by the endpoints, inputs by their schemas: nothing is left for the framework to do.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  // No path takes it: that is to be said, whether or not a content type is given.
  app.addHttpMethod("QUERY", { hasBody: false, overrideExisting: true });
  return app;
}

function isDecodable(url: string): boolean {
  if (!url.includes("%")) return true;
  try {
    decodeURIComponent(url.split("?", 1)[0]!);
    return true;
  } catch {
    return false;
  }
}

/** One log line and one measurement for each request, answered or abandoned. */
function observe(app: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: "http_request_duration_seconds",
    help: "time from the arrival of a request to the end of its answer",
    labelNames: ["method", "route", "status"],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  });
  app.addHook("onRequest", (request, reply, done) => {
    const startedAt = performance.now();
    reply.raw.once("close", () => {
      const ms = performance.now() - startedAt;
      const route = request.routeOptions.url ?? "unknown";
      const status = reply.raw.statusCode;
      const aborted = !reply.raw.writableFinished;
      durations.observe({ method: request.method, route, status: aborted ? "aborted" : status }, ms / 1000);
      const line = {
        request: request.id,
        method: request.method,
        route,
        status,
        ms: Math.round(ms * 100) / 100,
        key: request.apiKey?.id,
        ...(aborted && { aborted }),
      };
      if (status >= 500) request.log.warn(line, "request");
      else request.log.info(line, "request");
    });
    done();
  });
}

const NOTHING_THERE = "there is nothing at this path";

interface Admission {
  readonly store: Store;
  readonly limits: Limits;
  readonly now: () => number;
}

/** Who asks, how often, and whether they may: before anything of the request is looked at. */
function admit(app: FastifyInstance, { store, limits, now }: Admission): void {
  const identify = createIdentify(store.keys);
  app.decorateRequest("apiKey", null);
  app.addHook("onRequest", (request, reply, done) => {
    reply.headers(SECURITY_HEADERS);
    reply.header("X-Request-Id", request.id);
    reply.header("Cache-Control", "no-store");
    // One that says nothing is none: the framework would refuse it in words of its own.
    if (request.headers["content-type"]?.trim() === "") delete request.headers["content-type"];
    if (isOpen(request)) return done();
    const repeated = repeatedHeaders(request);
    const authorization = authorizationOf(request);
    // Of two, whoever stands in front may have checked the other one.
    const known = repeated.includes("Authorization") ? undefined : identify(authorization, now());
    const isInPath = tokenOf(request) !== undefined;
    const isTooStrong = known !== undefined && isInPath && !mayStandInPath(known);
    const key = isTooStrong ? undefined : known;
    request.apiKey = key ?? null;
    const verdict = key ? limits.takeForKey(key) : limits.takeForAddress(request.ip);
    reply.headers(limitHeaders(verdict));
    if (!verdict.allowed) return done(tooMany(verdict, now()));
    const { scopes } = request.routeOptions.config;
    try {
      refuseHeaders(request, repeated);
      if (!isInPath && request.routeOptions.config.keyInPath) throw new Problem("not_found", NOTHING_THERE);
      if (isTooStrong) throw new Problem("unauthorized", "a key in a path must have collect: scopes and no other");
      if (scopes) requireScopes(key, scopes, authorization);
      done();
    } catch (problem) {
      done(problem as Problem);
    }
  });
}

/** Headers that may be given once: whoever stands in front may go by one of two, and we by the other. */
const SINGLE_HEADERS = ["Host", "Authorization", "Content-Type"];
const SINGLE_BY_NAME = new Map(SINGLE_HEADERS.map((name) => [name.toLowerCase(), name]));

function repeatedHeaders({ raw: { rawHeaders } }: FastifyRequest): readonly string[] {
  const seen = new Set<string>();
  const repeated: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = SINGLE_BY_NAME.get(rawHeaders[i]!.toLowerCase());
    if (name === undefined) continue;
    if (seen.has(name) && !repeated.includes(name)) repeated.push(name);
    seen.add(name);
  }
  return repeated;
}

function refuseHeaders({ raw }: FastifyRequest, repeated: readonly string[]): void {
  if (repeated.length > 0) throw invalid(repeated.map((field) => ({ field, message: "is given twice" })));
  const isHostMissing = raw.headers.host === undefined && raw.httpVersion === "1.1";
  if (isHostMissing) throw invalid([{ field: "Host", message: "is required" }]);
}

/** What proves who asks: the header, or for those who cannot send one the path. */
function authorizationOf(request: FastifyRequest): string | undefined {
  const token = tokenOf(request);
  return token === undefined ? request.headers.authorization : `Bearer ${token}`;
}

/** The key that stands in the path; undefined where none does. */
function tokenOf(request: FastifyRequest): string | undefined {
  const { token } = request.params as { token?: string };
  return request.routeOptions.config.keyInPath && token !== "" ? token : undefined;
}

function isOpen(request: FastifyRequest): boolean {
  const route = request.routeOptions.url;
  if (route === undefined) return false;
  return STATUS_PATHS.includes(route) || route === DOCS_PATH || route.startsWith(`${DOCS_PATH}/`);
}

/** Every refusal in the error body, whether ours or the framework's. */
function refuse(app: FastifyInstance, endpoints: readonly Endpoint[], now: () => number): void {
  const answer = (request: FastifyRequest, reply: FastifyReply, problem: Problem) =>
    reply
      .code(problem.status)
      .headers(problem.headers)
      .type("application/json; charset=utf-8")
      .send(JSON.stringify(problemBody(problem, metaOf(request, now))));

  app.setErrorHandler((error, request, reply) => {
    if (error instanceof ClientGone) {
      // Nobody reads this answer: it only ends the request.
      reply.raw.destroy();
      return reply.hijack();
    }
    const problem = toProblem(error);
    if (problem) {
      if (problem.cause !== undefined && problem.status >= 500)
        request.log.warn({ request: request.id, err: problem.cause }, problem.message);
      return answer(request, reply, problem);
    }
    request.log.error({ request: request.id, err: error }, "request failed");
    return answer(request, reply, new Problem("internal_error", "the service failed; its log has the request id"));
  });

  const allowedAt = methodTable(routesOf(endpoints));
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?", 1)[0]!;
    const allowed = allowedAt(path);
    if (allowed.length === 0) return answer(request, reply, new Problem("not_found", NOTHING_THERE));
    const headers = { Allow: allowed.join(", ") };
    const message = `${request.method} is not for this path; it takes ${headers.Allow}`;
    return answer(request, reply, new Problem("method_not_allowed", message, { headers }));
  });
}

function routesOf(endpoints: readonly Endpoint[]): { method: string; path: string }[] {
  return [...endpoints, ...STATUS_PATHS.map((path) => ({ method: "GET", path }))];
}
