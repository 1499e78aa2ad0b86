import { expect, test } from "vitest";
import { knownFormats } from "../formats/known-formats.ts";
import { BATCH_EVENTS_MAX, LineBatches } from "./line-batches.ts";
import { LineReader } from "./line-reader.ts";
import { LineSenders, type LineSender } from "./line-sender.ts";

const now = () => 1_000_000;

function open() {
  const senders = new LineSenders({ allowed: [], linesPerSecondMax: 1e6, now });
  const batches = new LineBatches(
    new LineReader({ platform: "platform", timezone: "UTC", keepsUnparsed: true }, knownFormats()),
    now,
  );
  const put = (sender: LineSender, text: string) => {
    sender.put({ text, isReplaced: false, atMs: now(), from: sender.address });
    batches.activate(sender);
  };
  return { senders, batches, put };
}

const FLOW = JSON.stringify({
  timestamp: "2026-11-15T08:30:00.000000+0000",
  event_type: "flow",
  src_ip: "192.0.2.1",
  src_port: 1,
  dest_ip: "198.51.100.2",
  dest_port: 2,
  proto: "UDP",
  flow: { pkts_toserver: 1, pkts_toclient: 1, bytes_toserver: 60, bytes_toclient: 60 },
});

test("batches take lines round-robin: a quiet sender does not wait for a noisy one", async () => {
  const { senders, batches, put } = open();
  const noisy = senders.find("syslog", "tcp", "192.0.2.1");
  const quiet = senders.find("syslog", "tcp", "192.0.2.2");
  for (let n = 0; n < 1000; n++) put(noisy, `<13>host app: noisy ${n}`);
  for (let n = 0; n < 10; n++) put(quiet, `<13>host app: quiet ${n}`);
  const first = await batches.take();
  expect(first!.drafts).toHaveLength(BATCH_EVENTS_MAX);
  expect(first!.drafts.filter(({ rawText }) => rawText.includes("quiet"))).toHaveLength(10);
});

test("a batch has a limit for flow records too", async () => {
  const { senders, batches, put } = open();
  const sender = senders.find("eve", "tcp", "192.0.2.1");
  for (let n = 0; n < 1000; n++) put(sender, FLOW);
  const first = await batches.take();
  const records = first!.flows.flatMap(({ flows }) => flows);
  expect(records.length).toBeGreaterThan(0);
  expect(records.length).toBeLessThanOrEqual(2 * BATCH_EVENTS_MAX);
  expect(first!.flows[0]!.sender).toBe("192.0.2.1");
});

test("after a stop all queued lines are delivered, and then null", async () => {
  const { senders, batches, put } = open();
  const sender = senders.find("syslog", "tcp", "192.0.2.1");
  for (let n = 0; n < 450; n++) put(sender, `<13>host app: ${n}`);
  batches.stop();
  const sizes: number[] = [];
  for (let batch; (batch = await batches.take());) sizes.push(batch.drafts.length);
  expect(sizes).toEqual([200, 200, 50]);
  expect(await batches.take()).toBeNull();
});
