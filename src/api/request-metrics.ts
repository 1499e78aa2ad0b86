import type { FastifyInstance } from "fastify";
import { Histogram, type Registry } from "prom-client";

const DURATION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Logs and measures each request, whether answered or aborted. */
export function addRequestMetrics(app: FastifyInstance, registry: Registry): void {
  const durations = new Histogram({
    name: "http_request_duration_seconds",
    help: "Time from the arrival of a request to the end of its response",
    labelNames: ["method", "route", "status"],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  });
  app.addHook("onRequest", (request, reply, done) => {
    const startedAt = performance.now();
    reply.raw.once("close", () => {
      const ms = performance.now() - startedAt;
      const route = request.routeOptions.url ?? (request.isConsole ? "console" : "unknown");
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
