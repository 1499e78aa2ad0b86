import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Registry } from "prom-client";
import { RequestBodies } from "./body.ts";
import { addEndpoint, endpoint } from "./endpoint.ts";
import { dataText } from "./response.ts";
import { toProblem } from "./problems.ts";
import { MemoryBudget } from "./memory-budget.ts";

// A server with large responses, and a budget for one and a half of them.

const MANY = 20_000_000;

let app: FastifyInstance;
let port: number;
/** Holds back the slow response. */
let late: PromiseWithResolvers<void>;
beforeEach(async () => {
  late = Promise.withResolvers();
  app = fastify();
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  app.setErrorHandler((error, _request, reply) => {
    const problem = toProblem(error)!;
    return reply.code(problem.status).headers(problem.headers).send(problem.message);
  });
  const bodies = new RequestBodies({ bytesMax: 1000, registry: new Registry() });
  const options = { bodyBytesMax: 1000, bodies, responseMemory: new MemoryBudget(1.5 * MANY), now: Date.now };
  const add = (path: `/${string}`, scope: "events:read" | "events:write", length: number, until?: Promise<void>) => {
    const about = { operationId: path, tag: "Service", summary: "x", responses: {} } as const;
    const handle = async () => {
      await until;
      return dataText(`"${"x".repeat(length)}"`);
    };
    addEndpoint(app, endpoint({ method: "GET", path, scopes: [scope], ...about, handle }), options);
  };
  add("/many", "events:read", MANY);
  add("/late", "events:read", MANY, late.promise);
  add("/done", "events:write", MANY);
  add("/few", "events:read", 1_000_000);
  await app.listen({ port: 0, host: "127.0.0.1" });
  port = (app.server.address() as AddressInfo).port;
});
afterEach(() => app.close());

const ask = async (path: string) => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`);
  return { status: answer.status, retryAfter: answer.headers.get("retry-after"), length: (await answer.text()).length };
};
/** Sends a request on its own connection. */
const begin = (path: string) => {
  const socket = connect(port, "127.0.0.1").pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
  return socket;
};

test("large responses in flight share one budget, which is returned when they are sent or aborted", async () => {
  const unread = begin("/many");
  await once(unread, "readable");
  expect(await ask("/many")).toMatchObject({ status: 503, retryAfter: "1" });
  // Small responses are always sent, and completed changes are always reported.
  expect(await ask("/few")).toMatchObject({ status: 200 });
  expect((await ask("/done")).length).toBeGreaterThan(MANY);
  expect(await ask("/many")).toMatchObject({ status: 503 });
  unread.destroy();
  await expect.poll(() => ask("/many")).toMatchObject({ status: 200 });
  for (let round = 0; round < 3; round++) expect((await ask("/many")).length).toBeGreaterThan(MANY);
});

test("a client that disconnects before the response is ready holds no memory", async () => {
  const accepted = once(app.server, "request");
  const gone = begin("/late");
  const [, response] = await accepted;
  gone.destroy();
  await once(response, "close");
  late.resolve();
  await expect.poll(() => ask("/many")).toMatchObject({ status: 200 });
  expect(await ask("/many")).toMatchObject({ status: 200 });
});

test("an owner holds at most what it leaves free, and returns it", () => {
  const room = new MemoryBudget(1200);
  const first = room.share(["a", "x"]);
  expect(first.take(601)).toBe(false);
  expect(first.take(600)).toBe(true);
  expect(room.share(["a"]).take(1)).toBe(false);
  expect(room.share(["b", "x"]).take(1)).toBe(false);
  const second = room.share(["b"]);
  expect([second.take(301), second.take(300)]).toEqual([false, true]);
  expect(room.share(["c"]).take(150)).toBe(true);
  first.release();
  first.release();
  expect(room.bytes).toBe(450);
  expect(room.share(["a"]).take(375)).toBe(true);
});
