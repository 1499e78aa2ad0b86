import type { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import type { metaSchema } from "./problems.ts";

// Responses of endpoints, and how they are sent: with an envelope, bare, as a page or as a stream.

/** Days in the requested range whose file was lost or damaged. */
export interface IncompleteDays {
  /** The value of the header: `2026-11-09 (848), 2026-11-10 (3)`. */
  readonly header: string;
  /** The value of `meta.incomplete` in responses with an envelope. */
  readonly days: readonly { readonly day: string; readonly missing: number }[];
}

/** A hint about a request that was answered all the same. */
export interface ResponseWarning {
  readonly field: string;
  readonly message: string;
  readonly suggestion: string | null;
}

export type ApiResponse =
  | {
      readonly kind: "data";
      readonly status: number;
      /** The JSON text of `data`. */
      readonly text: string;
      readonly pagination?: Pagination;
      readonly headers?: Readonly<Record<string, string>>;
      readonly incomplete?: IncompleteDays;
      readonly warnings?: readonly ResponseWarning[];
      readonly undoId?: string;
    }
  /** The text is the whole JSON body. */
  | { readonly kind: "bare"; readonly text: string; readonly incomplete?: IncompleteDays }
  /** The text is a whole HTML page. */
  | {
      readonly kind: "page";
      readonly text: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly incomplete?: IncompleteDays;
    }
  | { readonly kind: "stream"; readonly stream: Readable; readonly headers: Readonly<Record<string, string>> };

export const paginationSchema = z
  .object({
    total: z.int().describe("all matching items"),
    page: z.int(),
    per_page: z.int(),
    total_pages: z.int(),
    next_cursor: z
      .string()
      .nullable()
      .optional()
      .describe("cursor mode only: the value for `after` to get the next page; null on the last page"),
    events_total: z
      .int()
      .optional()
      .describe("events of an alert only: all of them; `total` has those that can be listed"),
  })
  .meta({ id: "Pagination" });
export type Pagination = z.infer<typeof paginationSchema>;

export function data(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): ApiResponse {
  return { kind: "data", status, text: JSON.stringify(value), headers };
}

/** Data that is JSON text already: stored text is sent without parsing it. */
export function dataText(text: string, status = 200, headers: Readonly<Record<string, string>> = {}): ApiResponse {
  return { kind: "data", status, text, headers };
}

export function withWarnings(response: ApiResponse, warnings: readonly ResponseWarning[]): ApiResponse {
  return response.kind === "data" && warnings.length > 0 ? { ...response, warnings } : response;
}

/** `undoId` null: nothing was changed that can be taken back. */
export function withUndo(response: ApiResponse, undoId: string | null): ApiResponse {
  return response.kind === "data" && undoId !== null ? { ...response, undoId } : response;
}

export function listResponse(items: readonly string[], pagination: Pagination): ApiResponse {
  return { kind: "data", status: 200, text: `[${items.join(",")}]`, pagination };
}

/** A response without an envelope, as the Flows calls return. Integers beyond 2^53 keep every digit. */
export function bare(value: unknown): ApiResponse {
  return { kind: "bare", text: JSON.stringify(value) };
}

/** A page for people; the headers have its own policy. */
export function page(text: string, headers: Readonly<Record<string, string>>): ApiResponse {
  return { kind: "page", text, headers };
}

export function paginate(total: number, page: number, perPage: number): Pagination {
  return { total, page, per_page: perPage, total_pages: Math.ceil(total / perPage) };
}

export function metaOf(request: FastifyRequest, now: () => number): z.infer<typeof metaSchema> {
  return { request_id: request.id, timestamp: formatTime(now()) };
}

export function send(
  request: FastifyRequest,
  reply: FastifyReply,
  response: ApiResponse,
  now: () => number,
): FastifyReply {
  if (response.kind === "stream") return reply.code(200).headers(response.headers).send(response.stream);
  if (response.incomplete) reply.header("X-Tocsin-Incomplete", response.incomplete.header);
  if (response.kind === "page") {
    return reply.code(200).headers(response.headers).type("text/html; charset=utf-8").send(response.text);
  }
  if (response.kind === "bare") return reply.code(200).type("application/json; charset=utf-8").send(response.text);
  const incomplete = response.incomplete ? `,"incomplete":${JSON.stringify(response.incomplete.days)}` : "";
  const warnings = response.warnings ? `,"warnings":${JSON.stringify(response.warnings)}` : "";
  const undo = response.undoId === undefined ? "" : `,"undo_id":${JSON.stringify(response.undoId)}`;
  const pagination = response.pagination ? `,"pagination":${JSON.stringify(response.pagination)}` : "";
  return reply
    .code(response.status)
    .headers(response.headers ?? {})
    .type("application/json; charset=utf-8")
    .send(
      `{"data":${response.text},"meta":{"request_id":"${request.id}","timestamp":"${formatTime(now())}"${incomplete}${warnings}${undo}}${pagination}}`,
    );
}
