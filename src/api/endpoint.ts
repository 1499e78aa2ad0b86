import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { FAULTS_MAX, faultsOf, formatPath, joinFaults, WITH_NAMES, type Fault } from "../lib/fault.ts";
import type { ApiKey, Scope } from "../model/key.ts";
import type { Session } from "../model/session.ts";
import { parseAt } from "../model/time-bound.ts";
import { BODY_DEPTH_MAX, JSON_TYPE, readJson } from "./body.ts";
import type { RequestBodies, Body as RequestBody, BodyRules } from "./body.ts";
import type { HeaderName } from "./response-headers.ts";
import { invalid, metaSchema, PROBLEMS, errorSchema, type ProblemCode } from "./problems.ts";
import { readableQuery } from "./query-string.ts";
import { paginationSchema, send, type ApiResponse } from "./response.ts";
import { ownersOf, holdResponseMemory, type MemoryBudget } from "./memory-budget.ts";

// The definition of an endpoint: its input, scopes and responses. The checks of a request, the envelope and the OpenAPI
// document are derived from it.

declare global {
  interface JSON {
    rawJSON(text: string): unknown;
  }
}

declare module "fastify" {
  interface FastifyRequest {
    /** The valid key of the request. */
    apiKey: ApiKey | null;
    /** The valid session of the request; null if it has a key of its own. */
    session: Session | null;
    /** True if the console answered the request. */
    isConsole: boolean;
  }
  interface FastifyContextConfig {
    /** Scopes that the route requires. A route without this setting is public and not rate limited. */
    scopes?: readonly Scope[];
    /** The key is the path parameter `token`. */
    keyInPath?: boolean;
    authentication?: Endpoint["authentication"];
    acceptsSession?: boolean;
  }
}

interface EndpointCall<Query, Params, Body> {
  readonly query: Query;
  readonly params: Params;
  readonly body: Body;
  readonly key: ApiKey;
  readonly request: FastifyRequest;
  /** For an endpoint that reads its body itself. */
  readBody(rules: BodyRules): Promise<RequestBody | undefined>;
  /** Faults of the rest of the request, for an endpoint with `handlesFaults`; otherwise empty. */
  readonly faults: readonly Fault[];
}

/** The groups of calls in the OpenAPI document. */
export const TAGS = {
  Events: "submit, list and search events",
  Entities: "addresses, people, doors, cameras, devices and numbers that events name",
  Exports: "events and alerts as files",
  Alerts: "list alerts and handle them",
  Notifications: "messages about alerts, and their delivery",
  Rules: "detection rules",
  Lists: "lists of addresses and domains, for rules and filters",
  Stream: "live events and alerts",
  Flows: "network traffic, aggregated by minute",
  Collectors: "webhooks and the status of the collectors",
  Keys: "API keys",
  Views: "saved views of the console",
  Reports: "reports to read and to print",
  Session: "sign in to the console and out of it",
  Service: "the site, health, readiness and metrics",
} as const;
type Tag = keyof typeof TAGS;

type ObjectSchema = z.ZodType<object>;
type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** A response in the OpenAPI document: the schema of `data`, of a bare body, or of other content by media type. */
type ResponseSchema =
  | { readonly description: string; readonly bare: z.ZodType; readonly example?: unknown }
  | { readonly description: string; readonly data: z.ZodType; readonly paginated?: true; readonly example?: unknown }
  | {
      readonly description: string;
      readonly content: Readonly<Record<string, z.ZodType>>;
      /** Of `data`, if one of the types is JSON with an envelope. */
      readonly example?: unknown;
    };

export interface Endpoint<
  Query extends ObjectSchema | undefined = ObjectSchema | undefined,
  Params extends ObjectSchema | undefined = ObjectSchema | undefined,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: `/${string}`;
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  readonly scopes: readonly Scope[];
  /** The key is the path parameter `token`, for senders that cannot set a header. */
  readonly keyInPath?: true;
  /**
   * `optional`: the call also works without a valid key. `none`: credentials are not read, and the call counts against the
   * limit of the client address. Default: a valid key is required. In both cases `key` may be null.
   */
  readonly authentication?: "optional" | "none";
  /** False: only a key counts, never the cookie of a session. */
  readonly acceptsSession?: false;
  /** The response contains a secret and is never compressed. */
  readonly hasSecret?: true;
  readonly query?: Query;
  readonly params?: Params;
  readonly body?: Body;
  /** Throws if no body would be accepted; called before the body is read. */
  readonly refuseEarly?: (params: Output<Params>) => void;
  /**
   * Faults of the body that its schema cannot find, reported together with those of the schema. The input may be of any type.
   * A fault is dropped where the schema has already found one.
   */
  readonly extraFaults?: (input: unknown, params: Output<Params>) => readonly Fault[];
  /** The body may be omitted: all its fields are optional. */
  readonly bodyOptional?: true;
  /** The handler reads the body itself; the schema only documents it, for these media types. */
  readonly bodyTypes?: readonly string[];
  /** The fault of the cursor `after`, checked only when the request has other faults, so that all are reported at once. */
  readonly cursorFault?: (id: string) => Promise<string | undefined>;
  /** The handler receives the faults of the query and reports them together with those of the body. */
  readonly handlesFaults?: true;
  readonly requestHeaders?: z.ZodType;
  /** An example of the body. */
  readonly example?: unknown;
  readonly responses: Readonly<Record<number, ResponseSchema>>;
  /** In addition to the problems that any call may return. */
  readonly problems?: readonly ProblemCode[];
  /** Response headers by status, in addition to those of every response. */
  readonly headers?: Readonly<Record<number, readonly HeaderName[]>>;
  handle(call: EndpointCall<Output<Query>, Output<Params>, Output<Body>>): Promise<ApiResponse> | ApiResponse;
}

