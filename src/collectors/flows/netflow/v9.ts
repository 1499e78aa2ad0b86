import { decodeSets, type DecodeContext, type Dialect } from "./packet-sets.ts";

// NetFlow v9 (RFC 3954). The record count of the header is ignored, since exporters disagree on its meaning; lengths decide.

const HEADER_BYTES = 20;
const V9: Dialect = { name: "NetFlow v9", templateSet: 0, optionsSet: 1, ipfix: false };
/** Separates v9 domains from IPFIX domains and v5 engines. */
const KEY_BASE = 9 * 2 ** 32;

export function decodeV9({ packet, undecoded }: DecodeContext, start: number, end: number): void {
  const { view, exporter } = packet;
  if (end - start < HEADER_BYTES) {
    const message = `a NetFlow v9 packet of ${end - start} bytes is shorter than its header`;
    exporter.drop("truncated", 1, message, packet.receivedMs);
    return;
  }
  packet.setClock(view.getUint32(start + 8) * 1000, view.getUint32(start + 4));
  const domain = exporter.domain(KEY_BASE + view.getUint32(start + 16), packet.port, packet.receivedMs);
  exporter.observe(domain, view.getUint32(start + 12), 1);
  decodeSets({ packet, dialect: V9, domain, undecoded }, start + HEADER_BYTES, end);
}
