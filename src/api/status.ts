import type { FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import { z } from "zod";
import type { Store } from "../store/store.ts";
import { data, send } from "./endpoint.ts";
import { errorSchema, metaSchema, Problem } from "./problems.ts";

// What those who run the service ask: is it alive, can it work, how is it doing. No key, no limits.

const READY_RETRY_SECONDS = 5;

const statusSchema = (word: string) => z.object({ data: z.object({ status: z.literal(word) }), meta: metaSchema });

export interface StatusOptions {
  readonly store: Store;
  readonly registry: Registry;
  readonly now: () => number;
}

export function addStatus(app: FastifyInstance, { store, registry, now }: StatusOptions): void {
  app.get(
    "/healthz",
    {
      schema: {
        operationId: "health",
        tags: ["Service"],
        summary: "Is the process alive?",
        security: [],
        response: {
          200: { description: "it is", content: { "application/json": { schema: statusSchema("alive") } } },
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
        summary: "Does the store answer?",
        security: [],
        response: {
          200: { description: "it does", content: { "application/json": { schema: statusSchema("ready") } } },
          503: { description: "it does not", content: { "application/json": { schema: errorSchema } } },
        },
      },
    },
    async (request, reply) => {
      try {
        await store.check();
      } catch (error) {
        // The reason may name files of the machine: it belongs in the log, not in the answer.
        const headers = { "Retry-After": String(READY_RETRY_SECONDS) };
        throw new Problem("unavailable", "the store does not answer", { headers, cause: error });
      }
      return send(request, reply, data({ status: "ready" }), now);
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
