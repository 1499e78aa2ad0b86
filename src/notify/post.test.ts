import { afterEach, expect, test } from "vitest";
import type { lookup as systemLookup } from "node:dns";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer, type AddressInfo } from "node:net";
import { messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "./peers.fixture.ts";
import { openChannels, type TransportOverrides } from "./open-channels.ts";
import { post } from "./post.ts";

type Overrides = TransportOverrides & { readonly privateAddresses?: boolean };

const peers: HttpPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) await peer.close();
});

const startPeer = async (...args: Parameters<typeof startHttpPeer>) => {
  const peer = await startHttpPeer(...args);
  peers.push(peer);
  return peer;
};

const send = (slackUrl: string, { privateAddresses = true, ...overrides }: Overrides = {}) => {
  const channels = openChannels({ ...NO_CHANNELS, slackUrl, privateAddresses }, overrides);
  return channels.get("slack")!.send(messageOf([someAlert()]), new AbortController().signal);
};

test.each([
  [404, "refused"],
  [400, "refused"],
  [410, "refused"],
  [408, "failed"],
  [429, "failed"],
  [500, "failed"],
  [503, "failed"],
  [204, "sent"],
])("a response with %i means %s", async (status, kind) => {
  const peer = await startPeer(() => ({ status, text: status === 204 ? "" : "no_service" }));
  const outcome = await send(peer.url);
  expect(outcome.kind).toBe(kind);
  if (outcome.kind !== "sent") expect(outcome.error).toBe(`answered ${status}: no_service`);
});

test("Retry-After is parsed as seconds or a date, bounded, and ignored otherwise", async () => {
  const texts = ["7", new Date(Date.now() + 60_000).toUTCString(), "99999999", "soon", new Date(0).toUTCString()];
  const peer = await startPeer((before) => ({ status: 429, headers: { "retry-after": texts[before]! } }));
  const waits: (number | undefined)[] = [];
  for (const _ of texts) {
    const outcome = await send(peer.url);
    waits.push(outcome.kind === "failed" ? outcome.retryAfterMs : -1);
  }
  expect(waits).toEqual([7000, expect.closeTo(60_000, -4), 3_600_000, undefined, 0]);
});

test("the longer of Retry-After and the delay in a JSON answer counts, up to an hour", async () => {
  const answers = [
    { text: '{"wait":2.5}' },
    { text: '{"wait":2.5}', headers: { "retry-after": "7" } },
    { text: '{"wait":1e9}' },
    { text: '{"wait":-1}' },
    { text: '{"wait":"soon"}' },
    { text: "<html>not JSON" },
    { text: "null" },
  ];
  const peer = await startPeer((before) => ({ status: 429, ...answers[before]! }));
  const delayMsOf = ({ wait }: Readonly<Record<string, unknown>>) =>
    typeof wait === "number" ? wait * 1000 : undefined;
  const waits: (number | undefined)[] = [];
  for (const _ of answers) {
    const { signal } = new AbortController();
    const outcome = await post({ url: peer.url, body: "{}", delayMsOf }, { allowsPrivate: true, signal });
    waits.push(outcome.kind === "failed" ? outcome.retryAfterMs : -1);
  }
  expect(waits).toEqual([2500, 7000, 3_600_000, undefined, undefined, undefined, undefined]);
});

test("a redirect is refused and not followed", async () => {
  const target = await startPeer();
  const peer = await startPeer(() => ({ status: 302, headers: { location: target.url } }));
  expect(await send(peer.url)).toMatchObject({ kind: "refused", error: expect.stringContaining("not followed") });
  expect(target.received).toEqual([]);
});

test("a refused connection and one closed without an answer are retried; only the latter may have arrived", async () => {
  const peer = await startPeer();
  await peers.pop()!.close();
  const refused = await send(peer.url);
  expect(refused).toMatchObject({ kind: "failed", mayHaveArrived: false });
  const silent = await startPeer(() => {
    // Closes the connection without a response.
    queueMicrotask(() => void silent.close());
    return undefined;
  });
  expect(await send(silent.url)).toMatchObject({ kind: "failed", mayHaveArrived: true });
  peers.splice(0);
  expect(JSON.stringify(refused)).not.toContain("secret-path");
});

