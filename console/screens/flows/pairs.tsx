import { useQuery } from "@tanstack/react-query";
import { useMemo, useState, type KeyboardEvent } from "react";
import { TableButton } from "../../components/charts/table-twin.tsx";
import { useWidth } from "../../components/charts/use-width.ts";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { talkersQuery, type FlowFilter, type FlowRange } from "../../data/flows.ts";
import { bytes } from "../../text/numbers.ts";
import type { FilterSearch } from "./flow-filter.ts";
import { layoutPairs, linkPath, parsePair, type Pair } from "./pair-layout.ts";

const PAIRS = 16;
const HEIGHT = 372;
const MARGIN_WIDE = 132;
const MARGIN_NARROW = 96;
const ADDRESS_CHARACTERS_MAX = 18;

interface PairsProps {
  readonly filter: FlowFilter;
  readonly range: FlowRange;
  readonly onRefine: (more: FilterSearch) => void;
}

const shortAddress = (address: string) =>
  address.length > ADDRESS_CHARACTERS_MAX ? `${address.slice(0, ADDRESS_CHARACTERS_MAX - 1)}…` : address;

/** The largest pairs. Choosing one shows only its traffic. */
export function Pairs({ filter, range, onRefine }: PairsProps) {
  const query = useQuery(talkersQuery(filter, range, "pair", PAIRS));
  const pairs = useMemo(() => (query.data ?? []).flatMap((row) => parsePair(row.key, row.bytes) ?? []), [query.data]);
  return (
    <>
      <SectionHeading
        right={
          pairs.length > 0 && (
            <TableButton
              title="Who sends to whom"
              columns={["From", "To", "Sent"]}
              rows={() =>
                pairs.map(({ src, dst, bytes: sent }) => ({
                  id: `${src} ${dst}`,
                  name: src,
                  cells: [dst, bytes(sent)],
                  choose: () => onRefine({ src, dst }),
                }))
              }
            />
          )
        }
      >
        Who sends to whom
      </SectionHeading>
      <div
        style={{ height: HEIGHT }}
        aria-busy={query.isPlaceholderData}
        className={query.isPlaceholderData ? "opacity-60" : ""}
      >
        {query.error !== null && query.data === undefined ? (
          <Failure error={query.error} onRetry={() => void query.refetch()} />
        ) : query.data === undefined ? (
          <Skeleton className="h-full" />
        ) : pairs.length === 0 ? (
          <Empty title="No traffic in this time" />
        ) : (
          <Diagram pairs={pairs} onRefine={onRefine} />
        )}
      </div>
    </>
  );
}

/** What a button of HTML does by itself. */
const onPress = (press: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Enter" && event.key !== " ") return;
  event.preventDefault();
  press();
};

function Diagram({ pairs, onRefine }: { pairs: readonly Pair[]; onRefine: (more: FilterSearch) => void }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [near, setNear] = useState<string>();
  const margin = width < 480 ? MARGIN_NARROW : MARGIN_WIDE;
  const layout = useMemo(() => layoutPairs(pairs, width, HEIGHT, margin), [pairs, width, margin]);
  const isNear = (pair: Pair) => near === undefined || near === `src ${pair.src}` || near === `dst ${pair.dst}`;
  return (
    <div ref={box}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} aria-label={`The ${pairs.length} largest pairs`} role="group">
          {layout.links.map((link) => (
            <path
              key={`${link.pair.src} ${link.pair.dst}`}
              d={linkPath(link) ?? ""}
              fill="none"
              stroke="var(--accent)"
              strokeOpacity={isNear(link.pair) ? 0.42 : 0.1}
              strokeWidth={Math.max(1, link.width ?? 1)}
              role="button"
              tabIndex={0}
              aria-label={`Show only ${link.pair.src} to ${link.pair.dst}, ${bytes(link.pair.bytes)}`}
              className="cursor-pointer hover:[stroke-opacity:0.7] focus-visible:[stroke-opacity:0.8]"
              onClick={() => onRefine({ src: link.pair.src, dst: link.pair.dst })}
              onKeyDown={onPress(() => onRefine({ src: link.pair.src, dst: link.pair.dst }))}
            >
              <title>{`${link.pair.src} → ${link.pair.dst}: ${bytes(link.pair.bytes)}`}</title>
            </path>
          ))}
          {layout.nodes.map((node) => {
            const isLeft = node.side === "src";
            const name = `${node.side} ${node.address}`;
            const middle = ((node.y0 ?? 0) + (node.y1 ?? 0)) / 2;
            return (
              <g
                key={name}
                role="button"
                tabIndex={0}
                aria-label={`Show only traffic ${isLeft ? "from" : "to"} ${node.address}, ${bytes(node.value ?? 0)}`}
                className="cursor-pointer"
                onMouseEnter={() => setNear(name)}
                onMouseLeave={() => setNear(undefined)}
                onClick={() => onRefine({ [node.side]: node.address })}
                onKeyDown={onPress(() => onRefine({ [node.side]: node.address }))}
              >
                <title>{`${node.address}: ${bytes(node.value ?? 0)}`}</title>
                <rect
                  x={node.x0}
                  y={node.y0}
                  width={(node.x1 ?? 0) - (node.x0 ?? 0)}
                  height={Math.max(2, (node.y1 ?? 0) - (node.y0 ?? 0))}
                  rx={2}
                  fill="var(--accent)"
                />
                <text
                  x={isLeft ? (node.x0 ?? 0) - 6 : (node.x1 ?? 0) + 6}
                  y={middle + 3.5}
                  textAnchor={isLeft ? "end" : "start"}
                  fontSize={10.5}
                  className="mono"
                  fill="var(--ink2)"
                >
                  {shortAddress(node.address)}
                </text>
              </g>
            );
          })}
        </svg>
      )}
    </div>
  );
}
