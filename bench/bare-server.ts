import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

// Baseline server: parses each request as JSON and responds as if it had stored it. Like the service, it runs in its own
// process.

/** Runs the work with the port that it listens on. */
export async function withBareServer<Value>(work: (port: number) => Promise<Value>): Promise<Value> {
  const child = fork(import.meta.filename, { execArgv: [] });
  try {
    const [port] = (await once(child, "message")) as [number];
    return await work(port);
  } finally {
    child.kill();
  }
}

function serve(tell: (port: number) => void): void {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const event: unknown = JSON.parse(Buffer.concat(parts).toString());
      const answer = JSON.stringify({ data: { ...(event as object), id: "evt_0" }, meta: { request_id: "req_0" } });
      response.writeHead(201, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
      response.end(answer);
    });
  });
  server.listen(0, "127.0.0.1", () => tell((server.address() as AddressInfo).port));
}

if (import.meta.main && process.send) {
  const send = process.send.bind(process);
  serve((port) => send(port));
}
