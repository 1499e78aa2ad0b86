// Aggregated network traffic: what one exporter saw between two ends within one window of 60 seconds.

export const FLOW_WINDOW_MS = 60_000;
export const ADDRESS_BYTES = 16;

/**
 * Rows of closed windows, column by column: a minute may have hundreds of thousands. Addresses are 16 bytes each, IPv4
 * in its mapped place (::ffff:a.b.c.d), so that both kinds compare and group alike.
 */
export interface FlowRows {
  readonly count: number;
  /** Milliseconds; the window's end is 60 seconds later. */
  readonly windowStart: Float64Array;
  readonly exporter: Uint8Array;
  readonly src: Uint8Array;
  readonly dst: Uint8Array;
  readonly srcPort: Uint16Array;
  readonly dstPort: Uint16Array;
  readonly protocol: Uint8Array;
  readonly tcpFlags: Uint16Array;
  readonly bytes: BigUint64Array;
  readonly packets: BigUint64Array;
  readonly firstSeen: Float64Array;
  readonly lastSeen: Float64Array;
  /** Of the export: 5, 9, 10 (IPFIX); sFlow v5 is told as 105 so that it cannot be taken for NetFlow v5, EVE as 106. */
  readonly version: Uint8Array;
  /** Null where no row is translated. */
  readonly nat: NatColumns | null;
}

/** Ends on the far side of a gateway that translates. A side that is not translated is zeros; a port is 0 where it is not told. */
export interface NatColumns {
  readonly src: Uint8Array;
  readonly dst: Uint8Array;
  readonly srcPort: Uint16Array;
  readonly dstPort: Uint16Array;
}
