import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";

// Stalled uploads hold memory. One client that starts many of them must not lock out the others.

const MIB = 1024 * 1024;
const submission = { type: "login_failure", source: "custom", data: { user: "alice" } };

let server: TestServer;
const sockets: Socket[] = [];
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false, trustedProxies: ["loopback"] } });
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => server.close());

interface Upload {
  readonly key: string;
  readonly from?: string;
  readonly path?: string;
  readonly announced: number;
  readonly sent: number;
}

/** Starts an upload and stalls. Resolves with the response text once all sent bytes have left. */
async function stall(port: number, { key, from, path = "/v1/collect/eve", announced, sent }: Upload) {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  const upload = { heard: "", closed: new Promise<void>((resolve) => socket.on("close", () => resolve())) };
  socket.on("data", (chunk) => (upload.heard += chunk.toString())).on("error", () => undefined);
  const forwarded = from === undefined ? "" : `X-Forwarded-For: ${from}\r\n`;
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n${forwarded}` +
      `Content-Type: application/x-ndjson\r\nContent-Length: ${announced}\r\n\r\n`,
  );
  await new Promise<void>((resolve) => socket.write(Buffer.alloc(sent, " "), () => resolve()));
  return upload;
}

const heldBytes = async () => {
  const { text } = await server.call("GET", "/metrics", { key: null });
  return Number(/^tocsin_http_body_bytes (\d+)$/m.exec(text)?.[1]);
};

const submit = (key = server.key.secret) => server.call("POST", "/v1/events", { body: submission, key });
const search = () => server.call("POST", "/v1/events/search", { body: { query: {}, limit: 0 } });
const batch = (mib: number, headers = {}, key = server.key.secret) =>
  server.call("POST", "/v1/events/batch", {
    body: `${JSON.stringify(submission)}\n`.padEnd(mib * MIB, " "),
    headers: { "content-type": "application/x-ndjson", ...headers },
    key,
  });

describe("while one client holds its maximum of the body memory", () => {
  test("with one key, others submit, search and send batches", async () => {
    const { secret } = await server.addKey({ scopes: ["collect:eve"], plan: "starter" });
    for (let n = 0; n < 5; n++) await stall(server.port, { key: secret, announced: 32 * MIB, sent: 31 * MIB });
    expect((await submit()).status).toBe(201);
    expect((await search()).status).toBe(200);
    expect((await batch(20)).status).toBe(200);
    expect((await submit((await server.addKey()).secret)).status).toBe(201);
  });

  test("with many keys from one address (over IPv6 one /64), others do so too", async () => {
    for (let n = 0; n < 5; n++) {
      const { secret: key } = await server.addKey({ scopes: ["collect:eve"] });
      await stall(server.port, { key, from: `2001:db8::${n}`, announced: 32 * MIB, sent: 31 * MIB });
    }
    expect((await submit()).status).toBe(201);
    expect((await batch(20, { "x-forwarded-for": "192.0.2.1" })).status).toBe(200);
    // Clients of that network get the rest of its share.
    const refused = await batch(20, { "x-forwarded-for": "2001:db8::beef" });
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
  });

  test("with many keys from many addresses, small bodies are still accepted", async () => {
    for (let n = 0; n < 12; n++) {
      const { secret: key } = await server.addKey({ scopes: ["collect:eve"] });
      await stall(server.port, { key, from: `192.0.2.${n}`, announced: 32 * MIB, sent: 31 * MIB });
    }
    expect((await submit()).status).toBe(201);
    expect((await search()).status).toBe(200);
  });

  test("the memory is returned when the client disconnects", async () => {
    const { secret: key } = await server.addKey({ scopes: ["collect:eve"] });
    await stall(server.port, { key, announced: 32 * MIB, sent: 31 * MIB });
    await expect.poll(heldBytes).toBe(31 * MIB);
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect.poll(heldBytes).toBe(0);
  });
});

describe("an upload that is too slow", () => {
  let strict: TestServer;
  beforeAll(async () => {
    strict = await openTestServer({
      settings: { rateLimits: false },
      connections: { bodyRateMin: { windowMs: 1000, bytesMin: 10_000 } },
    });
  });
  afterAll(() => strict.close());

  const refusals = async () => {
    const { text } = await strict.call("GET", "/metrics", { key: null });
    return Number(/^tocsin_http_bodies_refused_total\{reason="too_slow"\} (\d+)$/m.exec(text)?.[1]);
  };

  test("gets a 408, its connection is closed, and it is counted", async () => {
    const key = strict.key.secret;
    const before = await refusals();
    const stalled = await stall(strict.port, { key, path: "/v1/events/batch", announced: MIB, sent: 20_000 });
    await stalled.closed;
    expect(stalled.heard).toMatch(/^HTTP\/1.1 408 .*connection: close.*"code":"request_timeout"/is);
    expect(await refusals()).toBe(before + 1);
  });

  test("is cut off when it drips, regardless of how much it sent before", async () => {
    const dripping = stall(strict.port, {
      key: strict.key.secret,
      path: "/v1/events/batch",
      announced: 8 * MIB,
      sent: 4 * MIB,
    });
    const drips = setInterval(() => sockets.at(-1)?.write(" "), 20);
    const upload = await dripping;
    await upload.closed;
    clearInterval(drips);
    expect(upload.heard).toMatch(/^HTTP\/1.1 408 /);
  });

  test("does not include a steady upload that takes longer than the window", async () => {
    // A hundred times the minimum rate, so that a machine that pauses for half a second still meets it.
    const body = `${JSON.stringify(submission)}\n`.padEnd(1_500_000, " ");
    const socket = connect(strict.port, "127.0.0.1");
    sockets.push(socket);
    let heard = "";
    socket.on("data", (chunk) => (heard += chunk.toString()));
    socket.write(
      `POST /v1/events/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${strict.key.secret}\r\nConnection: close\r\n` +
        `Content-Type: application/x-ndjson\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    let at = 0;
    const steady = setInterval(() => {
      socket.write(body.slice(at, at + 40_000));
      at += 40_000;
      if (at >= body.length) clearInterval(steady);
    }, 40);
    await new Promise<void>((resolve) => socket.on("close", () => resolve()));
    expect(heard).toMatch(/^HTTP\/1.1 200 /);
  });
});
