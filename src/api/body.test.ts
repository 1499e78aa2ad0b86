import { createServer, type Server } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Registry } from "prom-client";
import { RequestBodies } from "./body.ts";
import { Problem } from "./problems.ts";

// A server that only reads bodies, with a budget of a thousand bytes.

let server: Server;
let port: number;
const sockets: Socket[] = [];

beforeEach(async () => {
  const bodies = new RequestBodies({ bytesMax: 1000, registry: new Registry() });
  server = createServer(async (request, response) => {
    const reader = bodies.reader(request, []);
    try {
      const body = await reader.read({ bytesMax: 900, types: ["text/plain"] });
      response.end(`read ${body?.bytes.length}`);
    } catch (error) {
      response.end(error instanceof Problem ? error.code : "gone");
    } finally {
      reader.release();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
});

/** Sends the head of a request and a part of its body, and keeps the connection open. */
function begin(length: number, part: string): Socket {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n${part}`);
  return socket;
}

/** Repeats the request until the response is as expected, because the server notices a disconnect asynchronously. */
async function becomes(expected: string, ask: () => Promise<string>): Promise<void> {
  await expect.poll(ask).toBe(expected);
}

const send = async (body: string | Buffer<ArrayBuffer>, headers = {}) => {
  const answer = await fetch(`http://127.0.0.1:${port}`, {
    method: "POST",
    body,
    headers: { "content-type": "text/plain", ...headers },
  });
  return answer.text();
};

test("bodies in flight share one budget: a body past it is refused with Retry-After, and each end returns memory", async () => {
  expect(await send("x".repeat(900))).toBe("read 900");
  const first = begin(500, "x".repeat(499));
  const second = begin(500, "x".repeat(400));
  await becomes("unavailable", () => send("x".repeat(200)));
  expect(await send("x".repeat(90))).toBe("read 90");
  first.destroy();
  await becomes("read 200", () => send("x".repeat(200)));
  second.write("x".repeat(100));
  await becomes("read 900", () => send("x".repeat(900)));
});

test("the decompressed size of a body counts too", async () => {
  const compressed = (bytes: number) => gzipSync("x".repeat(bytes)) as Buffer<ArrayBuffer>;
  begin(900, "x".repeat(300));
  await becomes("unavailable", () => send(compressed(800), { "content-encoding": "gzip" }));
  expect(await send(compressed(500), { "content-encoding": "gzip" })).toBe("read 500");
});
