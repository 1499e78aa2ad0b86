import { decodeSets, type Dialect } from "./sets.ts";
import type { Decoding } from "../decoder.ts";

// NetFlow v9 (RFC 3954). Its header counts records, but exporters disagree on what they count: lengths alone are believed.

const HEADER_BYTES = 20;
const V9: Dialect = { name: "NetFlow v9", templateSet: 0, optionsSet: 1, ipfix: false };
/** Keeps the domains of v9 apart from those of IPFIX and of v5's engines. */
const KEY_BASE = 9 * 2 ** 32;

export function decodeV9({ packet, waiting }: Decoding, start: number, end: number): void {
  const { view, exporter } = packet;
  if (end - start < HEADER_BYTES) {
    const message = `a NetFlow v9 packet of ${end - start} bytes has no whole header`;
    exporter.drop("truncated", 1, message, packet.receivedMs);
    return;
  }
  packet.setClock(view.getUint32(start + 8) * 1000, view.getUint32(start + 4));
  const domain = exporter.domain(KEY_BASE + view.getUint32(start + 16), packet.port, packet.receivedMs);
  exporter.observe(domain, view.getUint32(start + 12), 1);
  decodeSets({ packet, dialect: V9, domain, waiting }, start + HEADER_BYTES, end);
}
