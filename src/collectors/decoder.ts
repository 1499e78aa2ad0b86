import { parseAddress } from "../lib/ip.ts";
import { ADDRESS_BYTES } from "../model/flow.ts";
import { Exporter } from "./exporter.ts";
import { decodeIpfix } from "./netflow/ipfix.ts";
import { TemplateRoom } from "./netflow/room.ts";
import { decodeV5 } from "./netflow/v5.ts";
import { decodeV9 } from "./netflow/v9.ts";
import { WaitingRoom } from "./netflow/waiting.ts";
import { Packet } from "./packet.ts";
import type { ReadFlow } from "./reading.ts";
import { RecordBatch, setCounter } from "./records.ts";
import { decodeSflow } from "./sflow/sflow.ts";
import { DROP_REASONS, noDrops, type ExporterStatus, type FlowVersion } from "./status.ts";

// From the bytes of a packet to flow records. Whatever the bytes are, it neither throws nor reads beyond them: what cannot
// be used is counted with its reason.

/** Senders that are remembered; a made-up one is forgotten for the next, one that has sent flows is not. */
export const EXPORTERS_MAX = 4096;
/** An exporter that sent flows may be forgotten for another once it has been silent for so long. */
const FORGET_AFTER_MS = 3_600_000;
/** How long to believe that nobody can be forgotten: looking at all of them for every packet would be a way to stall us. */
const FULL_FOR_MS = 1000;

export interface Decoding {
  readonly packet: Packet;
  readonly waiting: WaitingRoom;
  readonly room: TemplateRoom;
}

type Decode = (decoding: Decoding, start: number, end: number) => void;

/** By what the first two bytes of a packet say. sFlow's version has four: its first two are zero. */
const PROTOCOLS: Readonly<Record<number, { readonly version: FlowVersion; readonly decode: Decode }>> = {
  5: { version: 5, decode: ({ packet }, start, end) => decodeV5(packet, start, end) },
  9: { version: 9, decode: decodeV9 },
  10: { version: 10, decode: decodeIpfix },
};
const SFLOW = { version: 105, decode: decodeSflow } as const;
const SFLOW_VERSION = 5;
const EVE_VERSION = 106;

export class Decoder {
  readonly #decoding: Decoding;
  readonly #packet: Packet;
  readonly #exporters = new Map<string, Exporter>();
  /** Senders that no flow has come from, the one known longest first. */
  readonly #unproven = new Set<Exporter>();
  readonly #slots: (Exporter | undefined)[] = [];
  readonly #free: number[] = [];
  /** Of those who are forgotten, and of those who were never known. */
  readonly #forgotten = noDrops();
  #fullSinceMs = -FULL_FOR_MS;
  #last: { address: string; exporter: Exporter } | undefined;

  /** `take` is given full batches; a flush gives it the rest. */
  constructor({ take, clockSkewMaxMs }: { take: (batch: RecordBatch) => void; clockSkewMaxMs: number }) {
    this.#packet = new Packet(new RecordBatch(take), clockSkewMaxMs);
    this.#decoding = {
      packet: this.#packet,
      waiting: new WaitingRoom(),
      room: new TemplateRoom((except) => this.#forgetUnproven(except)),
    };
  }

