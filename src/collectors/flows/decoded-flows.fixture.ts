import { formatAddress } from "../../lib/ip.ts";
import { FlowDecoder } from "./flow-decoder.ts";
import {
  exactCounter,
  NAT_DST_WORD,
  NAT_PORTS_WORD,
  NAT_SRC_WORD,
  NAT_WORDS,
  type RecordBatch,
} from "./flow-records.ts";
import type { ExporterStatus, FlowVersion } from "./flow-status.ts";

// Decodes packets into flows as plain objects.

export interface DecodedFlow {
  readonly src: string;
  readonly dst: string;
  readonly srcPort: number;
  readonly dstPort: number;
  readonly protocol: number;
  readonly tcpFlags: number;
  readonly bytes: bigint;
  readonly packets: bigint;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly version: FlowVersion;
  readonly natSrc: string | null;
  readonly natDst: string | null;
  readonly natSrcPort: number | null;
  readonly natDstPort: number | null;
}

/** The NAT fields of an untranslated flow. */
export const NO_NAT = { natSrc: null, natDst: null, natSrcPort: null, natDstPort: null } as const;

export class PacketReader {
  readonly flows: DecodedFlow[] = [];
  readonly decoder: FlowDecoder;

  constructor(clockSkewMaxMs = Number.MAX_SAFE_INTEGER) {
    this.decoder = new FlowDecoder({ take: (batch) => void this.flows.push(...flowsOf(batch)), clockSkewMaxMs });
  }

  read(packet: Uint8Array, { from = "192.0.2.1", port = 2055, atMs = 1_700_000_000_000 } = {}): DecodedFlow[] {
    const before = this.flows.length;
    const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
    this.decoder.decode(view, 0, packet.length, from, atMs, port);
    this.decoder.flush();
    return this.flows.slice(before);
  }

  expire(atMs: number): void {
    this.decoder.expire(atMs);
    this.decoder.flush();
  }

  status(from = "192.0.2.1", atMs = 1_700_000_000_000): ExporterStatus {
    return this.decoder.status(atMs, new Set()).exporters.find(({ address }) => address === from)!;
  }
}

function flowsOf(batch: RecordBatch): DecodedFlow[] {
  return Array.from({ length: batch.count }, (_, row) => ({
    src: addressAt(batch.src, row),
    dst: addressAt(batch.dst, row),
    srcPort: batch.ports[row]! >>> 16,
    dstPort: batch.ports[row]! & 0xffff,
    protocol: batch.protocol[row]!,
    tcpFlags: batch.tcpFlags[row]!,
    bytes: exactCounter(batch.bytes, row),
    packets: exactCounter(batch.packets, row),
    firstSeen: batch.firstSeen[row]!,
    lastSeen: batch.lastSeen[row]!,
    version: batch.version[row]! as FlowVersion,
    ...natOf(batch, row),
  }));
}

function natOf(batch: RecordBatch, row: number) {
  const words = batch.nat.slice(row * NAT_WORDS, (row + 1) * NAT_WORDS);
  if (batch.isTranslated[row] === 0) words.fill(0);
  const address = (at: number) => (words.subarray(at, at + 4).some(Boolean) ? addressAt(words, at / 4) : null);
  return {
    natSrc: address(NAT_SRC_WORD),
    natDst: address(NAT_DST_WORD),
    natSrcPort: words[NAT_PORTS_WORD]! >>> 16 || null,
    natDstPort: words[NAT_PORTS_WORD]! & 0xffff || null,
  };
}

function addressAt(words: Uint32Array, row: number): string {
  const bytes = new Uint8Array(words.buffer, row * 16, 16);
  return formatAddress(bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n));
}
