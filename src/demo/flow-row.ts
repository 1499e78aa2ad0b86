import type { FlowRow } from "../model/flow-rows.ts";
import { GATEWAY } from "./site.ts";

export const TCP = 6;
export const UDP = 17;
export const ICMP = 1;
/** SYN, FIN, PSH and ACK: a complete connection. */
const TCP_FLAGS_COMPLETE = 27;
export const SYN = 2;

export interface RowParts {
  readonly at: number;
  readonly src: string;
  readonly dst: string;
  readonly protocol: number;
  /** The ports of the initiator and of the responder. */
  readonly ports: readonly [number, number];
  readonly bytes: number;
  readonly startMs?: number;
  readonly lengthMs?: number;
  readonly isReply?: true;
  readonly flags?: number;
}

/** One direction of a conversation, as the gateway exports it. */
export function flowRow(parts: RowParts): FlowRow {
  const { at, src, dst, protocol, ports, bytes, startMs = 0, lengthMs = 0, isReply, flags } = parts;
  const [srcPort, dstPort] = isReply ? [ports[1], ports[0]] : ports;
  return {
    windowStartMs: at,
    src,
    dst,
    srcPort,
    dstPort,
    protocol,
    tcpFlags: protocol === TCP ? (flags ?? TCP_FLAGS_COMPLETE) : 0,
    bytes: BigInt(bytes),
    packets: BigInt(Math.max(1, Math.ceil(bytes / 1100))),
    firstSeenMs: at + startMs,
    lastSeenMs: at + startMs + lengthMs,
    exporter: GATEWAY.ip,
    version: 9,
  };
}

/** Both directions of a conversation. */
export function exchange({ received, ...parts }: Omit<RowParts, "isReply"> & { readonly received: number }): FlowRow[] {
  const { src, dst } = parts;
  return [flowRow(parts), flowRow({ ...parts, src: dst, dst: src, bytes: received, isReply: true })];
}