  /** `address` is the sender's canonical spelling. Records appear in a batch, at the latest with the next flush. */
  decode(view: DataView, start: number, end: number, address: string, receivedMs: number): void {
    const exporter = this.#find(address, receivedMs);
    if (!exporter) return;
    const packet = this.#packet;
    exporter.packets++;
    exporter.lastSeenMs = receivedMs;
    const version = end - start < 2 ? -1 : view.getUint16(start);
    const isSflow = version === 0 && end - start >= 4 && view.getUint16(start + 2) === SFLOW_VERSION;
    const protocol = isSflow ? SFLOW : PROTOCOLS[version];
    if (!protocol) {
      const told =
        end - start < 4 ? `a packet of ${end - start} bytes` : `a packet that begins with version ${version}`;
      const reason = end - start < 4 ? "truncated" : "unknown_version";
      exporter.drop(reason, 1, `${told} is none of NetFlow v5, v9, IPFIX and sFlow v5`, receivedMs);
      return;
    }
    packet.view = view;
    packet.exporter = exporter;
    packet.version = protocol.version;
    packet.receivedMs = receivedMs;
    exporter.versions.add(protocol.version);
    const before = exporter.records;
    protocol.decode(this.#decoding, start, end);
    if (before === 0 && exporter.records > 0) this.#unproven.delete(exporter);
  }

  /** Flows that an IDS has told of in words; they are records like those of an exporter. */
  tell(flows: readonly ReadFlow[], address: string, nowMs: number): void {
    const exporter = this.#find(address, nowMs);
    if (!exporter) return;
    exporter.packets++;
    exporter.lastSeenMs = nowMs;
    exporter.versions.add(EVE_VERSION);
    this.#packet.receivedMs = nowMs;
    this.#packet.shiftMs = 0;
    const { batch } = this.#packet;
    for (const flow of flows) {
      const [source, destination] = [parseAddress(flow.srcIp), parseAddress(flow.dstIp)];
      if (source === undefined || destination === undefined) {
        exporter.drop("no_address", 1, "a flow has an end that is no address", nowMs);
        continue;
      }
      const row = batch.next();
      batch.exporter[row] = exporter.index;
      putAddress(batch.src, row, source);
      putAddress(batch.dst, row, destination);
      batch.ports[row] = ((flow.srcPort << 16) | (flow.dstPort & 0xffff)) >>> 0;
      batch.protocol[row] = flow.protocol;
      batch.version[row] = EVE_VERSION;
      batch.tcpFlags[row] = flow.tcpFlags;
      setCounter(batch.bytes, row, flow.bytes);
      setCounter(batch.packets, row, flow.packets);
      this.#packet.setTimes(row, flow.firstMs, flow.lastMs);
      exporter.records++;
      exporter.lastRecordMs = nowMs;
    }
    if (exporter.records > 0) this.#unproven.delete(exporter);
  }

  flush(): void {
    this.#packet.batch.flush();
  }

  /** Whom the number that records carry means. */
  exporter(index: number): Exporter {
    return this.#slots[index]!;
  }

  /** Someone who has not sent anything, but is connected. */
  meet(address: string, nowMs: number): void {
    this.#find(address, nowMs);
  }

  expire(nowMs: number): void {
    this.#decoding.waiting.expire(nowMs);
  }

  get templates(): number {
    return this.#decoding.room.used;
  }

  get waitingBytes(): number {
    return this.#decoding.waiting.bytes;
  }

  status(
    nowMs: number,
    connected: ReadonlySet<string>,
  ): { exporters: ExporterStatus[]; drops: Record<string, number> } {
    const drops = { ...this.#forgotten };
    for (const exporter of this.#exporters.values()) addDrops(drops, exporter);
    const exporters = [...this.#exporters.values()].map((exporter) =>
      exporter.status(nowMs, connected.has(exporter.address)),
    );
    return { exporters, drops };
  }

  #find(address: string, nowMs: number): Exporter | undefined {
    if (this.#last?.address === address) return this.#last.exporter;
    let exporter = this.#exporters.get(address);
    if (!exporter) {
      if (this.#exporters.size >= EXPORTERS_MAX && !this.#makeRoom(nowMs)) {
        this.#forgotten.too_many_exporters++;
        return undefined;
      }
      const index = this.#free.pop() ?? this.#slots.length;
      exporter = new Exporter(index, address, nowMs);
      this.#slots[index] = exporter;
      this.#exporters.set(address, exporter);
      this.#unproven.add(exporter);
    }
    this.#last = { address, exporter };
    return exporter;
  }

  #makeRoom(nowMs: number): boolean {
    if (nowMs - this.#fullSinceMs < FULL_FOR_MS) return false;
    const [unproven] = this.#unproven;
    const gone =
      unproven ?? [...this.#exporters.values()].find((one) => nowMs - (one.lastSeenMs ?? 0) > FORGET_AFTER_MS);
    if (!gone) {
      this.#fullSinceMs = nowMs;
      return false;
    }
    this.#leave(gone, nowMs);
    return true;
  }

  #forgetUnproven(except: Exporter): boolean {
    for (const exporter of this.#unproven) {
      if (exporter === except || exporter.templates === 0) continue;
      this.#leave(exporter, this.#packet.receivedMs);
      return true;
    }
    return false;
  }

  #leave(gone: Exporter, nowMs: number): void {
    this.#decoding.waiting.leave(gone, nowMs);
    this.#decoding.room.release(gone, gone.templates);
    this.#unproven.delete(gone);
    this.#exporters.delete(gone.address);
    if (this.#last?.exporter === gone) this.#last = undefined;
    addDrops(this.#forgotten, gone);
    this.#free.push(gone.index);
  }
}

function putAddress(column: Uint32Array, row: number, address: bigint): void {
  const bytes = new DataView(column.buffer, row * ADDRESS_BYTES, ADDRESS_BYTES);
  bytes.setBigUint64(0, address >> 64n);
  bytes.setBigUint64(8, address & 0xffff_ffff_ffff_ffffn);
}

function addDrops(sum: Record<string, number>, exporter: Exporter): void {
  for (const reason of DROP_REASONS) sum[reason]! += exporter.drops[reason];
}
