import fastify, { LogController, type FastifyInstance, type FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { Alerts } from "../alerts/alerts.ts";
import type { PostCollector } from "../collectors/http/post-collector.ts";
import type { Settings } from "../config/settings.ts";
import type { ConsolePages } from "../console/serve.ts";
import { UndoLog } from "../alerts/undo-log.ts";
import { builtinTestReader } from "../detection/rules/builtin.ts";
import type { Rulebook } from "../detection/rules/rulebook.ts";
import type { Enrichment } from "../enrichment/enrichment.ts";
import type { Hostnames } from "../enrichment/hostnames.ts";
import type { Exports } from "../exports/export-jobs.ts";
import type { Intake } from "../intake/intake.ts";
import { idMaker } from "../lib/id.ts";
import { responsesCharactersMax } from "../lib/memory.ts";
import { sourceNames } from "../model/event.ts";
import type { RetentionStatus } from "../model/retention-status.ts";
import type { Channel } from "../model/rule.ts";
import type { Store } from "../store/ports/store.ts";
import { addAdmission } from "./admission.ts";
import { alertBulkEndpoints } from "./alert-bulk-endpoint.ts";
import { AlertDetails } from "./alert-detail.ts";
import { alertEventEndpoints } from "./alert-event-endpoints.ts";
import { alertEndpoints } from "./alert-endpoints.ts";
import { alertQuerySchema } from "./alert-query-schema.ts";
import { alertExportEndpoints } from "./alert-export-endpoints.ts";
import { alertWorkEndpoints } from "./alert-work-endpoints.ts";
import { analysisEndpoints, type Analyse } from "./analysis-endpoints.ts";
import { createAuthenticate } from "./auth.ts";
import { RequestBodies, type MinimumRate } from "./body.ts";
import { respondToMalformedRequest } from "./malformed-request.ts";
import { channelEndpoints, type ChannelEndpointOptions } from "./channel-endpoints.ts";
import { addCompression } from "./compression.ts";
import { collectEndpoints } from "./collect-endpoints.ts";
import { collectorEndpoints, type GetCollectorStatuses } from "./collector-endpoints.ts";
import { limitConnections } from "./connections.ts";
import { enrichmentEndpoints } from "./enrichment-endpoints.ts";
import { addEndpoint, type Endpoint } from "./endpoint.ts";
import { addErrorHandlers } from "./error-responses.ts";
import { eventEndpoints } from "./event-endpoints.ts";
import { entityEndpoints } from "./entity-endpoints.ts";
import { exportEndpoints } from "./export-endpoints.ts";
import { FileDescriptorMonitor } from "./file-descriptors.ts";
import { flowEndpoints } from "./flow-endpoints.ts";
import { listEndpoints } from "./list-endpoints.ts";
import { keyEndpoints } from "./key-endpoints.ts";
import { SECURITY_HEADERS } from "./response-headers.ts";
import { openOwnRateLimits } from "./own-rate-limits.ts";
import type { RateLimits } from "./rate-windows.ts";
import { SharedRateLimits } from "./shared-rate-limits.ts";
import { shadowedRoutes, type Route } from "./allowed-methods.ts";
import { notificationEndpoints } from "./notification-endpoints.ts";
import { collectOpenapi, DOCS_PATH, DOCUMENT_PATH, serveDocs } from "./openapi.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { addRequestMetrics } from "./request-metrics.ts";
import { reportEndpoints } from "./report-endpoints.ts";
import { importEndpoints } from "./rule-import-endpoint.ts";
import { ruleEndpoints } from "./rule-endpoints.ts";
import { ruleTestEndpoints, type TestsOf } from "./rule-test-endpoints.ts";
import { sessionEndpoints } from "./session-endpoints.ts";
import { Sessions } from "./sessions.ts";
import { siteEndpoint } from "./site-endpoint.ts";
import { simulateEndpoints } from "./simulate-endpoint.ts";
import { streamEndpoint, StreamHub } from "./stream-endpoint.ts";
import { viewEndpoints } from "./view-endpoints.ts";
import { addStatusRoutes, type DetectionState } from "./status-endpoints.ts";

/** Timeouts of a connection until its request has arrived. */
export interface ConnectionTimeouts {
  /** Until the first byte. */
  readonly firstRequestMs: number;
  /** Until the headers of a request are complete. */
  readonly headersTimeoutMs: number;
  /** The interval of the check for connections past a timeout. */
  readonly checkMs: number;
  readonly bodyRateMin?: MinimumRate;
}
const CONNECTION_TIMEOUTS: ConnectionTimeouts = { firstRequestMs: 5000, headersTimeoutMs: 20_000, checkMs: 1000 };
/** For a whole request with its body, enough for the largest batch over a slow connection. */
const REQUEST_TIMEOUT_MS = 120_000;
/** For a socket without traffic in either direction. */
const IDLE_TIMEOUT_MS = 180_000;
/** Longer than the 60 s of common proxies, so that the proxy closes an idle connection and never loses a request. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
const HEADER_BYTES_MAX = 16 * 1024;
/**
 * The memory budget of all request bodies, or four times the largest allowed body if that is more: a single client gets
 * half of it, and needs the largest body twice while it is decompressed.
 */
const BODIES_BYTES_MAX = 128 * 1024 * 1024;

const STATUS_PATHS = ["/healthz", "/readyz", "/metrics", DOCUMENT_PATH];

export interface ServerOptions {
  readonly settings: Settings;
  readonly store: Store;
  readonly intake: Intake;
  readonly exports: Exports;
  readonly alerts: Alerts;
  readonly rulebook: Rulebook;
  readonly detection: DetectionState & {
    /** Commits everything processed so far, if this node can, so that reads include it. */
    flush(): Promise<void>;
  };
  readonly hostnames: Pick<Hostnames, "nameOf">;
  readonly collectorStatus: GetCollectorStatuses;
  readonly analyse: Analyse;
  /** The configured notification channels. */
  readonly channels: readonly Channel[];
  readonly channelStatus: Omit<ChannelEndpointOptions, "notifications" | "channels">;
  readonly enrichment: Pick<Enrichment, "status" | "enrich" | "managedLists" | "fileLists">;
  readonly posts: Pick<PostCollector, "take">;
  readonly retention: { status(): Promise<RetentionStatus> };
  /** The roles that this node has. */
  readonly roles: { readonly held: readonly string[] };
  readonly consolePages: Pick<ConsolePages, "respond">;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now?: () => number;
  readonly connections?: Partial<ConnectionTimeouts> | undefined;
}

/** The HTTP server, ready to listen. */
export async function openServer(options: ServerOptions): Promise<FastifyInstance> {
  const { settings, store, intake, exports, hostnames, collectorStatus, registry, log, now = Date.now } = options;
  const { alerts, rulebook, detection, channels, analyse, retention, roles } = options;
  const { keys } = store;
  const limits: RateLimits =
    store.shared && keys.shared
      ? new SharedRateLimits({ settings, keys, usage: keys.shared, log, now })
      : await openOwnRateLimits({ settings, keys, log, now });
  const times = { ...CONNECTION_TIMEOUTS, ...options.connections };
  const app = createApp(settings, log, limits, now, times);
  const fileDescriptors = new FileDescriptorMonitor({ registry, log });
  const max = fileDescriptors.connectionsMax(settings.connections.max);
  const { perAddressMax } = settings.connections;
  limitConnections(app, { ...times, max, perAddressMax, trustedProxies: settings.trustedProxies, registry, log });
  const sessions = new Sessions({ store: store.sessions, log, now });
  const authenticate = createAuthenticate(store);
  app.addHook("onClose", async () => {
    sessions.close();
    await limits.close();
    fileDescriptors.close();
  });
  addRequestMetrics(app, registry);
  serveConsole(app, options.consolePages);
  addAdmission(app, { isPublic, authenticate, sessions, limits, now });
  addCompression(app, { isConstant: isDocumentation });
  const sources = sourceNames(settings.platform);
  const querySchema = alertQuerySchema(sources);
  const undoLog = new UndoLog({ now, newId: idMaker("undo_", now) });
  const details = new AlertDetails({ store, findRule: (id) => rulebook.find(id), undoLog });
  const streams = new StreamHub({ store, registry, log, now });
  app.addHook("preClose", async () => streams.close());
  const builtinTests = builtinTestReader(settings);
  const testsOf: TestsOf = async (rule) => (rule.builtin ? builtinTests(rule) : (rule.tests ?? []));
  const endpoints: Endpoint[] = [
    ...eventEndpoints({ store, intake, sources, bodyLimits: settings.bodyLimits, now }),
    ...entityEndpoints({
      store,
      enrich: (raw) => options.enrichment.enrich(raw),
      hostnameOf: (address) => hostnames.nameOf(address),
      now,
    }),
    ...exportEndpoints(exports, store, sources),
    ...alertExportEndpoints(exports, store, querySchema),
    ...alertEndpoints({ alerts, store, details, sources, now }),
    ...alertBulkEndpoints({ alerts, store, querySchema, undoLog }),
    ...alertEventEndpoints(store),
    ...alertWorkEndpoints(alerts, details),
    ...analysisEndpoints(analyse, details),
    ...notificationEndpoints({ notifications: store.notifications, channels, now }),
    ...channelEndpoints({ ...options.channelStatus, notifications: store.notifications, channels }),
    ...ruleEndpoints({
      rulebook,
      alerts: store.alerts,
      channels,
      sources,
      countMatches: () => detection.flush(),
      testsOf,
      now,
    }),
    ...simulateEndpoints({ store, sources, now }),
    ...ruleTestEndpoints({ rulebook, testsOf, sources, now }),
    streamEndpoint(streams, sources),
    ...importEndpoints({ rulebook, settings }),
    ...flowEndpoints({ store, hostnameOf: (address) => hostnames.nameOf(address), now }),
    ...collectorEndpoints(collectorStatus),
    siteEndpoint({ settings, store, retention, collectorStatus, now }),
    ...reportEndpoints({
      site: settings.siteName,
      timezone: settings.timezone,
      store,
      inputStatuses: collectorStatus,
      retention,
      hostnameOf: (address) => hostnames.nameOf(address),
      now,
    }),
    ...enrichmentEndpoints(() => options.enrichment.status),
    ...listEndpoints({
      enrichment: options.enrichment,
      rulebook,
      importBytesMax: settings.bodyLimits.batchBytes,
      now,
    }),
    ...collectEndpoints({ posts: options.posts, bodyBytesMax: settings.bodyLimits.batchBytes }),
    ...keyEndpoints({ keys: store.keys, views: store.views, limits, now }),
    ...viewEndpoints({ views: store.views, now }),
    ...sessionEndpoints({ sessions, authenticate, limits, now }),
  ];
  await collectOpenapi(app, endpoints);
  // Before the routes: a route keeps the handlers that exist when it is added.
  const routes = routesOf(endpoints);
  addErrorHandlers(app, routes, now);
  const { submitBytes, batchBytes } = settings.bodyLimits;
  const bytesMax = Math.max(BODIES_BYTES_MAX, 4 * batchBytes);
  const bodies = new RequestBodies({ bytesMax, registry, rateMin: times.bodyRateMin });
  const responseMemory = new MemoryBudget(responsesCharactersMax());
  for (const spec of endpoints) addEndpoint(app, spec, { bodyBytesMax: submitBytes, bodies, responseMemory, now });
  for (const { method, path } of shadowedRoutes(routes)) {
    app.route({ method, url: path, schema: { hide: true }, handler: (_request, reply) => reply.callNotFound() });
  }
  addStatusRoutes(app, { store, detection, retention, roles, fileDescriptors, registry, now });
  await serveDocs(app);
  return app;
}

function createApp(
  settings: Settings,
  log: Logger,
  limits: RateLimits,
  now: () => number,
  { headersTimeoutMs, checkMs }: ConnectionTimeouts,
): FastifyInstance {
  const nextId = idMaker("req_", now);
  const app = fastify({
    loggerInstance: log as never,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: nextId,
    // A child logger per request would cost more than its single log line, which contains the request id anyway.
    childLoggerFactory: (logger) => logger,
    trustProxy: settings.trustedProxies.length > 0 ? [...settings.trustedProxies] : false,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    // A missing Host header is refused by our own check, with an error body.
    http: {
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: headersTimeoutMs,
      connectionsCheckingInterval: checkMs,
      requireHostHeader: false,
    },
    // No shorter than the longest path: the refusal of the framework would print the path, which may contain a key.
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    // With these the framework does not load its own compilers.
    schemaController: {
      compilersFactory: {
        buildValidator: (() => () => () => true) as never,
        buildSerializer: () => () => (value) => JSON.stringify(value),
      },
    },
    // Requests that arrived before the shutdown are answered.
    return503OnClosing: false,
    // A path that cannot be decoded does not exist.
    rewriteUrl: ({ url = "/" }) => (isDecodable(url) ? url : UNDECODABLE_PATH),
    clientErrorHandler: (error, socket) =>
      respondToMalformedRequest(error, socket, { limits, headerBytesMax: HEADER_BYTES_MAX, nextId, now }),
  }) as unknown as FastifyInstance;
  // By default the server refuses an unknown Expect header without an error body; here the header is ignored.
  app.server.on("checkExpectation", (request, response) => app.routing(request, response));
  // The endpoints read and validate bodies themselves, so the framework parses nothing.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_request, _payload, done) => done(null));
  // No path supports QUERY; without a body parser the 405 does not depend on the content type.
  app.addHttpMethod("QUERY", { hasBody: false, overrideExisting: true });
  return app;
}

const UNDECODABLE_PATH = "/-";

function isDecodable(url: string): boolean {
  if (!url.includes("%")) return true;
  try {
    decodeURIComponent(url.split("?", 1)[0]!);
    return true;
  } catch {
    return false;
  }
}

/** Answers requests for the console, which need no key and have no rate limit, before the other hooks see them. */
function serveConsole(app: FastifyInstance, pages: Pick<ConsolePages, "respond">): void {
  app.decorateRequest("isConsole", false);
  app.addHook("onRequest", async (request, reply) => {
    const { method, headers, routeOptions, url } = request;
    const path = url.split("?", 1)[0]!;
    if (routeOptions.url !== undefined || path === UNDECODABLE_PATH) return undefined;
    const response = pages.respond({ method, path, headers });
    if (!response) return undefined;
    request.isConsole = true;
    reply.headers({ ...SECURITY_HEADERS, "X-Request-Id": request.id, ...response.headers });
    return reply.code(response.status).send(response.body);
  });
}

function isPublic(request: FastifyRequest): boolean {
  const route = request.routeOptions.url;
  return (route !== undefined && STATUS_PATHS.includes(route)) || isDocumentation(request);
}

function isDocumentation({ routeOptions: { url: route } }: FastifyRequest): boolean {
  return route === DOCUMENT_PATH || route === DOCS_PATH || route?.startsWith(`${DOCS_PATH}/`) === true;
}

function routesOf(endpoints: readonly Endpoint[]): Route[] {
  return [...endpoints, ...STATUS_PATHS.map((path) => ({ method: "GET", path }))];
}
