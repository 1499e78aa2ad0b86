import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { FAULTS_MAX, faultsOf, formatPath, joinFaults, WITH_NAMES, type Fault } from "../lib/fault.ts";
import { formatTime } from "../lib/time.ts";
import type { ApiKey, Scope } from "../model/key.ts";
import { PER_PAGE_DEFAULT, PER_PAGE_MAX } from "../model/page.ts";
import { BODY_DEPTH_MAX, JSON_TYPE, readJson } from "./body.ts";
import type { Bodies, Body as RequestBody, BodyRules } from "./body.ts";
import type { HeaderName } from "./headers.ts";
import type { IncompleteDays } from "./incomplete.ts";
import { invalid, metaSchema, PROBLEMS, errorSchema, type ProblemCode } from "./problems.ts";
import { readableQuery } from "./query.ts";
import { ownersOf, takeRoom, type Room } from "./room.ts";

// One shape for every call: what it takes, what it needs, what it answers. From it come the checks, the
// envelope and the OpenAPI document.

declare global {
  interface JSON {
    rawJSON(text: string): unknown;
  }
}

declare module "fastify" {
  interface FastifyRequest {
    /** The valid key that the request carries. */
    apiKey: ApiKey | null;
  }
  interface FastifyContextConfig {
    /** What a key needs for the route; a route without is open to anyone and outside the limits. */
    scopes?: readonly Scope[];
    /** The key is the parameter `token` of the path. */
    keyInPath?: boolean;
  }
}

export type Answer =
  | {
      readonly kind: "data";
      readonly status: number;
      /** The JSON text of `data`. */
      readonly text: string;
      readonly pagination?: Pagination;
      readonly headers?: Readonly<Record<string, string>>;
      readonly incomplete?: IncompleteDays;
    }
  /** JSON text that is the whole body. */
  | { readonly kind: "bare"; readonly text: string; readonly incomplete?: IncompleteDays }
  | { readonly kind: "stream"; readonly stream: Readable; readonly headers: Readonly<Record<string, string>> };

const paginationSchema = z
  .object({
    total: z.int().describe("all matching items"),
    page: z.int(),
    per_page: z.int(),
    total_pages: z.int(),
    next_cursor: z.string().nullable().optional().describe("in cursor mode: what to send as after; null at the end"),
  })
  .meta({ id: "Pagination" });
export type Pagination = z.infer<typeof paginationSchema>;

export function data(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return { kind: "data", status, text: JSON.stringify(value), headers };
}

/** Data that is JSON text already: what is stored is sent without being read. */
export function dataText(text: string, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return { kind: "data", status, text, headers };
}

export function list(items: readonly string[], pagination: Pagination): Answer {
  return { kind: "data", status: 200, text: `[${items.join(",")}]`, pagination };
}

/** An answer without an envelope: the Flows calls have none. Integers beyond 2^53 keep every digit. */
export function bare(value: unknown): Answer {
  return { kind: "bare", text: JSON.stringify(value) };
}

interface Call<Query, Params, Body> {
  readonly query: Query;
  readonly params: Params;
  readonly body: Body;
  readonly key: ApiKey;
  readonly request: FastifyRequest;
  /** For a call that reads its body by itself. */
  readBody(rules: BodyRules): Promise<RequestBody | undefined>;
  /** What is wrong with the rest of the request; for a call that refuses it together with its body, else empty. */
  readonly faults: readonly Fault[];
}

type Shape = z.ZodType<object>;
type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** What an answer holds in the OpenAPI document: the schema of `data`, of a bare body, or of other content by media type. */
type AnswerSchema =
  | { readonly about: string; readonly bare: z.ZodType; readonly example?: unknown }
  | { readonly about: string; readonly data: z.ZodType; readonly paginated?: true; readonly example?: unknown }
  | { readonly about: string; readonly content: Readonly<Record<string, z.ZodType>> };

export interface Endpoint<
  Query extends Shape | undefined = Shape | undefined,
  Params extends Shape | undefined = Shape | undefined,
  Body extends z.ZodType | undefined = z.ZodType | undefined,
> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: `/${string}`;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly about?: string;
  readonly scopes: readonly Scope[];
  /** The key is the parameter `token` of the path: for those who cannot send a header. */
  readonly keyInPath?: true;
  readonly query?: Query;
  readonly params?: Params;
  readonly body?: Body;
  /** Throws where no body, however right, would be taken: before it is read. */
  readonly refuse?: (params: Output<Params>) => void;
  /**
   * What is wrong with the body beyond what its schema can know, told together with that. It meets things of any type, and
   * where the schema has found a fault already nothing is added.
   */
  readonly beyond?: (input: unknown, params: Output<Params>) => readonly Fault[];
  /** The body may be left out: every field of it is optional. */
  readonly bodyOptional?: true;
  /** The handler reads the body by itself; the schema only documents it, for these media types. */
  readonly bodyTypes?: readonly string[];
  /** What is wrong with the id that a list is to go on below: asked where something else is wrong, to tell both. */
  readonly cursorFault?: (id: string) => Promise<string | undefined>;
  /** The handler is called with the faults of the query too, and refuses them together with those of the body. */
  readonly refusesFaults?: true;
  readonly requestHeaders?: z.ZodType;
  /** A body that the call takes. */
  readonly example?: unknown;
  readonly answers: Readonly<Record<number, AnswerSchema>>;
  /** Beyond those that any call may answer with. */
  readonly problems?: readonly ProblemCode[];
  /** By status: what is sent beside the body, beyond what every answer has. */
  readonly headers?: Readonly<Record<number, readonly HeaderName[]>>;
  handle(call: Call<Output<Query>, Output<Params>, Output<Body>>): Promise<Answer> | Answer;
}

