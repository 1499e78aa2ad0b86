import { lookup as systemLookup } from "node:dns";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { AddressRefused, send, type OutgoingRequest } from "./outgoing.ts";

let stop: () => void = () => undefined;
afterEach(() => stop());

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return (server.address() as AddressInfo).port;
}

const ask = (url: string, more: Partial<OutgoingRequest> = {}) =>
  send({ method: "GET", url, timeoutMs: 5000, answerBytesMax: 1000, allowsPrivate: false, ...more });

/** A resolver that returns these addresses for every name. */
const answering = (...addresses: string[]) =>
  ((_host: string, _options: object, done: (error: null, found: object[]) => void) =>
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    )) as typeof systemLookup;

test("the request arrives, and the response is returned with redirects unfollowed", async () => {
  const port = await serve((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () =>
      response.writeHead(302, { Location: "/elsewhere" }).end(`${request.headers["x-a"]}:${body}`),
    );
  });
  const url = `http://127.0.0.1:${port}/`;
  const answer = await ask(url, { method: "POST", headers: { "X-A": "1" }, body: "hé", allowsPrivate: true });
  expect({ ...answer, body: answer.body.toString() }).toMatchObject({ status: 302, body: "1:hé", isCut: false });
});

test.each([
  "127.0.0.1",
  "10.1.2.3",
  "169.254.169.254",
  "[::1]",
  "[fe80::1]",
  "[::ffff:192.168.0.1]",
  "[::ffff:a00:1]",
  "[::127.0.0.1]",
  "[::ffff:0:127.0.0.1]",
  "[64:ff9b:1::a00:1]",
  "[2002:a00:1::]",
  "[fec0::1]",
  "100.64.0.1",
  "192.0.0.1",
  "198.18.0.1",
  "0.0.0.0",
  "2130706433",
  "0x7f.1",
])("the address %s is refused", async (host) => {
  await expect(ask(`http://${host}:9/`)).rejects.toBeInstanceOf(AddressRefused);
});

test("a name with a private address is refused, even if it also has a public one", async () => {
  for (const inside of ["127.0.0.1", "192.168.1.1", "::1", "64:ff9b::a00:1"]) {
    await expect(ask("http://some.example:9/", { lookup: answering("8.8.8.8", inside) })).rejects.toThrow(inside);
  }
});

test("the refusal includes the caller's remedy, if there is one", async () => {
  const remedy = "some.setting allows private ones";
  const named = { lookup: answering("10.0.0.1") };
  await expect(ask("http://10.0.0.1:9/", { remedy })).rejects.toThrow(
    /^10\.0\.0\.1 is not a public address; some\.setting allows private ones$/,
  );
  await expect(ask("http://some.example:9/", { ...named, remedy })).rejects.toThrow(/; some\.setting allows/);
  await expect(ask("http://10.0.0.1:9/")).rejects.toThrow(/^10\.0\.0\.1 is not a public address$/);
  await expect(ask("http://some.example:9/", named)).rejects.toThrow(/is not a public address$/);
});

test("the request connects to the checked address: rebinding the name in between has no effect", async () => {
  let asked = 0;
  let reached = 0;
  const port = await serve((_request, response) => {
    reached++;
    response.end("inside");
  });
  // The first address counts as public but is unassigned, so that connecting to it times out.
  const turning = ((host: string, options: object, done: never) =>
    answering(asked++ === 0 ? "3000::1" : "127.0.0.1")(host, options as never, done)) as typeof systemLookup;
  const sent = ask(`http://some.example:${port}/`, { lookup: turning, timeoutMs: 300 });
  await expect(sent).rejects.not.toBeInstanceOf(AddressRefused);
  expect([asked, reached]).toEqual([1, 0]);
  // The server does respond: the same name is reached if private addresses are allowed.
  const allowed = await ask(`http://some.example:${port}/`, { lookup: turning, allowsPrivate: true });
  expect([allowed.body.toString(), reached]).toEqual(["inside", 1]);
});

test("an endless answer is truncated, a missing one times out", async () => {
  const port = await serve((request, response) => {
    if (request.url === "/long") setInterval(() => response.write("x".repeat(400)), 1).unref();
  });
  const long = await ask(`http://127.0.0.1:${port}/long`, { allowsPrivate: true });
  expect([long.body.length, long.isCut]).toEqual([1000, true]);
  const never = ask(`http://127.0.0.1:${port}/never`, { allowsPrivate: true, timeoutMs: 100 });
  await expect(never).rejects.toThrow("no answer within 0.1 s");
});
