import type { FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import { z } from "zod";
import { formatTime } from "../lib/time.ts";
import { StoreUnavailable, type MissingDay, type Store } from "../store/store.ts";
import { data, send } from "./endpoint.ts";
import { errorSchema, metaSchema, Problem, PROBLEMS } from "./problems.ts";

// What those who run the service ask: is it alive, can it work, how is it doing. No key, no limits.

const READY_RETRY_SECONDS = 5;

const aliveSchema = z.object({ data: z.object({ status: z.literal("alive") }), meta: metaSchema });
const readySchema = z.object({
  data: z.object({
    status: z.literal("ready"),
    detection: z.object({
      status: z.enum(["running", "warming_up"]).describe("warming_up: rules are being told what they had counted"),
      lag_seconds: z.number().describe("how long the oldest event that no rule has looked at has been waiting"),
    }),
    storage: z.object({
      status: z.enum(["complete", "incomplete"]),
      messages: z.array(z.string()).describe("what is missing, in words"),
    }),
    retention: z.object({
      status: z.enum(["running", "paused"]).describe("paused: nothing is removed until it is confirmed"),
      messages: z.array(z.string()).describe("what is held back, and why"),
    }),
  }),
  meta: metaSchema,
});

const MESSAGES_MAX = 20;

function retentionView({ isPaused, messages }: RetentionStatus) {
  return { status: isPaused ? "paused" : "running", messages };
}

function missingText({ kind, day, rows }: MissingDay): string {
  return `${rows} ${kind} of ${formatTime(day).slice(0, 10)} are missing: the file of that day was removed, emptied or damaged`;
}

/** How far detection has come. */
export interface DetectionStatus {
  readonly lagMs: number;
  readonly isReady: boolean;
}

/** Whether retention waits for a confirmation, and why. */
export interface RetentionStatus {
  readonly isPaused: boolean;
  readonly messages: readonly string[];
}

export interface StatusOptions {
  readonly store: Store;
  readonly retention: { readonly status: RetentionStatus };
  readonly detection: DetectionStatus;
  readonly openFiles: { readonly isExhausted: boolean };
  readonly registry: Registry;
  readonly now: () => number;
}

export function addStatus(app: FastifyInstance, options: StatusOptions): void {
  const { store, detection, retention, openFiles, registry, now } = options;
  app.get(
    "/healthz",
    {
      schema: {
        operationId: "health",
        tags: ["Service"],
        summary: "Is the process alive?",
        security: [],
        response: {
          200: { description: "it is", content: { "application/json": { schema: aliveSchema } } },
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
        summary: "Does the store answer, and how far has detection come?",
        security: [],
        response: {
          200: { description: "it does", content: { "application/json": { schema: readySchema } } },
          503: {
            description: `it does not, takes no events, or the service can open no more files\n\n\`unavailable\`: ${PROBLEMS.unavailable.meaning}`,
            content: { "application/json": { schema: errorSchema } },
          },
        },
      },
    },
    async (request, reply) => {
      const headers = { "Retry-After": String(READY_RETRY_SECONDS) };
      if (openFiles.isExhausted) {
        throw new Problem("unavailable", "the service can open no more files and connections", { headers });
      }
      try {
        await store.check();
      } catch (error) {
        // The reason may name files of the machine: it belongs in the log, not in the answer.
        const isGone = error instanceof StoreUnavailable && error.reason === "file_gone";
        throw new Problem("unavailable", isGone ? error.message : "the store does not answer", {
          headers,
          cause: error,
        });
      }
      const { lagMs, isReady } = detection;
      const status = { status: isReady ? "running" : "warming_up", lag_seconds: lagMs / 1000 };
      const messages = (["events", "flows"] as const).flatMap((kind) => store.missing(kind).map(missingText));
      const storage = {
        status: messages.length === 0 ? "complete" : "incomplete",
        messages: messages.slice(0, MESSAGES_MAX),
      };
      return send(
        request,
        reply,
        data({ status: "ready", detection: status, storage, retention: retentionView(retention.status) }),
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
        summary: "Figures for Prometheus",
        security: [],
        response: { 200: { description: "in the text format", content: { "text/plain": { schema: z.string() } } } },
      },
    },
    async (_request, reply) => reply.type(registry.contentType).send(await registry.metrics()),
  );
}
