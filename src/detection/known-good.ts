import { parseCidr, rangeContains } from "../lib/ip.ts";
import type { Scalar } from "../model/condition.ts";

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

const ADDRESSES_REMEMBERED_MAX = 50_000;

/** Says whether an event with these values of the two fields comes from such a source. */
export function knownGoodTest(): (addresses: readonly Scalar[], scores: readonly Scalar[]) => boolean {
  const remembered = new Map<Scalar, boolean>();
  const isOwn = (address: Scalar): boolean => {
    let answer = remembered.get(address);
    if (answer === undefined) {
      answer = typeof address === "string" && OWN_NETWORKS.some((network) => rangeContains(network, address));
      if (remembered.size >= ADDRESSES_REMEMBERED_MAX) remembered.clear();
      remembered.set(address, answer);
    }
    return answer;
  };
  return (addresses, scores) => scores.includes(0) || addresses.some(isOwn);
}