/** Only here so that `handle` gets its types from the schemas beside it. */
export function endpoint<
  Query extends Shape | undefined = undefined,
  Params extends Shape | undefined = undefined,
  Body extends z.ZodType | undefined = undefined,
>(spec: Endpoint<Query, Params, Body>): Endpoint {
  return spec as unknown as Endpoint;
}

export interface EndpointOptions {
  readonly bodyBytesMax: number;
  readonly bodies: Bodies;
  readonly answerRoom: Room;
  readonly now: () => number;
}

export function addEndpoint(app: FastifyInstance, spec: Endpoint, options: EndpointOptions): void {
  const query = spec.query ?? z.strictObject({});
  const body = spec.body ?? (mayHaveBody(spec) ? z.strictObject({}) : undefined);
  // Who sends nothing need not say what kind of nothing it is.
  const rules = { bytesMax: options.bodyBytesMax, types: [JSON_TYPE], ...(!spec.body && { assumed: JSON_TYPE }) };
  app.route({
    method: spec.method,
    url: spec.path,
    config: { scopes: spec.scopes, keyInPath: spec.keyInPath === true },
    schema: openapiOf(spec),
    handler: async (request, reply) => {
      const owners = ownersOf(request);
      const reader = options.bodies.reader(request.raw, owners);
      try {
        const faults: Fault[] = [];
        const params = spec.params ? check(spec.params, request.params, "path", faults) : undefined;
        if (faults.length === 0) spec.refuse?.(params as never);
        const isOptional = spec.bodyOptional === true || !spec.body;
        const beyond = (input: unknown) => spec.beyond?.(input, params as never) ?? [];
        const call = {
          key: request.apiKey,
          request,
          readBody: (rules: BodyRules) => reader.read(rules),
          faults,
          query: check(query, readableQuery(request, faults), "query", faults),
          params,
          body:
            body && !spec.bodyTypes
              ? checkBody(body, await reader.read(rules), faults, { isOptional, beyond })
              : undefined,
        };
        if (faults.length > 0 && !spec.refusesFaults) {
          throw invalid([...faults, ...(await cursorFaults(spec, request, faults))]);
        }
        const answer = await spec.handle(call as never);
        // What has been done must be told; only a question can be asked again.
        const mayRefuse = spec.scopes.every((scope) => scope.endsWith(":read"));
        if (answer.kind !== "stream") {
          takeRoom(options.answerRoom, answer.text.length, reply.raw, { owners, mayRefuse });
        }
        return send(request, reply, answer, options.now);
      } finally {
        reader.release();
      }
    },
  });
}

/** A call that takes none still says so to whoever sends one: a field that does nothing is a mistake. */
function mayHaveBody({ method }: Endpoint): boolean {
  return method !== "GET";
}

/** What a schema makes of a body, whose faults are added: those of its text and those of what it says. */
export function checkBody<Body extends z.ZodType>(
  schema: Body,
  body: RequestBody | undefined,
  faults: Fault[],
  { isOptional = false, beyond }: { isOptional?: boolean; beyond?: (input: unknown) => readonly Fault[] } = {},
): z.output<Body> | undefined {
  if (!body && !isOptional) {
    faults.push({ field: "body", message: "is required" });
    return undefined;
  }
  const read = body ? readJson(body.bytes, { depthMax: BODY_DEPTH_MAX }) : { value: {}, faults: [] };
  const found: Fault[] = [];
  const value = check(schema, read.value, "", found);
  const all = joinFaults(joinFaults([...read.faults, ...protoFaults(read.value)], found), beyond?.(read.value) ?? []);
  for (const { field, message } of all) faults.push({ field: field || "body", message });
  return value as z.output<Body> | undefined;
}

/** Schemas pass over a key named `__proto__` in silence, and what is not known must be said. */
function protoFaults(value: unknown): Fault[] {
  const faults: Fault[] = [];
  const path: PropertyKey[] = [];
  const walk = (node: object): void => {
    for (const key in node) {
      if (faults.length > FAULTS_MAX) return;
      const child = (node as Record<string, unknown>)[key];
      path.push(Array.isArray(node) ? Number(key) : key);
      if (key === "__proto__") faults.push({ field: formatPath(path), message: "is not known here" });
      else if (typeof child === "object" && child !== null) walk(child);
      path.pop();
    }
  };
  if (typeof value === "object" && value !== null) walk(value);
  return faults;
}