/** Identity function that infers the types of `handle` from the schemas. */
export function endpoint<
  Query extends ObjectSchema | undefined = undefined,
  Params extends ObjectSchema | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(spec: Endpoint<Query, Params, Body>): Endpoint {
  return spec as unknown as Endpoint;
}

export interface EndpointOptions {
  readonly bodyBytesMax: number;
  readonly bodies: RequestBodies;
  readonly responseMemory: MemoryBudget;
  readonly now: () => number;
}

export function addEndpoint(app: FastifyInstance, spec: Endpoint, options: EndpointOptions): void {
  const query = spec.query ?? z.strictObject({});
  const body = spec.body ?? (mayHaveBody(spec) ? z.strictObject({}) : undefined);
  // A request without a body needs no content type.
  const rules: BodyRules = {
    bytesMax: options.bodyBytesMax,
    types: [JSON_TYPE],
    ...(!spec.body && { defaultType: JSON_TYPE }),
  };
  app.route({
    method: spec.method,
    url: spec.path,
    config: {
      scopes: spec.scopes,
      keyInPath: spec.keyInPath === true,
      authentication: spec.authentication,
      acceptsSession: spec.acceptsSession !== false,
      hasSecret: spec.hasSecret === true,
    },
    schema: openapiSchema(spec),
    handler: async (request, reply) => {
      const owners = ownersOf(request);
      const reader = options.bodies.reader(request.raw, owners);
      try {
        const faults: Fault[] = [];
        const receivedAt = options.now();
        const params = spec.params ? check(spec.params, request.params, "path", faults) : undefined;
        if (faults.length === 0) spec.refuseEarly?.(params as never);
        const isOptional = spec.bodyOptional === true || !spec.body;
        const extraFaults = (input: unknown) => spec.extraFaults?.(input, params as never) ?? [];
        const call = {
          key: request.apiKey,
          request,
          readBody: (rules: BodyRules) => reader.read(rules),
          faults,
          query: parseAt(receivedAt, () => check(query, readableQuery(request, faults), "query", faults)),
          params,
          body: undefined as unknown,
        };
        if (body && !spec.bodyTypes) {
          const read = await reader.read(rules);
          call.body = parseAt(receivedAt, () => checkBody(body, read, faults, { isOptional, extraFaults }));
        }
        if (faults.length > 0 && !spec.handlesFaults) {
          throw invalid([...faults, ...(await cursorFaults(spec, request, faults))]);
        }
        const response = await spec.handle(call as never);
        // A completed change must be reported; only a read can be refused and repeated.
        const isChange = spec.method !== "GET" && spec.scopes.length === 0;
        const mayRefuse = !isChange && spec.scopes.every((scope) => scope.endsWith(":read"));
        if (response.kind !== "stream") {
          holdResponseMemory(options.responseMemory, response.text.length, reply.raw, { owners, mayRefuse });
        }
        return send(request, reply, response, options.now);
      } finally {
        reader.release();
      }
    },
  });
}

/** A non-GET call without a body schema still reads the body, to refuse fields that would have no effect. */
function mayHaveBody({ method }: Endpoint): boolean {
  return method !== "GET";
}

