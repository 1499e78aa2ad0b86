import type { Readable } from "node:stream";
import pino from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { revokeKey, rotateKey, type ApiKey } from "../model/key.ts";
import { FairShare } from "./fair-share.ts";
import type { StreamTimes } from "./stream-connection.ts";
import { StreamHub } from "./stream-endpoint.ts";
import { raiseAlert, submitEvent } from "./stream.fixture.ts";

// Open streams at their limits: slow and silent clients, ended keys, too many streams.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const submit = (more: object = {}) => submitEvent(server, more);
const raise = () => raiseAlert(server);

const registry = () => new Registry();
const quick: StreamTimes = { tickMs: 10, heartbeatTicks: 3, stalledTicksMax: 20 };
const newStreams = (register = registry(), times = quick) =>
  new StreamHub({ store: server.store, registry: register, log: pino({ level: "silent" }), now: Date.now, times });
const opening = (made = server.key) => ({
  key: made.key,
  credentials: { authorization: `Bearer ${made.secret}`, sessionId: undefined },
  kinds: ["events" as const],
  filters: {},
  resumeFrom: undefined,
});
const endedWith = async (register: Registry, reason: string) => {
  const { values } = await register.getSingleMetric("tocsin_streams_ended_total")!.get();
  return values.find(({ labels }) => labels["reason"] === reason)?.value ?? 0;
};

const gone: readonly [string, (key: ApiKey) => ApiKey][] = [
  ["revoked", (key) => revokeKey(key, Date.now())],
  ["rotated", (key) => rotateKey(key, { graceMs: 0, now: Date.now() }).key],
];
test.each(gone)("a key that was %s reads nothing more, neither new nor buffered messages", async (_, change) => {
  const register = registry();
  const streams = newStreams(register, { ...quick, tickMs: 600_000 });
  const made = await server.addKey();
  const [reading, waiting] = [await streams.open(opening(made)), await streams.open(opening(made))];
  const texts = ["", ""];
  const read = async (index: number, output: Readable) => {
    for await (const chunk of output as AsyncIterable<Buffer>) texts[index] += chunk.toString();
  };
  const live = read(0, reading);
  const before = await submit();
  while (!texts[0]!.includes(before) || waiting.readableLength < texts[0]!.length) await new Promise(setImmediate);
  await server.store.keys.put(change(made.key));
  const after = await submit();
  await live;
  await read(1, waiting).catch(() => undefined);
  expect([texts[0]!.includes(before), texts[0]!.includes(after), texts[1]]).toEqual([true, false, ""]);
  expect(await endedWith(register, "key")).toBe(2);
  streams.close();
});

test("an idle stream sends a heartbeat", async () => {
  const streams = newStreams();
  const output = await streams.open(opening());
  let text = "";
  for await (const chunk of output as AsyncIterable<Buffer>) {
    text += chunk.toString();
    if (text.split(": still here\n\n").length > 3) break;
  }
  expect(text).toMatch(/^retry: \d+\n\n(: still here\n\n)+$/);
  streams.close();
});

test("a client that reads nothing is disconnected and counted, and its buffer is limited", async () => {
  const register = registry();
  const streams = newStreams(register);
  const output = await streams.open(opening());
  const closed = new Promise((resolve) => output.once("close", resolve));
  let most = 0;
  const text = "x".repeat(900_000);
  const sending = (async () => {
    while (!output.destroyed) {
      await submit({ data: { text } });
      most = Math.max(most, output.readableLength);
    }
  })();
  await closed;
  await sending;
  expect(await endedWith(register, "slow_reader")).toBe(1);
  expect(most).toBeLessThan(4 * 1024 * 1024);
  streams.close();
});

