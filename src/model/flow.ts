// Aggregated network traffic: what one exporter saw between two endpoints within a window of 60 seconds.

export const FLOW_WINDOW_MS = 60_000;
export const ADDRESS_BYTES = 16;

/**
 * Rows of closed windows, column by column: a minute may have hundreds of thousands. Addresses have 16 bytes each, IPv4
 * in mapped form (::ffff:a.b.c.d), so that both kinds compare and group alike.
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
  /** Export version: 5, 9 or 10 (IPFIX); sFlow v5 is 105, to distinguish it from NetFlow v5, and EVE is 106. */
  readonly version: Uint8Array;
  /** Null if no row is translated. */
  readonly nat: NatColumns | null;
}

/** Endpoints after translation by a gateway. An endpoint that is not translated is all zeros; an unknown port is 0. */
export interface NatColumns {
  readonly src: Uint8Array;
  readonly dst: Uint8Array;
  readonly srcPort: Uint16Array;
  readonly dstPort: Uint16Array;
}
