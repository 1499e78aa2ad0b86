import { z } from "zod";
import { TransitionRefused } from "../alerts/alerts.ts";
import { FAULTS_MAX, type Fault } from "../lib/fault.ts";
import { RuleRefused } from "../detection/rules/rulebook.ts";
import { ListRefused } from "../enrichment/lists/managed-lists.ts";
import { RuleConflict } from "../store/ports/rule-store.ts";
import { QueryRefused, StoreUnavailable } from "../store/ports/store-errors.ts";

/** All errors. The responses, the OpenAPI document and the docs are generated from this table. */
export const PROBLEMS = {
  validation_error: {
    status: 400,
    meaning: "the request is not valid; `details` lists each fault, up to 100",
  },
  malformed_json: { status: 400, meaning: "the body is not JSON" },
  unauthorized: {
    status: 401,
    meaning: "the API key is missing, invalid, expired or revoked, or the session has ended",
  },
  forbidden: {
    status: 403,
    meaning:
      "the key lacks a scope or another permission, or a change with a session's cookie does not come from a page of this service; the message names it",
  },
  builtin_rule: { status: 403, meaning: "a built-in rule can only be enabled, disabled and given exceptions" },
  not_found: { status: 404, meaning: "the path or the id does not exist" },
  method_not_allowed: {
    status: 405,
    meaning: "the path does not support this method; `Allow` lists the methods it supports",
  },
  request_timeout: { status: 408, meaning: "the request arrived too slowly; the connection is closed" },
  conflict: {
    status: 409,
    meaning:
      "the state of the resource does not allow this; the message names the state, and `details` the field whose value is already taken",
  },
  payload_too_large: {
    status: 413,
    meaning: "the body is larger than allowed; a compressed body counts after decompression",
  },
  unsupported_media_type: { status: 415, meaning: "the content type or encoding of the body is not supported" },
  rate_limited: { status: 429, meaning: "too many requests; `Retry-After` is the number of seconds to wait" },
  internal_error: { status: 500, meaning: "internal failure; see the log of the service for the request id" },
  unavailable: {
    status: 503,
    meaning: "the service is overloaded or its store is not available; `Retry-After` is the number of seconds to wait",
  },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

export interface ProblemOptions {
  readonly details?: readonly Fault[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** A refused request. It can be thrown anywhere in the handling of a request. */
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

/** A request with faults, which are reported all at once up to FAULTS_MAX. */
export function invalid(faults: readonly Fault[]): Problem {
  const [first] = faults;
  const details = faults.slice(0, FAULTS_MAX);
  if (faults.length > FAULTS_MAX) {
    const message = `the request has more than ${FAULTS_MAX} faults; details lists the first ones`;
    return new Problem("validation_error", message, { details });
  }
  const message =
    faults.length === 1 && first
      ? `${first.field}: ${first.message}`
      : `the request has ${faults.length} faults; see details`;
  return new Problem("validation_error", message, { details });
}

const RULE_REFUSALS = {
  not_found: "not_found",
  builtin: "builtin_rule",
  limit: "conflict",
} as const satisfies Record<RuleRefused["kind"], ProblemCode>;

const LIST_REFUSALS = {
  not_found: "not_found",
  taken: "conflict",
  limit: "conflict",
} as const satisfies Record<ListRefused["kind"], ProblemCode>;

/** Converts an error to a problem; undefined for an internal error. */
export function toProblem(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  if (error instanceof TransitionRefused) return new Problem(error.kind, error.message);
  if (error instanceof RuleConflict) {
    const details =
      error.kind === "name_taken" ? [{ field: "name", message: "is already the name of another rule" }] : [];
    return new Problem("conflict", error.message, { details });
  }
  if (error instanceof RuleRefused) return new Problem(RULE_REFUSALS[error.kind], error.message);
  if (error instanceof ListRefused) return new Problem(LIST_REFUSALS[error.kind], error.message);
  if (error instanceof QueryRefused) return invalid([{ field: error.field, message: error.message }]);
  if (error instanceof StoreUnavailable) {
    return new Problem("unavailable", error.message, {
      headers: { "Retry-After": String(error.retryAfterSeconds) },
      cause: error,
    });
  }
  return toFrameworkProblem(error);
}

/** Converts refusals of the HTTP framework, which happen before our handlers run. */
function toFrameworkProblem(error: unknown): Problem | undefined {
  const status = error instanceof Error && "statusCode" in error ? error.statusCode : undefined;
  if (typeof status !== "number" || status < 400 || status > 499) return undefined;
  const known = Object.entries(PROBLEMS).find(([, entry]) => entry.status === status);
  if (status === PROBLEMS.unsupported_media_type.status) {
    const message = "the content type is not valid; send one such as application/json";
    return new Problem("unsupported_media_type", message, { cause: error });
  }
  return new Problem((known?.[0] ?? "validation_error") as ProblemCode, (error as Error).message, { cause: error });
}

export const metaSchema = z
  .object({
    request_id: z.string().describe("same as the header `X-Request-Id`; also in the log"),
    timestamp: z.string().describe("ISO 8601, UTC"),
    incomplete: z
      .array(z.object({ day: z.string().describe("UTC day: 2026-11-09"), missing: z.int() }))
      .optional()
      .describe(
        "present only if the response is incomplete: the days in its range whose file was lost or damaged, and the number of missing events",
      ),
    warnings: z
      .array(
        z
          .object({
            field: z.string().describe("path in the request: query.bool.must[0].field"),
            message: z.string(),
            suggestion: z.string().nullable().describe("the most similar name that would be known"),
          })
          .meta({ id: "Warning" }),
      )
      .optional()
      .describe("present only if the request was answered but is probably not what its author meant"),
    undo_id: z
      .string()
      .optional()
      .describe(
        "present only if the request changed a single alert: takes the change back, see `/v1/alerts/bulk/undo`",
      ),
  })
  .meta({ id: "Meta" });

export const errorSchema = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
      message: z.string(),
      details: z.array(
        z.object({
          field: z.string().describe("path of the faulty value, such as query.bool.must[0].regex"),
          message: z.string(),
        }),
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

export function problemBody(problem: Problem, meta: z.infer<typeof metaSchema>): z.infer<typeof errorSchema> {
  return {
    error: { code: problem.code, message: problem.message, details: problem.details.map((fault) => ({ ...fault })) },
    meta,
  };
}
