import { decodeSets, type Dialect } from "./sets.ts";
import type { Decoding } from "../decoder.ts";

// IPFIX (RFC 7011).

const IPFIX_HEADER_BYTES = 16;
const IPFIX: Dialect = { name: "IPFIX", templateSet: 2, optionsSet: 3, ipfix: true };
const IPFIX_VERSION = 10;
const KEY_BASE = 10 * 2 ** 32;

/** Whether the key of a domain is one of IPFIX rather than of v9. */
export const isIpfixKey = (key: number) => key >= KEY_BASE;

/** Some exporters put several messages into one datagram. */
export function decodeIpfix(decoding: Decoding, start: number, end: number): void {
  let at = start;
  do at = decodeMessage(decoding, at, end);
  while (end - at >= IPFIX_HEADER_BYTES && decoding.packet.view.getUint16(at) === IPFIX_VERSION);
}

/** Gives where the message ends. */
function decodeMessage({ packet, waiting }: Decoding, start: number, end: number): number {
  const { view, exporter, receivedMs } = packet;
  const given = end - start;
  const length = given < IPFIX_HEADER_BYTES ? 0 : view.getUint16(start + 2);
  if (given < IPFIX_HEADER_BYTES || length > given) {
    const message = `an IPFIX message of ${given} bytes says it has ${length}`;
    exporter.drop("truncated", 1, message, receivedMs);
    return end;
  }
  if (length < IPFIX_HEADER_BYTES) {
    exporter.drop("malformed", 1, `an IPFIX message says it has ${length} bytes, less than its header`, receivedMs);
    return end;
  }
  packet.setClock(view.getUint32(start + 4) * 1000, -1);
  const domain = exporter.domain(KEY_BASE + view.getUint32(start + 12), packet.port, receivedMs);
  const context = { packet, dialect: IPFIX, domain, waiting };
  const optionsBefore = exporter.optionRecords;
  const records = decodeSets(context, start + IPFIX_HEADER_BYTES, start + length);
  // The number in the header counts the records before this message, so those in it must be known to expect the next.
  const flows = (records ?? 0) - (exporter.optionRecords - optionsBefore);
  exporter.observe(domain, view.getUint32(start + 8), records ?? 0, flows);
  if (records === undefined) domain.sequence.forget();
  return start + length;
}
