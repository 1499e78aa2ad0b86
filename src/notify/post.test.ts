import { afterEach, expect, test } from "vitest";
import type { lookup as systemLookup } from "node:dns";
import { messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "./peers.fixture.ts";
import { openSlack } from "./channels/slack.ts";
import type { Surroundings } from "./channel.ts";

const peers: HttpPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) await peer.close();
});

const startPeer = async (...args: Parameters<typeof startHttpPeer>) => {
  const peer = await startHttpPeer(...args);
  peers.push(peer);
  return peer;
};

const send = (slackUrl: string, { privateAddresses = true, surroundings = {} as Surroundings } = {}) =>
  openSlack({ ...NO_CHANNELS, slackUrl, privateAddresses }, surroundings)!.send(
    messageOf([someAlert()]),
    new AbortController().signal,
  );

test.each([
  [404, "refused"],
  [400, "refused"],
  [410, "refused"],
  [408, "failed"],
  [429, "failed"],
  [500, "failed"],
  [503, "failed"],
  [204, "sent"],
])("an answer with %i means %s", async (status, kind) => {
  const peer = await startPeer(() => ({ status, text: status === 204 ? "" : "no_service" }));
  const outcome = await send(peer.url);
  expect(outcome.kind).toBe(kind);
  if (outcome.kind !== "sent") expect(outcome.error).toBe(`answered ${status}: no_service`);
});

test("Retry-After is understood as seconds and as a date, bounded, and passed over where it is neither", async () => {
  const texts = ["7", new Date(Date.now() + 60_000).toUTCString(), "99999999", "soon", new Date(0).toUTCString()];
  const peer = await startPeer((before) => ({ status: 429, headers: { "retry-after": texts[before]! } }));
  const waits: (number | undefined)[] = [];
  for (const _ of texts) {
    const outcome = await send(peer.url);
    waits.push(outcome.kind === "failed" ? outcome.retryAfterMs : -1);
  }
  expect(waits).toEqual([7000, expect.closeTo(60_000, -4), 3_600_000, undefined, 0]);
});

test("a redirect is not followed, and is the end of it", async () => {
  const target = await startPeer();
  const peer = await startPeer(() => ({ status: 302, headers: { location: target.url } }));
  expect(await send(peer.url)).toMatchObject({ kind: "refused", error: expect.stringContaining("not followed") });
  expect(target.received).toEqual([]);
});

test("nobody there, or one that hangs up without an answer, is worth another try; only the second may have it", async () => {
  const peer = await startPeer();
  await peers.pop()!.close();
  const refused = await send(peer.url);
  expect(refused).toMatchObject({ kind: "failed", mayHaveArrived: false });
  const silent = await startPeer(() => {
    // Ends the connection without a word.
    queueMicrotask(() => void silent.close());
    return undefined;
  });
  expect(await send(silent.url)).toMatchObject({ kind: "failed", mayHaveArrived: true });
  peers.splice(0);
  expect(JSON.stringify(refused)).not.toContain("secret-path");
});

test("a private address is refused without a connection, also where a name only leads there", async () => {
  const peer = await startPeer();
  const { port } = new URL(peer.url);
  expect(await send(peer.url, { privateAddresses: false })).toMatchObject({ kind: "refused" });
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
  const outcome = await send(url, { privateAddresses: false, surroundings: { lookup } });
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringContaining("127.0.0.1") });
  expect(JSON.stringify(outcome)).not.toContain("secret-path");
  expect([asked, peer.received.length]).toEqual([1, 0]);
});
