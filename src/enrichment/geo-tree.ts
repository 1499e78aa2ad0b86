import { fourNumber, sixGroups } from "../lib/ip.ts";

// Walks the search tree of an MMDB file without allocating. It finds the record of an address; the reader of the file then decodes
// each record once.

export interface GeoTreeShape {
  readonly nodeCount: number;
  /** Bits of one of a node's two records: 24, 28 or 32. */
  readonly recordSize: number;
  readonly ipVersion: number;
}

export class GeoTree {
  readonly #bytes: Uint8Array;
  readonly #shape: GeoTreeShape;
  readonly #fourStart: number;

  constructor(bytes: Uint8Array, shape: GeoTreeShape) {
    this.#bytes = bytes;
    this.#shape = shape;
    let node = 0;
    // IPv4 is at ::/96.
    if (shape.ipVersion === 6) for (let bit = 0; bit < 96 && node < shape.nodeCount; bit++) node = this.#next(node, 0);
    this.#fourStart = node;
  }

  /** The record number of a canonical address; undefined if there is none. */
  find(address: string): number | undefined {
    const four = fourNumber(address);
    const { nodeCount, ipVersion } = this.#shape;
    let node = four === undefined ? 0 : this.#fourStart;
    if (four !== undefined) {
      for (let bit = 31; bit >= 0 && node < nodeCount; bit--) node = this.#next(node, (four >>> bit) & 1);
    } else {
      // A file with IPv4 only has no answer for IPv6.
      const groups = ipVersion === 6 ? sixGroups(address) : undefined;
      if (!groups) return undefined;
      for (let bit = 0; bit < 128 && node < nodeCount; bit++)
        node = this.#next(node, (groups[bit >> 4]! >>> (15 - (bit & 15))) & 1);
    }
    return node > nodeCount ? node : undefined;
  }

  #next(node: number, side: number): number {
    const bytes = this.#bytes;
    switch (this.#shape.recordSize) {
      case 24: {
        const at = node * 6 + side * 3;
        return (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      }
      case 28: {
        const at = node * 7 + side * 4;
        const high = side === 0 ? (bytes[at + 3]! & 0xf0) << 20 : (bytes[at - 1]! & 0x0f) << 24;
        return high | (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      }
      default: {
        const at = node * 8 + side * 4;
        return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0;
      }
    }
  }
}
