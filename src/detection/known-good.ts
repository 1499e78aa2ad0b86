import { isInRanges, parseCidr } from "../lib/ip.ts";
import type { Scalar } from "../model/condition.ts";
import type { ProjectedEvents } from "../store/store.ts";
import { ByNumber } from "./by-number.ts";

// Sources that are probably no attacker: addresses of the house, and those that nobody has reported for abuse.

export const ADDRESS_FIELD = "raw.src_ip";
export const SCORE_FIELD = "enrichment.abuse_ipdb.score";

const OWN_NETWORKS = [
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "fc00::/7",
  "fe80::/10",
  "::1",
].map((network) => parseCidr(network)!);

/** Counts those of projected events that come from such a source; `fields` are those that they bring along. */
export function knownGoodCounter(fields: readonly string[]): (events: ProjectedEvents) => number {
  const [addressPlace, scorePlace] = [fields.indexOf(ADDRESS_FIELD), fields.indexOf(SCORE_FIELD)];
  const own = new ByNumber((addresses) => addresses.some(isOwn));
  const unreported = new ByNumber((scores) => scores.includes(0));
  return ({ length, columns }) => {
    const [addresses, scores] = [columns[addressPlace]!, columns[scorePlace]!];
    const [isOwnBy, isUnreportedBy] = [own.of(addresses), unreported.of(scores)];
    let count = 0;
    for (let i = 0; i < length; i++) {
      if (isOwnBy[addresses.numbers[i]!] || isUnreportedBy[scores.numbers[i]!]) count++;
    }
    return count;
  };
}

function isOwn(address: Scalar): boolean {
  return typeof address === "string" && isInRanges(OWN_NETWORKS, address);
}
