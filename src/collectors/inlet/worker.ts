import { workerData } from "node:worker_threads";
import type { TlsOptions } from "node:tls";
import { parseCidr } from "../../lib/ip.ts";
import { serveThread } from "../../lib/thread.ts";
import { toColumns, type DraftColumns } from "../draft.ts";
import { ListenFailure } from "../listener.ts";
import { Batches, type Batch } from "./batches.ts";
import { FollowedFile } from "./followed-file.ts";
import { LineReader, type ReaderSettings } from "./reader.ts";
import { Senders } from "./sender.ts";
import { Sockets, type ListenPlace } from "./sockets.ts";
import type { InletStatus } from "./status.ts";

// The thread that lines come in by: sockets, framing, reading and all limits are here, and batches for whoever asks.

export interface InletThreadData {
  readonly ports: { readonly syslog: number | null; readonly syslog_tls: number | null; readonly eve: number | null };
  readonly addresses: readonly string[];
  readonly allowedSenders: readonly string[];
  readonly tls: Pick<TlsOptions, "cert" | "key" | "ca"> | null;
  readonly eveSocket: string | null;
  readonly eveFile: { readonly path: string; readonly notePath: string } | null;
  readonly linesPerSecondMax: number;
  readonly lineBytesMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerSenderMax: number;
  readonly reader: ReaderSettings;
}

/** A batch as it goes to the main thread. */
export type GivenBatch = Omit<Batch, "drafts"> & { readonly drafts: DraftColumns };

/** What the system is asked to hold of datagrams that are not read yet; it may give less. */
const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024;
/** An address family that the machine does not have. */
const NO_FAMILY = new Set<string | undefined>(["EAFNOSUPPORT", "EADDRNOTAVAIL", "EINVAL"]);
const TROUBLES_MAX = 100;
const FILE_SENDER = "127.0.0.1";

const data = workerData as InletThreadData;
const now = Date.now;
const senders = new Senders({
  allowed: data.allowedSenders.map((text) => parseCidr(text)!),
  linesPerSecondMax: data.linesPerSecondMax,
  now,
});
const reader = new LineReader(data.reader);
const batches = new Batches(reader, now);
const sockets = new Sockets({
  lineBytesMax: data.lineBytesMax,
  connectionsMax: data.connectionsMax,
  connectionsPerSenderMax: data.connectionsPerSenderMax,
  receiveBufferBytes: RECEIVE_BUFFER_BYTES,
  senders,
  wake: (sender) => batches.wake(sender),
  now,
});
const file = data.eveFile
  ? new FollowedFile({
      ...data.eveFile,
      lineBytesMax: data.lineBytesMax,
      reader,
      sender: senders.find("eve", "file", FILE_SENDER),
      give: (batch) => batches.give(batch),
      now,
      tell,
    })
  : undefined;

const troubles: string[] = [];
let asking: ((trouble: string | null) => void) | undefined;
let isOver = false;

function tell(trouble: string): void {
  if (troubles.length < TROUBLES_MAX) troubles.push(trouble);
  answer();
}

function answer(): void {
  if (!asking || (troubles.length === 0 && !isOver)) return;
  asking(troubles.shift() ?? null);
  asking = undefined;
}

/** Every interface means every one that there is: a machine without IPv6 is no reason not to start. */
async function listenAt(place: ListenPlace, listen: (place: ListenPlace) => Promise<void>): Promise<void> {
  try {
    await listen(place);
  } catch (error) {
    const code = error instanceof ListenFailure ? (error.cause as NodeJS.ErrnoException).code : undefined;
    if (place.address !== "::" || !NO_FAMILY.has(code) || data.addresses.length === 1) throw error;
    tell("this machine has no IPv6: lines are collected over IPv4 alone");
  }
}

const api = {
  /** Opens everything, or rejects with what a person can do about it. */
  async start(): Promise<void> {
    const { ports, tls, eveSocket } = data;
    for (const address of data.addresses) {
      if (ports.syslog !== null) {
        const place = { name: "syslog", address, port: ports.syslog } as const;
        await listenAt(place, (where) => sockets.listenUdp(where));
        await listenAt(place, (where) => sockets.listenTcp(where));
      }
      if (ports.syslog_tls !== null && tls) {
        const options = { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined };
        await listenAt({ name: "syslog_tls", address, port: ports.syslog_tls }, (where) =>
          sockets.listenTls(where, options),
        );
      }
      if (ports.eve !== null) {
        await listenAt({ name: "eve", address, port: ports.eve }, (where) => sockets.listenTcp(where));
      }
    }
    if (eveSocket !== null) await sockets.listenUnix("eve", eveSocket);
    file?.start();
  },
  /** The next batch, as soon as there is one; null once all is given after a stop. */
  async take(): Promise<GivenBatch | null> {
    const batch = await batches.take();
    return batch && { ...batch, drafts: toColumns(batch.drafts) };
  },
  /** What was given is stored. */
  stored(id: number): void {
    batches.stored(id);
  },
  /** The next thing that a person should know of; null after a stop. */
  trouble(): Promise<string | null> {
    return new Promise((resolve) => {
      asking = resolve;
      answer();
    });
  },
  status(): InletStatus {
    const { senders: all, total } = senders.status(now());
    return {
      listeners: sockets.status(),
      senders: all,
      total,
      waiting: senders.waiting,
      file: file?.status() ?? null,
    };
  },
  /** Takes nothing more from outside; what is here is still given. */
  async stop(): Promise<void> {
    await sockets.close();
    await file?.close();
    batches.stop();
    isOver = true;
    answer();
  },
};

export type InletThreadApi = typeof api;

serveThread(api);
