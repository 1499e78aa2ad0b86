import { createSocket } from "node:dgram";
import { knownFormats } from "../formats/known-formats.ts";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect } from "vitest";
import { parseCidr } from "../../lib/ip.ts";
import { unpackDraft } from "../formats/event-draft.ts";
import { LineBatches } from "./line-batches.ts";
import { LineReader } from "./line-reader.ts";
import { LineSenders } from "./line-sender.ts";
import { LineSockets, type LineSocketsOptions } from "./line-sockets.ts";
import type { SenderStatus } from "./line-status.ts";

// Real sockets and their output, without the service around them.

const open: { close(): unknown }[] = [];

/** Registers a part that closeAll closes, in reverse order. */
export function closeAfter(part: { close(): unknown }): void {
  open.push(part);
}

/** Call after each test. */
export async function closeAll(): Promise<void> {
  for (const part of open.splice(0).reverse()) await part.close();
}

interface Limits extends Partial<LineSocketsOptions> {
  readonly linesPerSecondMax?: number;
  readonly allowed?: readonly string[];
  readonly keepsUnparsed?: boolean;
}

export function openSockets({
  linesPerSecondMax = 1_000_000,
  allowed = [],
  keepsUnparsed = true,
  ...limits
}: Limits = {}) {
  const now = limits.now ?? Date.now;
  const senders = new LineSenders({ allowed: allowed.map((text) => parseCidr(text)!), linesPerSecondMax, now });
  const batches = new LineBatches(
    new LineReader({ platform: "platform", timezone: "UTC", keepsUnparsed }, knownFormats()),
    now,
  );
  const sockets = new LineSockets({
    lineBytesMax: 65_536,
    connectionsMax: 100,
    connectionsPerSenderMax: 10,
    receiveBufferBytes: 1_000_000,
    senders,
    activate: (sender) => batches.activate(sender),
    now,
    ...limits,
  });
  closeAfter(sockets);
  const raws: Record<string, any>[] = [];
  const drain = async () => {
    for (let batch; (batch = await batches.take());) raws.push(...batch.drafts.map((draft) => unpackDraft(draft).raw));
  };
  void drain();
  const endpoint = { name: "syslog", address: "127.0.0.1", port: 0 } as const;
  const portOf = (transport: string) => sockets.status().find((one) => one.transport === transport)!.port!;
  const sender = (address = "127.0.0.1", transport?: string): SenderStatus | undefined =>
    senders
      .status(now())
      .senders.find((one) => one.address === address && (transport === undefined || one.transport === transport));
  const linesWhen = (lines: readonly string[]) =>
    expect.poll(() => raws.map(({ line }) => line as string).sort()).toEqual([...lines].sort());
  const senderWhen = async (holds: (sender: SenderStatus) => boolean, address?: string, transport?: string) => {
    await expect.poll(() => ((one) => one !== undefined && holds(one))(sender(address, transport))).toBe(true);
    return sender(address, transport)!;
  };
  return { sockets, senders, batches, raws, endpoint, portOf, sender, linesWhen, senderWhen };
}

export async function connected(
  port: number,
  localAddress = "127.0.0.1",
): Promise<Socket & { gone: Promise<unknown> }> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  // Not `once`, which rejects on an error that precedes the close.
  const gone = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  closeAfter({ close: () => socket.destroy() });
  await once(socket, "connect");
  return Object.assign(socket, { gone });
}

export async function sendDatagrams(port: number, payloads: readonly (string | Uint8Array)[], from = "127.0.0.1") {
  const socket = createSocket("udp4");
  socket.bind(0, from);
  await once(socket, "listening");
  for (const payload of payloads)
    await new Promise<void>((resolve, reject) =>
      socket.send(payload, port, "127.0.0.1", (error) => (error ? reject(error) : resolve())),
    );
  socket.close();
}

export const linesOf = (count: number, name: string) =>
  Array.from({ length: count }, (_, n) => `<13>host app: ${name} ${n}`);
export const LINE = "<13>host app: a line";
