import { memo } from "react";
import type { Heat } from "./heat.ts";
import type { Picture } from "./picture.ts";

interface HeatLayerProps {
  readonly heat: Heat;
  readonly picture: Picture;
  readonly laneHeight: number;
}

/** A cell for each step of a lane, the fuller the more events; each lane by its own busiest cell. */
export const HeatLayer = memo(function HeatLayer({ heat, picture, laneHeight }: HeatLayerProps) {
  const { scale, layout, pane } = picture;
  const width = Math.max(1.5, scale.x(heat.stepMs) - scale.x(0) - 1);
  const height = laneHeight - 9;
  return [...heat.lanes].map(([lane, cells]) => {
    const y = layout.laneY(lane);
    if (y === undefined) return null;
    const most = Math.max(...cells.map(({ count }) => count));
    // One element for each depth of colour, not one for each cell.
    const paths = new Map<number, string[]>();
    for (const { atMs, count } of cells) {
      if (atMs + heat.stepMs < pane.fromMs || atMs > pane.toMs) continue;
      const depth = Math.ceil(Math.sqrt(count / most) * DEPTHS);
      const path = `M${scale.x(atMs).toFixed(1)} ${y - height / 2}h${width.toFixed(1)}v${height}h${-width.toFixed(1)}z`;
      const same = paths.get(depth);
      if (same === undefined) paths.set(depth, [path]);
      else same.push(path);
    }
    return (
      <g key={lane} fill="var(--accent)">
        {[...paths].map(([depth, path]) => (
          <path key={depth} d={path.join("")} opacity={0.1 + (0.85 * depth) / DEPTHS} />
        ))}
      </g>
    );
  });
});

const DEPTHS = 10;
