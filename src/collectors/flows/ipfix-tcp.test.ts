import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { ListenFailure } from "../listener.ts";
import { ipfix, set, template } from "./packets.fixture.ts";
import { openIpfixTcp, type IpfixTcpOptions } from "./ipfix-tcp.ts";

// Real connections from several addresses of this machine; messages are collected, not decoded.

const MESSAGE = ipfix([set(2, template(300, [[8, 4]]))], { seconds: 1_000_000 });
const BEGINNING = Buffer.from("000a", "hex");

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part.close();
});

async function listen(options: Partial<IpfixTcpOptions> = {}) {
  const taken: { address: string; payload: Buffer }[] = [];
  let full = 0;
  const listener = await openIpfixTcp({
    name: "ipfix",
    address: "127.0.0.1",
    port: 0,
    now: Date.now,
    take: (address, payload) => taken.push({ address, payload: Buffer.from(payload) }) > 0,
    allows: () => true,
    onConnection: () => undefined,
    onFull: () => full++,
    ...options,
  });
  open.push(listener);
  const connected = async (localAddress: string): Promise<Socket & { gone: Promise<unknown> }> => {
    const socket = connect({ port: listener.status().port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    const gone = once(socket, "close");
    open.push({ close: () => socket.destroy() });
    await once(socket, "connect");
    return Object.assign(socket, { gone });
  };
  const messagesFrom = (address: string) =>
    taken.filter((one) => one.address === address).map(({ payload }) => payload);
  return { listener, connected, taken, messagesFrom, full: () => full };
}

test("one address gets at most 32 connections and does not keep others out", async () => {
  const { listener, connected, messagesFrom, full } = await listen();
  const first = await connected("127.0.0.5");
  for (let n = 1; n < 32; n++) (await connected("127.0.0.5")).write(BEGINNING);
  await (
    await connected("127.0.0.5")
  ).gone;
  expect(full()).toBe(1);
  (await connected("127.0.0.6")).write(MESSAGE);
  await expect.poll(() => messagesFrom("127.0.0.6")).toEqual([Buffer.from(MESSAGE)]);
  first.destroy();
  await expect.poll(() => listener.status().connections).toBe(32);
  (await connected("127.0.0.5")).write(MESSAGE);
  await expect.poll(() => messagesFrom("127.0.0.5")).toEqual([Buffer.from(MESSAGE)]);
});

test("with all 256 connections in use, one that never completed a message is closed for a new one", async () => {
  const { listener, connected, messagesFrom, full } = await listen();
  const proven = await connected("127.0.0.4");
  proven.write(MESSAGE);
  await expect.poll(() => messagesFrom("127.0.0.4")).toHaveLength(1);
  const idle = [];
  for (let n = 1; n < 256; n++) {
    const socket = await connected(`127.0.0.${10 + (n % 8)}`);
    socket.write(BEGINNING);
    idle.push(socket);
  }
  await expect.poll(() => listener.status().connections).toBe(256);
  (await connected("127.0.0.6")).write(MESSAGE);
  await idle[0]!.gone;
  await expect.poll(() => messagesFrom("127.0.0.6")).toHaveLength(1);
  expect(listener.status().connections).toBe(256);
  expect(full()).toBe(1);
  proven.write(MESSAGE);
  await expect.poll(() => messagesFrom("127.0.0.4")).toHaveLength(2);
});

test("an incomplete message is passed on after 30 s and its connection closed, but not under back-pressure", async () => {
  let nowMs = 1_000_000;
  let hasRoom = true;
  const taken: Buffer[] = [];
  const { listener, connected } = await listen({
    now: () => nowMs,
    take: (_, payload) => hasRoom && taken.push(Buffer.from(payload)) > 0,
  });
  const silent = await connected("127.0.0.2");
  silent.write(MESSAGE);
  await expect.poll(() => taken).toHaveLength(1);
  hasRoom = false;
  const waiting = await connected("127.0.0.3");
  waiting.write(MESSAGE);
  const slow = await connected("127.0.0.4");
  slow.write(BEGINNING);
  await expect.poll(() => listener.status().connections).toBe(3);
  const cut = (socket: Socket) =>
    expect
      .poll(() => {
        nowMs += 31_000;
        return socket.destroyed;
      })
      .toBe(true);
  await cut(slow);
  expect(waiting.destroyed || silent.destroyed).toBe(false);
  hasRoom = true;
  await expect.poll(() => taken).toHaveLength(2);
  const late = await connected("127.0.0.4");
  late.write(BEGINNING);
  await cut(late);
  expect(taken.at(-1)).toEqual(BEGINNING);
  silent.write(MESSAGE);
  await expect.poll(() => taken).toHaveLength(4);
});

test("the message for a privileged port suggests another port or CAP_NET_BIND_SERVICE", () => {
  const place = { name: "syslog", address: "0.0.0.0", port: 514 };
  const { message } = new ListenFailure(place, "UDP", Object.assign(new Error("no"), { code: "EACCES" }));
  expect(message).toMatch(/above 1023: choose another with --syslog-port[^]*CAP_NET_BIND_SERVICE/);
});
