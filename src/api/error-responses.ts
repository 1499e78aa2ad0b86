import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { methodTable, type Route } from "./allowed-methods.ts";
import { ClientDisconnected } from "./body.ts";
import { Problem, problemBody, toProblem } from "./problems.ts";
import { metaOf } from "./response.ts";

export function pathNotFound(): Problem {
  return new Problem("not_found", "this path does not exist");
}

/** Sends every error in the error body, including those of the framework. */
export function addErrorHandlers(app: FastifyInstance, routes: readonly Route[], now: () => number): void {
  const respond = (request: FastifyRequest, reply: FastifyReply, problem: Problem) =>
    reply
      .code(problem.status)
      .headers(problem.headers)
      .type("application/json; charset=utf-8")
      .send(JSON.stringify(problemBody(problem, metaOf(request, now))));

  app.setErrorHandler((error, request, reply) => {
    if (error instanceof ClientDisconnected) {
      // The client is gone; this only ends the request.
      reply.raw.destroy();
      return reply.hijack();
    }
    const problem = toProblem(error);
    if (problem) {
      if (problem.cause !== undefined && problem.status >= 500)
        request.log.warn({ request: request.id, err: problem.cause }, problem.message);
      return respond(request, reply, problem);
    }
    request.log.error({ request: request.id, err: error }, "request failed");
    return respond(
      request,
      reply,
      new Problem("internal_error", "internal failure; see the log of the service for this request id"),
    );
  });

  const allowedAt = methodTable(routes);
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?", 1)[0]!;
    const allowed = allowedAt(path);
    if (allowed.length === 0) return respond(request, reply, pathNotFound());
    const headers = { Allow: allowed.join(", ") };
    const message = `${request.method} is not supported for this path; use ${headers.Allow}`;
    return respond(request, reply, new Problem("method_not_allowed", message, { headers }));
  });
}
