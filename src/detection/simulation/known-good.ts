import { isInRanges, parseCidr } from "../../lib/ip.ts";
import type { Scalar } from "../../model/condition.ts";
import type { ProjectedEvents } from "../../store/ports/projection.ts";
import { ValueMemo } from "./value-memo.ts";

// Sources that are probably harmless: internal addresses, and addresses without abuse reports.

export const ADDRESS_FIELD = "raw.src_ip";
export const SCORE_FIELD = "enrichment.abuse_ipdb.score";

const INTERNAL_NETWORKS = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "fc00::/7",
  "fe80::/10",
  "::1",
].map((network) => parseCidr(network)!);

/** Counts projected events from known-good sources; `fields` lists the projected fields. */
export function knownGoodCounter(fields: readonly string[]): (events: ProjectedEvents) => number {
  const [addressColumn, scoreColumn] = [fields.indexOf(ADDRESS_FIELD), fields.indexOf(SCORE_FIELD)];
  const internal = new ValueMemo((addresses) => addresses.some(isInternal));
  const unreported = new ValueMemo((scores) => scores.includes(0));
  return ({ length, columns }) => {
    const [addresses, scores] = [columns[addressColumn]!, columns[scoreColumn]!];
    const [isInternalBy, isUnreportedBy] = [internal.of(addresses), unreported.of(scores)];
    let count = 0;
    for (let i = 0; i < length; i++) {
      if (isInternalBy[addresses.numbers[i]!] || isUnreportedBy[scores.numbers[i]!]) count++;
    }
    return count;
  };
}

function isInternal(address: Scalar): boolean {
  return typeof address === "string" && isInRanges(INTERNAL_NETWORKS, address);
}
