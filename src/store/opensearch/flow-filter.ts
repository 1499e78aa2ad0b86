import { formatAddress, type AddressRange } from "../../lib/ip.ts";
import type { FlowFilter } from "../../model/flow-query.ts";

// A filter over flows as a query of OpenSearch.

export type Clause = Readonly<Record<string, unknown>>;

export function flowQuery(filter: FlowFilter, ...more: readonly Clause[]): Clause {
  const { fromMs, toMs, src, dst, host, exporter, port, protocol, nat, natPort } = filter;
  const clauses: Clause[] = [];
  if (fromMs !== undefined || toMs !== undefined) {
    const bounds = {
      ...(fromMs !== undefined && { gte: Math.ceil(fromMs) }),
      ...(toMs !== undefined && { lt: Math.ceil(toMs) }),
    };
    clauses.push({ range: { timestamp: bounds } });
  }
  if (src) clauses.push(within("src_ip", src));
  if (dst) clauses.push(within("dst_ip", dst));
  if (host) clauses.push(either(within("src_ip", host), within("dst_ip", host)));
  if (exporter) clauses.push(within("exporter_ip", exporter));
  if (port !== undefined) clauses.push(either({ term: { src_port: port } }, { term: { dst_port: port } }));
  if (protocol !== undefined) clauses.push({ term: { protocol } });
  if (nat !== undefined || natPort !== undefined) clauses.push(either(natEnd("src", filter), natEnd("dst", filter)));
  return { bool: { filter: [...clauses, ...more] } };
}

const either = (...clauses: readonly Clause[]): Clause => ({ bool: { should: clauses, minimum_should_match: 1 } });

/** Address and port of the same end. */
function natEnd(end: "src" | "dst", { nat, natPort }: FlowFilter): Clause {
  return {
    bool: {
      filter: [
        ...(nat ? [within(`nat_${end}_ip`, nat)] : []),
        ...(natPort === undefined ? [] : [{ term: { [`nat_${end}_port`]: natPort } }]),
      ],
    },
  };
}

function within(field: string, { from, to }: AddressRange): Clause {
  if (from === to) return { term: { [field]: formatAddress(from) } };
  return { range: { [field]: { gte: formatAddress(from), lte: formatAddress(to) } } };
}
