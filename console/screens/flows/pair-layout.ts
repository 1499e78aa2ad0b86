import { sankey, sankeyLinkHorizontal } from "d3-sankey";

// The largest pairs as a diagram: who sends on the left, who receives on the right. An address that does both stands on both sides.

export interface Pair {
  readonly src: string;
  readonly dst: string;
  readonly bytes: number;
}

export interface PairNode {
  readonly side: "src" | "dst";
  readonly address: string;
}

interface LinkData {
  readonly pair: Pair;
}

/** The key of a pair, as the service writes it. */
export function parsePair(key: string, bytes: number): Pair | undefined {
  const [src, dst] = key.split(" → ");
  return src === undefined || dst === undefined ? undefined : { src, dst, bytes };
}

export function layoutPairs(pairs: readonly Pair[], width: number, height: number, margin: number) {
  const nodes: PairNode[] = [];
  const places = new Map<string, number>();
  const placeOf = (side: PairNode["side"], address: string) => {
    const name = `${side} ${address}`;
    let place = places.get(name);
    if (place === undefined) {
      place = nodes.length;
      places.set(name, place);
      nodes.push({ side, address });
    }
    return place;
  };
  const links = pairs.map((pair) => ({
    source: placeOf("src", pair.src),
    target: placeOf("dst", pair.dst),
    value: Math.max(1, pair.bytes),
    pair,
  }));
  if (links.length === 0) return { nodes: [], links: [] };
  return sankey<PairNode, LinkData>()
    .nodeWidth(8)
    .nodePadding(14)
    .extent([
      [margin, 4],
      [Math.max(margin + 40, width - margin), height - 4],
    ])({ nodes: nodes.map((node) => ({ ...node })), links });
}

export const linkPath = sankeyLinkHorizontal<PairNode, LinkData>();
