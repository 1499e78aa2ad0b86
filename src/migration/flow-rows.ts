import { addressBytes } from "../lib/ip.ts";
import type { Flow } from "../model/flow-query.ts";
import { ADDRESS_BYTES, type FlowRows, type NatColumns } from "../model/flow.ts";

/** Flows as rows that a store takes. */
export function rowsOfFlows(flows: readonly Flow[]): FlowRows {
  const addresses = new Addresses();
  const column = (of: (flow: Flow) => string | null) => {
    const bytes = new Uint8Array(flows.length * ADDRESS_BYTES);
    for (const [row, flow] of flows.entries()) {
      const address = of(flow);
      if (address !== null) bytes.set(addresses.bytes(address), row * ADDRESS_BYTES);
    }
    return bytes;
  };
  const isTranslated = flows.some(({ natSrc, natDst }) => natSrc !== null || natDst !== null);
  const nat: NatColumns | null = isTranslated
    ? {
        src: column(({ natSrc }) => natSrc),
        dst: column(({ natDst }) => natDst),
        srcPort: Uint16Array.from(flows, ({ natSrcPort }) => natSrcPort ?? 0),
        dstPort: Uint16Array.from(flows, ({ natDstPort }) => natDstPort ?? 0),
      }
    : null;
  return {
    count: flows.length,
    windowStart: Float64Array.from(flows, ({ windowStartMs }) => windowStartMs),
    exporter: column(({ exporter }) => exporter),
    src: column(({ src }) => src),
    dst: column(({ dst }) => dst),
    srcPort: Uint16Array.from(flows, ({ srcPort }) => srcPort),
    dstPort: Uint16Array.from(flows, ({ dstPort }) => dstPort),
    protocol: Uint8Array.from(flows, ({ protocol }) => protocol),
    tcpFlags: Uint16Array.from(flows, ({ tcpFlags }) => tcpFlags),
    bytes: BigUint64Array.from(flows, ({ bytes }) => bytes),
    packets: BigUint64Array.from(flows, ({ packets }) => packets),
    firstSeen: Float64Array.from(flows, ({ firstSeenMs }) => firstSeenMs),
    lastSeen: Float64Array.from(flows, ({ lastSeenMs }) => lastSeenMs),
    version: Uint8Array.from(flows, ({ version }) => version),
    nat,
  };
}

/** A page has few different addresses for its rows. */
class Addresses {
  readonly #known = new Map<string, Uint8Array>();

  bytes(address: string): Uint8Array {
    let bytes = this.#known.get(address);
    if (!bytes) this.#known.set(address, (bytes = addressBytes(address)));
    return bytes;
  }
}

/** Everything that a flow says. Stores give their own ids. */
export function flowText(flow: Flow): string {
  const { id: _id, bytes, packets, ...rest } = flow;
  return JSON.stringify([...Object.entries(rest).sort(byName), String(bytes), String(packets)]);
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
