import type { FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import type { RetentionStatus } from "../model/retention-status.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { MissingDay, Store } from "../store/ports/store.ts";
import { data, send } from "./response.ts";
import { errorSchema, metaSchema, Problem, PROBLEMS } from "./problems.ts";

// Liveness, readiness and metrics, without a key and without rate limits.

const READY_RETRY_SECONDS = 5;

const aliveSchema = z.object({ data: z.object({ status: z.literal("alive") }), meta: metaSchema });
const readySchema = z.object({
  data: z.object({
    status: z.literal("ready"),
    detection: z.object({
      status: z.enum(["running", "warming_up"]).describe("warming_up: the counts of rules are being restored"),
      lag_seconds: z.number().describe("age of the oldest event that rules have not evaluated yet"),
    }),
    storage: z.object({
      status: z.enum(["complete", "incomplete"]),
      messages: z.array(z.string()).describe("descriptions of missing data"),
    }),
    retention: z.object({
      status: z.enum(["running", "paused"]).describe("paused: nothing is removed until an operator confirms it"),
      messages: z.array(z.string()).describe("descriptions of held-back removals"),
    }),
    roles: z
      .array(z.string())
      .describe("work that one node does at a time, and this node does now: all of it if there are no other nodes"),
  }),
  meta: metaSchema,
});

const MESSAGES_MAX = 20;

function retentionView({ isPaused, messages }: RetentionStatus) {
  return { status: isPaused ? "paused" : "running", messages };
}

/** The message of an error may contain names of files or hosts, which belong in the log, not in the response. */
function unreadyText(error: unknown): string {
  if (!(error instanceof StoreUnavailable)) return "the store does not respond";
  return error.reason === "file_gone" ? error.message : (error.summary ?? "the store does not respond");
}

function missingText({ kind, day, rows, why }: MissingDay): string {
  const date = formatTime(day).slice(0, 10);
  if (why !== undefined) return `the ${kind} of ${date} cannot be read: ${why}`;
  return `${rows} ${kind} of ${date} are missing: the file of that day was removed, emptied or damaged`;
}

/** Of detection, whichever node runs it. */
export interface DetectionState {
  status(): Promise<{ readonly lagMs: number; readonly isReady: boolean }>;
}

export interface StatusOptions {
  readonly store: Store;
  readonly retention: { status(): Promise<RetentionStatus> };
  readonly roles: { readonly held: readonly string[] };
  readonly detection: DetectionState;
  readonly fileDescriptors: { readonly isExhausted: boolean };
  readonly registry: Registry;
  readonly now: () => number;
}

export function addStatusRoutes(app: FastifyInstance, options: StatusOptions): void {
  const { store, detection, retention, roles, fileDescriptors, registry, now } = options;
  app.get(
    "/healthz",
    {
      schema: {
        operationId: "health",
        tags: ["Service"],
        summary: "Check whether the process is alive",
        security: [],
        response: {
          200: { description: "the process is alive", content: { "application/json": { schema: aliveSchema } } },
        },
      },
    },
    (request, reply) => send(request, reply, data({ status: "alive" }), now),
  );
  app.get(
    "/readyz",
    {
      schema: {
        operationId: "readiness",
        tags: ["Service"],
        summary: "Check whether the service is ready",
        security: [],
        response: {
          200: {
            description: "the store works; the state of detection, storage and retention",
            content: { "application/json": { schema: readySchema } },
          },
          503: {
            description: `the store does not work or accepts no events, or the service has no file descriptors left\n\n\`unavailable\`: ${PROBLEMS.unavailable.meaning}`,
            content: { "application/json": { schema: errorSchema } },
          },
        },
      },
    },
    async (request, reply) => {
      const headers = { "Retry-After": String(READY_RETRY_SECONDS) };
      if (fileDescriptors.isExhausted) {
        throw new Problem("unavailable", "the service has no file descriptors left for files and connections", {
          headers,
        });
      }
      try {
        await store.check();
      } catch (error) {
        throw new Problem("unavailable", unreadyText(error), {
          headers,
          cause: error,
        });
      }
      const { lagMs, isReady } = await detection.status();
      const status = { status: isReady ? "running" : "warming_up", lag_seconds: lagMs / 1000 };
      const missing = await Promise.all([store.missing("events"), store.missing("flows")]);
      const messages = missing.flat().map(missingText);
      const storage = {
        status: messages.length === 0 ? "complete" : "incomplete",
        messages: messages.slice(0, MESSAGES_MAX),
      };
      return send(
        request,
        reply,
        data({
          status: "ready",
          detection: status,
          storage,
          retention: retentionView(await retention.status()),
          roles: roles.held,
        }),
        now,
      );
    },
  );
  app.get(
    "/metrics",
    {
      schema: {
        operationId: "metrics",
        tags: ["Service"],
        summary: "Get Prometheus metrics",
        security: [],
        response: {
          200: { description: "metrics in the text format", content: { "text/plain": { schema: z.string() } } },
        },
      },
    },
    async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()),
  );
}
