import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { connectionCaps } from "./connections.ts";

const MAX = 20;

let server: TestServer;
const sockets: Socket[] = [];
beforeAll(async () => {
  server = await openTestServer({
    settings: { rateLimits: false, connections: { max: MAX, perAddressMax: 5 } },
    connections: { firstRequestMs: 60_000 },
  });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await expect.poll(async () => (await figures()).open).toBe(1);
});
afterAll(() => server.close());

interface Client {
  readonly socket: Socket;
  heard: string;
  isClosed: boolean;
}

/** Each address of 127.0.0.0/8 is a separate client. */
async function open(localAddress: string, port = server.port): Promise<Client> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  sockets.push(socket);
  const client: Client = { socket, heard: "", isClosed: false };
  socket.on("data", (chunk) => (client.heard += chunk.toString()));
  socket.on("error", () => undefined).on("close", () => (client.isClosed = true));
  await once(socket, "connect");
  return client;
}

const openMany = (count: number, address: string) => Promise.all(Array.from({ length: count }, () => open(address)));
const isOpen = ({ isClosed }: Client) => !isClosed;

async function ask(client: Client, path = "/healthz"): Promise<void> {
  client.heard = "";
  client.socket.write(
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key.secret}\r\nAccept: */*\r\n\r\n`,
  );
  await expect.poll(() => client.heard).toMatch(/^HTTP\/1.1 200 /);
}

/** Uses its own connection, which is closed after the response. */
async function figures(of = server) {
  const { text } = await of.call("GET", "/metrics", { key: null, headers: { connection: "close" } });
  const value = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
  const closed = (reason: string) => value(`tocsin_http_connections_closed_total\\{reason="${reason}"\\}`);
  return { open: value("tocsin_http_connections"), closed };
}

describe("connections", () => {
  test("of one client leave room for others, regardless of how many it opens", async () => {
    const flood = await openMany(3 * MAX, "127.0.0.2");
    await expect.poll(() => flood.filter(isOpen).length).toBe(MAX / 2);
    const others = await openMany(3, "127.0.0.3");
    for (const other of others) await ask(other);
    expect((await figures()).closed("per_address")).toBeGreaterThanOrEqual(2.5 * MAX);
    // The newest ones stay: the longest idle is evicted.
    expect(flood.slice(-MAX / 2).every(isOpen)).toBe(true);
  });

  test("past the limit evict one without a request, then an idle one", async () => {
    const idle = await openMany(3, "127.0.0.2");
    for (const client of idle) await ask(client);
    const silent = await openMany(7, "127.0.0.3");
    const more = await openMany(10, "127.0.0.4");
    const first = await open("127.0.0.5");
    await ask(first);
    await expect.poll(() => silent.filter(isOpen).length).toBe(6);
    expect(idle.every(isOpen)).toBe(true);
    for (const client of [...silent, ...more].filter(isOpen)) await ask(client);
    const next = await open("127.0.0.5");
    await ask(next);
    await expect.poll(() => idle.filter(isOpen).length).toBe(2);
    expect(idle[0]!.isClosed).toBe(true);
    expect((await figures()).closed("evicted")).toBeGreaterThanOrEqual(2);
  });

  test("with a request in flight are never evicted; a new one is refused instead", async () => {
    const streams = [...(await openMany(MAX / 2, "127.0.0.2")), ...(await openMany(MAX / 2 - 1, "127.0.0.3"))];
    for (const stream of streams) await ask(stream, "/v1/stream");
    const beyond = await open("127.0.0.2");
    await expect.poll(() => beyond.isClosed).toBe(true);
    const last = await open("127.0.0.4");
    await ask(last, "/v1/stream");
    const turnedAway = await open("127.0.0.5");
    await expect.poll(() => turnedAway.isClosed).toBe(true);
    expect(turnedAway.heard).toBe("");
    expect([...streams, last].every(isOpen)).toBe(true);
    last.socket.destroy();
    await expect.poll(async () => (await figures().catch(() => undefined))?.closed("full")).toBeGreaterThanOrEqual(1);
  });

  test("without any data are closed soon, others are not", async () => {
    const strict = await openTestServer({ connections: { firstRequestMs: 100, checkMs: 20 } });
    const asking = await open("127.0.0.2", strict.port);
    asking.socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await expect.poll(() => asking.heard).toMatch(/^HTTP\/1.1 200 /);
    const begun = await open("127.0.0.2", strict.port);
    begun.socket.write("GET /healthz HTTP/1.1\r\n");
    const silent = await open("127.0.0.2", strict.port);
    await expect.poll(() => silent.isClosed).toBe(true);
    expect([silent.heard, asking.isClosed, begun.isClosed]).toEqual(["", false, false]);
    expect((await figures(strict)).closed("silent")).toBe(1);
    await strict.close();
  });
});

describe("the connection limit of an address", () => {
  const cap = (address: string, trustedProxies: string[] = []) =>
    connectionCaps({ max: 1000, perAddressMax: 10, trustedProxies })(address);

  test("is the setting; half of all for loopback, all for a trusted proxy", () => {
    expect(cap("192.0.2.1")).toBe(10);
    expect(cap("::ffff:192.0.2.1")).toBe(10);
    expect(cap("2001:db8::1")).toBe(10);
    for (const loopback of ["127.0.0.1", "::1", "::ffff:127.0.0.1"]) expect(cap(loopback), loopback).toBe(500);
    for (const [address, trusted] of [
      ["127.0.0.1", "loopback"],
      ["::1", "loopback"],
      ["10.1.2.3", "10.0.0.0/8"],
      ["::ffff:10.1.2.3", "10.0.0.0/8"],
      ["192.168.1.1", "uniquelocal"],
      ["fd00::1", "uniquelocal"],
      ["169.254.1.1", "linklocal"],
      ["fe80::1", "linklocal"],
    ] as const) {
      expect(cap(address, [trusted]), address).toBe(1000);
    }
    expect(cap("11.0.0.1", ["10.0.0.0/8", "loopback", "uniquelocal"])).toBe(10);
  });
});
