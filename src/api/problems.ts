import { z } from "zod";
import { AlertRefused } from "../alerts/alerts.ts";
import { FAULTS_MAX, type Fault } from "../lib/fault.ts";
import { RuleRefused } from "../detection/rulebook.ts";
import { QuestionRefused, RuleConflict, StoreUnavailable } from "../store/store.ts";

/** Every error there is. The answers, the OpenAPI document and the docs read this table. */
export const PROBLEMS = {
  validation_error: {
    status: 400,
    meaning: "something in the request is not as it must be; details names each place, up to 100 of them",
  },
  malformed_json: { status: 400, meaning: "the body is not JSON" },
  unauthorized: { status: 401, meaning: "no API key, or one that is not valid (any more)" },
  forbidden: { status: 403, meaning: "the key lacks a scope or another right; the message names it" },
  builtin_rule: { status: 403, meaning: "a built-in rule can be enabled, disabled and given exceptions, nothing else" },
  not_found: { status: 404, meaning: "there is nothing at this path or under this id" },
  method_not_allowed: { status: 405, meaning: "the path exists, but not for this method; Allow lists those it has" },
  request_timeout: { status: 408, meaning: "the request arrived too slowly; the connection is closed" },
  conflict: {
    status: 409,
    meaning:
      "the state of the resource does not allow this; the message names the state, and details the field that is taken",
  },
  payload_too_large: { status: 413, meaning: "the body is larger than allowed, after decompression" },
  unsupported_media_type: { status: 415, meaning: "the body's content type or encoding is not one that is taken here" },
  rate_limited: { status: 429, meaning: "too many requests; Retry-After says in how many seconds to come back" },
  internal_error: { status: 500, meaning: "a fault of the service; its log tells more under the request id" },
  unavailable: { status: 503, meaning: "the store is down or overloaded; Retry-After says when to try again" },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

export interface ProblemOptions {
  readonly details?: readonly Fault[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A refused request, thrown from wherever it is refused. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly details: readonly Fault[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ProblemCode, message: string, { details = [], headers = {}, cause }: ProblemOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "Problem";
    this.code = code;
    this.details = details;
    this.headers = headers;
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }
}

/** A request with faults, all of them at once, or as many as anyone reads. */
export function invalid(faults: readonly Fault[]): Problem {
  const [first] = faults;
  const details = faults.slice(0, FAULTS_MAX);
  if (faults.length > FAULTS_MAX) {
    const message = `more than ${FAULTS_MAX} faults, of which these are the first`;
    return new Problem("validation_error", message, { details });
  }
  const message = faults.length === 1 && first ? `${first.field}: ${first.message}` : `${faults.length} faults`;
  return new Problem("validation_error", message, { details });
}

const RULE_REFUSALS = {
  not_found: "not_found",
  builtin: "builtin_rule",
  limit: "conflict",
} as const satisfies Record<RuleRefused["kind"], ProblemCode>;

/** The problem that an error amounts to; undefined for a fault of ours. */
export function toProblem(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  if (error instanceof AlertRefused) return new Problem(error.kind, error.message);
  if (error instanceof RuleConflict) {
    const details = error.kind === "name_taken" ? [{ field: "name", message: "is the name of another rule" }] : [];
    return new Problem("conflict", error.message, { details });
  }
  if (error instanceof RuleRefused) return new Problem(RULE_REFUSALS[error.kind], error.message);
  if (error instanceof QuestionRefused) return invalid([{ field: error.field, message: error.message }]);
  if (error instanceof StoreUnavailable) {
    return new Problem("unavailable", error.message, {
      headers: { "Retry-After": String(error.retryAfterSeconds) },
      cause: error,
    });
  }
  return toFrameworkProblem(error);
}

/** The HTTP server's own refusals, for a request that did not get as far as our code. */
function toFrameworkProblem(error: unknown): Problem | undefined {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  if (typeof status !== "number" || status < 400 || status > 499) return undefined;
  const known = Object.entries(PROBLEMS).find(([, entry]) => entry.status === status);
  if (status === PROBLEMS.unsupported_media_type.status) {
    const message = "the content type is not one that can be read; send one such as application/json";
    return new Problem("unsupported_media_type", message, { cause: error });
  }
  return new Problem((known?.[0] ?? "validation_error") as ProblemCode, (error as Error).message, { cause: error });
}

export const metaSchema = z
  .object({
    request_id: z.string().describe("the same as in the header X-Request-Id and in the log"),
    timestamp: z.string().describe("ISO 8601, UTC"),
    incomplete: z
      .array(z.object({ day: z.string().describe("UTC day: 2026-11-09"), missing: z.int() }))
      .optional()
      .describe(
        "only where the answer leaves something out: days in its range whose file was lost or damaged, and how many of their events are missing",
      ),
  })
  .meta({ id: "Meta" });

export const errorSchema = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
      message: z.string(),
      details: z.array(
        z.object({ field: z.string().describe("a path: query.bool.must[0].regex"), message: z.string() }),
      ),
    }),
    meta: metaSchema,
  })
  .meta({
    id: "Error",
    examples: [
      {
        error: {
          code: "validation_error",
          message: "severity: must be one of critical, high, medium, low, info",
          details: [{ field: "severity", message: "must be one of critical, high, medium, low, info" }],
        },
        meta: { request_id: "req_019a84f2c0d17a3e8b5d4e6f7a8b9c0d", timestamp: "2026-11-15T08:30:00.000Z" },
      },
    ],
  });

/** The error body. */
export function problemBody(problem: Problem, meta: z.infer<typeof metaSchema>): z.infer<typeof errorSchema> {
  return {
    error: { code: problem.code, message: problem.message, details: problem.details.map((fault) => ({ ...fault })) },
    meta,
  };
}