test("a slow client gets everything, in order", async () => {
  const streams = newStreams(registry(), { ...quick, stalledTicksMax: 1_000_000 });
  const output = await streams.open(opening());
  const text = "x".repeat(300_000);
  const sent: string[] = [];
  for (let i = 0; i < 20; i++) sent.push(await submit({ data: { text } }));
  let read = "";
  const got = () => [...read.matchAll(/^data: \{"id":"(evt_[0-9a-f]+)"/gm)].map((match) => match[1]);
  for await (const chunk of output as AsyncIterable<Buffer>) {
    read += chunk.toString();
    if (got().length >= sent.length && read.endsWith("\n\n")) break;
  }
  expect(got()).toEqual(sent);
  streams.close();
});

test("an item that a stream has caught up on is not sent again by the feed", async () => {
  const hear: (() => void)[] = [];
  const late = {
    ...server.store,
    alerts: { ...server.store.alerts, onChange: (listener: () => void) => (hear.push(listener), () => undefined) },
  };
  const streams = new StreamHub({ store: late, registry: registry(), log: pino({ level: "silent" }), now: Date.now });
  const before = await server.store.alerts.lastChange();
  const first = await raise();
  const kinds = ["alerts" as const];
  // The feed starts here, after the first.
  const other = await streams.open({ ...opening(), kinds });
  const second = await raise();
  const output = await streams.open({
    ...opening(),
    kinds,
    resumeFrom: { change: before, place: null, field: "last_event_id" },
  });
  let read = "";
  const got = () => [...read.matchAll(/^data: \{"id":"(alt_[0-9a-f]+)"/gm)].map((match) => match[1]);
  const reading = (async () => {
    for await (const chunk of output as AsyncIterable<Buffer>) read += chunk.toString();
  })();
  while (got().length < 2) await new Promise(setImmediate);
  for (const listener of hear) listener();
  const third = await raise();
  for (const listener of hear) listener();
  while (!got().includes(third)) await new Promise(setImmediate);
  expect(got()).toEqual([first, second, third]);
  streams.close();
  await reading;
  other.destroy();
});

test("streams that fall behind the feed miss nothing and repeat nothing", async () => {
  const streams = new StreamHub({
    store: server.store,
    registry: registry(),
    log: pino({ level: "silent" }),
    now: Date.now,
    // Every slice is over at once: each stream falls behind with every chunk of more than one event.
    share: new FairShare(-1),
  });
  const texts = ["", ""];
  const outputs = await Promise.all(["needle", '"in the hay"'].map((search) => streams.open({ ...opening(), search })));
  const reading = outputs.map(async (output, i) => {
    for await (const chunk of output as AsyncIterable<Buffer>) texts[i] += chunk.toString();
  });
  const sent: string[] = [];
  for (let round = 0; round < 5; round++) {
    const batch = Array.from({ length: 40 }, (_, i) => ({
      type: "stream_test",
      source: "custom",
      data: { text: i % 2 === 0 ? "a needle in the hay" : "hay" },
    }));
    const { ids } = (await server.call("POST", "/v1/events/batch", { body: batch })).body.data;
    sent.push(...ids.filter((_: string, i: number) => i % 2 === 0));
  }
  const got = (text: string) => [...text.matchAll(/^data: \{"id":"(evt_[0-9a-f]+)"/gm)].map((match) => match[1]);
  while (texts.some((text) => got(text).at(-1) !== sent.at(-1))) await new Promise(setImmediate);
  expect(texts.map(got)).toEqual([sent, sent]);
  streams.close();
  await Promise.all(reading);
});

test("the number of streams per key is limited, and a closed stream frees its slot", async () => {
  const streams = newStreams(registry(), { ...quick, tickMs: 60_000 });
  const outputs: Readable[] = [];
  for (let i = 0; i < 20; i++) outputs.push(await streams.open(opening()));
  await expect(streams.open(opening())).rejects.toMatchObject({
    code: "rate_limited",
    headers: { "Retry-After": expect.any(String) },
  });
  await streams.open(opening(await server.addKey()));
  outputs[0]!.destroy();
  await new Promise((resolve) => outputs[0]!.once("close", resolve));
  await streams.open(opening());
  streams.close();
  await expect(streams.open(opening(await server.addKey()))).rejects.toMatchObject({ code: "unavailable" });
});