/** `whole` names the input where a fault has no place in it. */
function check(schema: z.ZodType, input: unknown, whole: string, faults: Fault[]): unknown {
  const parsed = schema.safeParse(input, { ...WITH_NAMES, reportInput: true });
  if (parsed.success) return parsed.data;
  for (const { field, message } of faultsOf(parsed.error)) faults.push({ field: field || whole, message });
  return undefined;
}

async function cursorFaults(spec: Endpoint, request: FastifyRequest, faults: readonly Fault[]): Promise<Fault[]> {
  const { after } = request.query as Record<string, unknown>;
  if (!spec.cursorFault || typeof after !== "string" || faults.some(({ field }) => field === "after")) return [];
  const message = await spec.cursorFault(after);
  return message === undefined ? [] : [{ field: "after", message }];
}

export function metaOf(request: FastifyRequest, now: () => number): z.infer<typeof metaSchema> {
  return { request_id: request.id, timestamp: formatTime(now()) };
}

export function send(request: FastifyRequest, reply: FastifyReply, answer: Answer, now: () => number): FastifyReply {
  if (answer.kind === "stream") return reply.code(200).headers(answer.headers).send(answer.stream);
  if (answer.incomplete) reply.header("X-Tocsin-Incomplete", answer.incomplete.header);
  if (answer.kind === "bare") return reply.code(200).type("application/json; charset=utf-8").send(answer.text);
  const incomplete = answer.incomplete ? `,"incomplete":${JSON.stringify(answer.incomplete.days)}` : "";
  const pagination = answer.pagination ? `,"pagination":${JSON.stringify(answer.pagination)}` : "";
  return reply
    .code(answer.status)
    .headers(answer.headers ?? {})
    .type("application/json; charset=utf-8")
    .send(
      `{"data":${answer.text},"meta":{"request_id":"${request.id}","timestamp":"${formatTime(now())}"${incomplete}}${pagination}}`,
    );
}

/** A whole number in a query: refused in words, handed on as a number. */
export function integerParameter(min: number, max: number, about: string) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .transform((text, context) => {
      const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .optional()
    .describe(about)
    .meta({ type: "integer", minimum: min, maximum: max });
}

/** One of two words in a query, handed on as what it means. */
export function booleanParameter() {
  return z
    .string()
    .transform((text, context) => {
      if (text === "true" || text === "false") return text === "true";
      context.addIssue({ code: "custom", message: "must be one of true, false" });
      return z.NEVER;
    })
    .optional()
    .meta({ type: "boolean" });
}

/** A page past the end is empty, however far past it. */
const PAGE_MAX = Number.MAX_SAFE_INTEGER;
export const pageParameter = integerParameter(1, PAGE_MAX, "page number, from 1 (default)");
export const perPageParameter = integerParameter(1, PER_PAGE_MAX, `items on a page, default ${PER_PAGE_DEFAULT}`);

export function paginate(total: number, page: number, perPage: number): Pagination {
  return { total, page, per_page: perPage, total_pages: Math.ceil(total / perPage) };
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

function openapiOf(spec: Endpoint): object {
  const codes = [
    ...COMMON_PROBLEMS,
    ...(spec.body || mayHaveBody(spec) ? BODY_PROBLEMS : []),
    ...(spec.problems ?? []),
  ];
  const response: Record<string, object> = {};
  for (const [status, answer] of Object.entries(spec.answers)) response[status] = contentOf(answer);
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
    description: [spec.about, scopesText(spec.scopes)].filter((part) => part !== undefined).join("\n\n"),
    security: spec.keyInPath ? [] : [{ key: [...spec.scopes] }],
    ...(spec.query && { querystring: spec.query }),
    ...(spec.params && { params: spec.params }),
    ...(spec.requestHeaders && { headers: spec.requestHeaders }),
    ...(spec.body && { body: spec.body, consumes: spec.bodyTypes ?? [JSON_TYPE] }),
    response,
  };
}

/** A call that needs a key and no scope in particular says so itself. */
function scopesText(scopes: readonly Scope[]): string | undefined {
  return scopes.length === 0 ? undefined : `Scope: ${scopes.map((scope) => `\`${scope}\``).join(" and ")}.`;
}

function contentOf(answer: AnswerSchema): object {
  if ("content" in answer) {
    const content = Object.entries(answer.content).map(([type, schema]) => [type, { schema }]);
    return { description: answer.about, content: Object.fromEntries(content) as object };
  }
  if ("bare" in answer) return { description: answer.about, content: { [JSON_TYPE]: { schema: answer.bare } } };
  const schema = answer.paginated
    ? z.object({ data: answer.data, meta: metaSchema, pagination: paginationSchema })
    : z.object({ data: answer.data, meta: metaSchema });
  return { description: answer.about, content: { [JSON_TYPE]: { schema } } };
}
