import { workerData } from "node:worker_threads";
import type { TlsOptions } from "node:tls";
import { parseCidr } from "../../lib/ip.ts";
import { serveThread } from "../../lib/thread.ts";
import { toColumns, type DraftColumns } from "../formats/event-draft.ts";
import { LineFormats, type FormatDescriptions } from "../formats/line-formats.ts";
import { ListenFailure } from "../listener.ts";
import { LineBatches, type LineBatch } from "./line-batches.ts";
import { FileTailer } from "./file-tailer.ts";
import { LineReader, type LineReaderSettings } from "./line-reader.ts";
import { LineSenders } from "./line-sender.ts";
import { LineSockets, type LineEndpoint } from "./line-sockets.ts";
import type { LineReceiverStatus } from "./line-status.ts";

// The line receiver's thread: sockets, framing, reading and all limits. The main thread pulls batches from it.

export interface LineReceiverThreadData {
  readonly ports: { readonly syslog: number | null; readonly syslog_tls: number | null; readonly eve: number | null };
  readonly addresses: readonly string[];
  readonly allowedSenders: readonly string[];
  readonly tls: Pick<TlsOptions, "cert" | "key" | "ca"> | null;
  readonly eveSocket: string | null;
  readonly eveFile: { readonly path: string; readonly checkpointPath: string } | null;
  readonly linesPerSecondMax: number;
  readonly lineBytesMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly reader: LineReaderSettings;
  /** Validated by the main thread. */
  readonly formats: FormatDescriptions;
}

/** A batch in the form that is sent to the main thread. */
export type PackedBatch = Omit<LineBatch, "drafts"> & { readonly drafts: DraftColumns };

/** Requested size of the kernel's buffer for unread datagrams; the system may grant less. */
const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024;
/** Error codes for an address family that the machine lacks. */
const NO_FAMILY_CODES = new Set<string | undefined>(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"]);
const WARNINGS_MAX = 100;
const FILE_SENDER = "127.0.0.1";

const data = workerData as LineReceiverThreadData;
const now = Date.now;
const senders = new LineSenders({
  allowed: data.allowedSenders.map((text) => parseCidr(text)!),
  linesPerSecondMax: data.linesPerSecondMax,
  now,
});
const reader = new LineReader(data.reader, new LineFormats(data.formats));
const batches = new LineBatches(reader, now);
const sockets = new LineSockets({
  lineBytesMax: data.lineBytesMax,
  connectionsMax: data.connectionsMax,
  connectionsPerSenderMax: data.connectionsPerSenderMax,
  receiveBufferBytes: RECEIVE_BUFFER_BYTES,
  senders,
  activate: (sender) => batches.activate(sender),
  now,
});
const file = data.eveFile
  ? new FileTailer({
      ...data.eveFile,
      lineBytesMax: data.lineBytesMax,
      reader,
      sender: senders.find("eve", "file", FILE_SENDER),
      submit: (batch) => batches.submit(batch),
      now,
      warn,
    })
  : undefined;

const warnings: string[] = [];
let listener: ((warning: string | null) => void) | undefined;
let hasStopped = false;

function warn(warning: string): void {
  if (warnings.length < WARNINGS_MAX) warnings.push(warning);
  deliverWarning();
}

function deliverWarning(): void {
  if (!listener || (warnings.length === 0 && !hasStopped)) return;
  listener(warnings.shift() ?? null);
  listener = undefined;
}

/** Listens on an endpoint. A machine without IPv6 does not fail the start when all interfaces are meant. */
async function listenAt(endpoint: LineEndpoint, listen: (endpoint: LineEndpoint) => Promise<void>): Promise<void> {
  try {
    await listen(endpoint);
  } catch (error) {
    const code = error instanceof ListenFailure ? (error.cause as NodeJS.ErrnoException).code : undefined;
    if (endpoint.address !== "::" || !NO_FAMILY_CODES.has(code) || data.addresses.length === 1) throw error;
    warn("this machine has no IPv6: lines are collected over IPv4 only");
  }
}

const api = {
  /** Opens all listeners and the file; rejects with an error that names the remedy. */
  async start(): Promise<void> {
    const { ports, tls, eveSocket } = data;
    for (const address of data.addresses) {
      if (ports.syslog !== null) {
        const endpoint = { name: "syslog", address, port: ports.syslog } as const;
        await listenAt(endpoint, (endpoint) => sockets.listenUdp(endpoint));
        await listenAt(endpoint, (endpoint) => sockets.listenTcp(endpoint));
      }
      if (ports.syslog_tls !== null && tls) {
        const options = { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined };
        await listenAt({ name: "syslog_tls", address, port: ports.syslog_tls }, (endpoint) =>
          sockets.listenTls(endpoint, options),
        );
      }
      if (ports.eve !== null) {
        await listenAt({ name: "eve", address, port: ports.eve }, (endpoint) => sockets.listenTcp(endpoint));
      }
    }
    if (eveSocket !== null) await sockets.listenUnix("eve", eveSocket);
    file?.start();
  },
  /** Resolves to the next batch; after `stop`, to null once all batches are taken. */
  async take(): Promise<PackedBatch | null> {
    const batch = await batches.take();
    return batch && { ...batch, drafts: toColumns(batch.drafts) };
  },
  /** Confirms that a batch is stored. */
  stored(id: number): void {
    batches.stored(id);
  },
  /** Resolves to the next warning for the log; after `stop`, to null. */
  nextWarning(): Promise<string | null> {
    return new Promise((resolve) => {
      listener = resolve;
      deliverWarning();
    });
  },
  /** Lines are read with these formats from now on. */
  useFormats(formats: FormatDescriptions): void {
    reader.use(new LineFormats(formats));
  },
  status(): LineReceiverStatus {
    const { senders: all, total } = senders.status(now());
    return {
      listeners: sockets.status(),
      senders: all,
      total,
      queued: senders.queued,
      file: file?.status() ?? null,
      formats: reader.counts.byFormat,
    };
  },
  /** Stops receiving; lines already received are still delivered. */
  async stop(): Promise<void> {
    await sockets.close();
    await file?.close();
    batches.stop();
    hasStopped = true;
    deliverWarning();
  },
};

export type LineReceiverThreadApi = typeof api;

serveThread(api);
