import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ClientGone } from "./body.ts";
import { untilHangUp } from "./hang-up.ts";

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

test("work is told when the client goes", async () => {
  const { client, socket } = await accepted();
  const work = untilHangUp(socket, untilAborted);
  client.destroy();
  await expect(work).rejects.toBeInstanceOf(ClientGone);
});

test("work for a client that has gone before is told at once", async () => {
  const { client, socket } = await accepted();
  client.destroy();
  await once(socket, "close");
  await expect(untilHangUp(socket, untilAborted)).rejects.toBeInstanceOf(ClientGone);
});

test("work that is done leaves nothing on the connection, however it went", async () => {
  const { client, socket } = await accepted();
  const before = socket.listenerCount("close");
  expect(await untilHangUp(socket, () => Promise.resolve(1))).toBe(1);
  await expect(untilHangUp(socket, () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(socket.listenerCount("close")).toBe(before);
  client.destroy();
});