test("a private address is refused without a connection, also behind a name", async () => {
  const peer = await startPeer();
  const { port } = new URL(peer.url);
  expect(await send(peer.url, { privateAddresses: false })).toEqual({
    kind: "refused",
    error: "127.0.0.1 is not a public address; notifications.private_addresses allows private ones",
  });
  // Rebinding: the name was harmless when it was configured.
  let asked = 0;
  const lookup = ((_host: string, _options: object, done: (error: null, found: object[]) => void) => {
    asked++;
    done(null, [
      { address: "93.184.215.14", family: 4 },
      { address: "127.0.0.1", family: 4 },
    ]);
  }) as unknown as typeof systemLookup;
  const url = `http://hooks.example:${port}/hook/secret-path`;
  const outcome = await send(url, { privateAddresses: false, lookup });
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining("127.0.0.1") });
  expect(JSON.stringify(outcome)).not.toContain("secret-path");
  expect([asked, peer.received.length]).toEqual([1, 0]);
});

const SECRET_PATH = "/services/T0/B0/Xk29vQm7LpZ4?token=s3cr%2Ft%20value&x=1";
const SECRETS = /Xk29|s3cr|T0.B0/i;

/** Echoes the request URL, as servers do. */
async function startEcho(status: number, say: (path: string) => string) {
  const server = createHttpServer((request, response) => {
    request.resume();
    response.writeHead(status).end(say(request.url!));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  peers.push({
    url: "",
    origin: "",
    received: [],
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const WAYS: [string, (path: string) => string][] = [
  ["unchanged", (path) => path],
  ["in capitals", (path) => path.toUpperCase()],
  ["decoded", (path) => decodeURIComponent(path)],
  ["encoded", (path) => encodeURIComponent(path)],
  [
    "encoded letter by letter",
    (path) => `%${Buffer.from(decodeURIComponent(path)).toString("hex").match(/../g)!.join("%")}`,
  ],
  ["in HTML", (path) => path.replaceAll("&", "&amp;").replaceAll("/", "&#x2F;")],
  ["in JSON as PHP writes it", (path) => JSON.stringify({ path }).replaceAll("/", "\\/")],
  ["in JSON as Go writes it", (path) => JSON.stringify({ path }).replaceAll("&", "\\u0026")],
  ["without the query", (path) => path.split("?")[0]!],
  ["where the displayed text is truncated", (path) => `${"word ".repeat(33)}${path}`],
  ["where the response is truncated", (path) => `${" ".repeat(4060)}${path}${"x".repeat(5000)}`],
];
test.each(WAYS)("a peer that echoes its address %s does not reveal it", async (_, written) => {
  for (const status of [500, 404, 429, 302]) {
    const origin = await startEcho(status, (path) => `Cannot POST ${written(path)}`);
    const outcome = await send(origin + SECRET_PATH);
    const error = outcome.kind === "sent" ? "" : (outcome.error ?? "");
    expect(error).toContain(`answered ${status}: `);
    expect(decodeURIComponent(error.replaceAll("…", ""))).not.toMatch(SECRETS);
    expect(error.length).toBeLessThan(300);
  }
});

test("redaction leaves the rest of the sentence", async () => {
  const origin = await startEcho(500, (path) => `Cannot POST ${path} today, and /hook is a word`);
  expect(await send(origin + SECRET_PATH)).toMatchObject({
    error: "answered 500: Cannot POST (hidden) today, and /hook is a word",
  });
});

test("a peer that echoes the URL without speaking HTTP does not reveal it either", async () => {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => socket.end(data));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const outcome = await send(`http://127.0.0.1:${(server.address() as AddressInfo).port}${SECRET_PATH}`);
  server.close();
  expect(outcome.kind).toBe("failed");
  expect(JSON.stringify(outcome)).not.toMatch(SECRETS);
});

test("user, password and the signing secret are redacted as well", async () => {
  const basic = Buffer.from("operator:pass word").toString("base64");
  const said = `user operator, pass%20word, Basic ${basic}, signed with KEY/of+the webhook`;
  const origin = await startEcho(400, () => said);
  const { webhook } = Object.fromEntries(
    openChannels({
      ...NO_CHANNELS,
      webhookUrl: `${origin.replace("//", "//operator:pass%20word@")}/`,
      webhookSecret: "key/of+the webhook",
    }),
  );
  expect(await webhook!.send(messageOf([someAlert()]), new AbortController().signal)).toEqual({
    kind: "refused",
    error: "answered 400: user (hidden), (hidden), Basic (hidden), signed with (hidden)",
  });
});
