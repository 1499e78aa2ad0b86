import { decodeSets, type DecodeContext, type Dialect } from "./packet-sets.ts";

// IPFIX (RFC 7011).

const IPFIX_HEADER_BYTES = 16;
const IPFIX: Dialect = { name: "IPFIX", templateSet: 2, optionsSet: 3, ipfix: true };
const IPFIX_VERSION = 10;
const KEY_BASE = 10 * 2 ** 32;

/** True for the domain keys of IPFIX, as opposed to v9. */
export const isIpfixKey = (key: number) => key >= KEY_BASE;

/** Decodes all messages of a datagram: some exporters send several in one. */
export function decodeIpfix(context: DecodeContext, start: number, end: number): void {
  let at = start;
  do at = decodeMessage(context, at, end);
  while (end - at >= IPFIX_HEADER_BYTES && context.packet.view.getUint16(at) === IPFIX_VERSION);
}

/** Returns the end of the message. */
function decodeMessage({ packet, undecoded }: DecodeContext, start: number, end: number): number {
  const { view, exporter, receivedMs } = packet;
  const given = end - start;
  const length = given < IPFIX_HEADER_BYTES ? 0 : view.getUint16(start + 2);
  if (given < IPFIX_HEADER_BYTES || length > given) {
    const message = `an IPFIX message of ${given} bytes declares a length of ${length}`;
    exporter.drop("truncated", 1, message, receivedMs);
    return end;
  }
  if (length < IPFIX_HEADER_BYTES) {
    const message = `an IPFIX message declares a length of ${length} bytes, less than its header`;
    exporter.drop("malformed", 1, message, receivedMs);
    return end;
  }
  packet.setClock(view.getUint32(start + 4) * 1000, -1);
  const domain = exporter.domain(KEY_BASE + view.getUint32(start + 12), packet.port, receivedMs);
  const context = { packet, dialect: IPFIX, domain, undecoded };
  const optionsBefore = exporter.optionRecords;
  const records = decodeSets(context, start + IPFIX_HEADER_BYTES, start + length);
  // The sequence number counts the records before this message: the next number follows from the records in it.
  const flows = (records ?? 0) - (exporter.optionRecords - optionsBefore);
  exporter.observe(domain, view.getUint32(start + 8), records ?? 0, flows);
  if (records === undefined) domain.sequence.reset();
  return start + length;
}