/** Parses and validates a body. Syntax and schema faults are appended to `faults`. */
export function checkBody<Body extends z.ZodType>(
  schema: Body,
  body: RequestBody | undefined,
  faults: Fault[],
  {
    isOptional = false,
    extraFaults,
  }: { isOptional?: boolean; extraFaults?: (input: unknown) => readonly Fault[] } = {},
): z.output<Body> | undefined {
  if (!body && !isOptional) {
    faults.push({ field: "body", message: "is required" });
    return undefined;
  }
  const read = body ? readJson(body.bytes, { depthMax: BODY_DEPTH_MAX }) : { value: {}, faults: [] };
  const found: Fault[] = [];
  const value = check(schema, read.value, "", found);
  const all = joinFaults(
    joinFaults([...read.faults, ...protoFaults(read.value)], found),
    extraFaults?.(read.value) ?? [],
  );
  for (const { field, message } of all) faults.push({ field: field || "body", message });
  return value as z.output<Body> | undefined;
}

/** Finds keys named `__proto__`, which schemas ignore silently; unknown fields must be refused. */
function protoFaults(value: unknown): Fault[] {
  const faults: Fault[] = [];
  const path: PropertyKey[] = [];
  const walk = (node: object): void => {
    for (const key in node) {
      if (faults.length > FAULTS_MAX) return;
      const child = (node as Record<string, unknown>)[key];
      path.push(Array.isArray(node) ? Number(key) : key);
      if (key === "__proto__") faults.push({ field: formatPath(path), message: "is unknown" });
      else if (typeof child === "object" && child !== null) walk(child);
      path.pop();
    }
  };
  if (typeof value === "object" && value !== null) walk(value);
  return faults;
}

/** `inputName` is the field of faults that concern the whole input. */
function check(schema: z.ZodType, input: unknown, inputName: string, faults: Fault[]): unknown {
  const parsed = schema.safeParse(input, { ...WITH_NAMES, reportInput: true });
  if (parsed.success) return parsed.data;
  for (const { field, message } of faultsOf(parsed.error)) faults.push({ field: field || inputName, message });
  return undefined;
}

async function cursorFaults(spec: Endpoint, request: FastifyRequest, faults: readonly Fault[]): Promise<Fault[]> {
  const { after } = request.query as Record<string, unknown>;
  if (!spec.cursorFault || typeof after !== "string" || faults.some(({ field }) => field === "after")) return [];
  const message = await spec.cursorFault(after);
  return message === undefined ? [] : [{ field: "after", message }];
}

const COMMON_PROBLEMS: readonly ProblemCode[] = [
  "validation_error",
  "unauthorized",
  "forbidden",
  "rate_limited",
  "internal_error",
  "unavailable",
];
const BODY_PROBLEMS: readonly ProblemCode[] = [
  "malformed_json",
  "request_timeout",
  "payload_too_large",
  "unsupported_media_type",
];

function openapiSchema(spec: Endpoint): object {
  const codes = [
    ...COMMON_PROBLEMS,
    ...(spec.body || mayHaveBody(spec) ? BODY_PROBLEMS : []),
    ...(spec.problems ?? []),
  ];
  const response: Record<string, object> = {};
  for (const [status, content] of Object.entries(spec.responses)) response[status] = responseContent(content);
  for (const code of codes.sort((a, b) => PROBLEMS[a].status - PROBLEMS[b].status)) {
    const { status, meaning } = PROBLEMS[code];
    const above = response[status] as { description: string } | undefined;
    const description = `${above ? `${above.description}\n\n` : ""}\`${code}\`: ${meaning}`;
    response[status] = { description, content: { [JSON_TYPE]: { schema: errorSchema } } };
  }
  return {
    operationId: spec.operationId,
    tags: [spec.tag],
    summary: spec.summary,
    description: [spec.description, scopesText(spec.scopes)].filter((part) => part !== undefined).join("\n\n"),
    security: spec.keyInPath || spec.authentication ? [] : [{ key: [...spec.scopes] }],
    ...(spec.query && { querystring: spec.query }),
    ...(spec.params && { params: spec.params }),
    ...(spec.requestHeaders && { headers: spec.requestHeaders }),
    ...(spec.body && { body: spec.body, consumes: spec.bodyTypes ?? [JSON_TYPE] }),
    response,
  };
}

/** Undefined for a call without fixed scopes, whose own description names them. */
function scopesText(scopes: readonly Scope[]): string | undefined {
  return scopes.length === 0 ? undefined : `Scope: ${scopes.map((scope) => `\`${scope}\``).join(" and ")}.`;
}

function responseContent(response: ResponseSchema): object {
  if ("content" in response) {
    const content = Object.entries(response.content).map(([type, schema]) => [type, { schema }]);
    return { description: response.description, content: Object.fromEntries(content) as object };
  }
  if ("bare" in response)
    return { description: response.description, content: { [JSON_TYPE]: { schema: response.bare } } };
  const schema = response.paginated
    ? z.object({ data: response.data, meta: metaSchema, pagination: paginationSchema })
    : z.object({ data: response.data, meta: metaSchema });
  return { description: response.description, content: { [JSON_TYPE]: { schema } } };
}
