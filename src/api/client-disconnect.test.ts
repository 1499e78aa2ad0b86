import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClientDisconnected } from "./body.ts";
import { abortOnDisconnect } from "./client-disconnect.ts";

const server = createServer((socket) => void socket.resume());
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => void server.close());

async function accepted(): Promise<{ client: Socket; socket: Socket }> {
  const { port } = server.address() as AddressInfo;
  const client = connect(port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  return { client, socket };
}

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener("abort", () => reject(signal.reason as Error));
  });

test("work is aborted when the client disconnects", async () => {
  const { client, socket } = await accepted();
  const work = abortOnDisconnect(socket, untilAborted);
  client.destroy();
  await expect(work).rejects.toBeInstanceOf(ClientDisconnected);
});

test("work for a client that has already disconnected is aborted at once", async () => {
  const { client, socket } = await accepted();
  client.destroy();
  await once(socket, "close");
  await expect(abortOnDisconnect(socket, untilAborted)).rejects.toBeInstanceOf(ClientDisconnected);
});

test("finished work leaves no listener on the connection, whether it succeeded or failed", async () => {
  const { client, socket } = await accepted();
  const before = socket.listenerCount("close");
  expect(await abortOnDisconnect(socket, () => Promise.resolve(1))).toBe(1);
  await expect(abortOnDisconnect(socket, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(socket.listenerCount("close")).toBe(before);
  client.destroy();
});
