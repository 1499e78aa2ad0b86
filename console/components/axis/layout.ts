import type { Domain } from "../../text/domains.ts";
import type { Lane, LaneGroup } from "./lanes.ts";

// Where each lane stands, from top to bottom.

export interface AxisSizes {
  /** Names of the lanes. */
  readonly left: number;
  readonly ruler: number;
  readonly lane: number;
  readonly alertRow: number;
  readonly groupGap: number;
  readonly traffic: number;
  /** Of the shapes. */
  readonly glyph: number;
}

export const FULL_SIZES: AxisSizes = {
  left: 172,
  ruler: 30,
  lane: 25,
  alertRow: 26,
  groupGap: 10,
  traffic: 56,
  glyph: 1,
};
const PHONE_SIZES: AxisSizes = { ...FULL_SIZES, left: 112 };
export const MINI_SIZES: AxisSizes = {
  left: 112,
  ruler: 18,
  lane: 18,
  alertRow: 16,
  groupGap: 5,
  traffic: 0,
  glyph: 0.75,
};

const PHONE_WIDTH = 760;

/** Where there is little room, the names of the lanes take less of it. */
export const sizesFor = (width: number) => (width <= PHONE_WIDTH ? PHONE_SIZES : FULL_SIZES);

/** Beside the lanes, on the right. */
export const RIGHT = { full: 14, mini: 6 };

export interface PlacedLane extends Lane {
  readonly domain: Domain;
  /** The middle of its row. */
  readonly y: number;
}

export interface PlacedGroup {
  readonly domain: Domain;
  readonly top: number;
  readonly height: number;
}

export interface Layout {
  readonly alertTop: number;
  readonly alertHeight: number;
  readonly groups: readonly PlacedGroup[];
  readonly lanes: readonly PlacedLane[];
  readonly trafficTop: number;
  readonly height: number;
  /** The middle of the row of a lane, or of `Other` if it stands there. */
  readonly laneY: (id: string) => number | undefined;
}

interface LayoutInput {
  readonly sizes: AxisSizes;
  readonly alertRows: number;
  readonly groups: readonly LaneGroup[];
  readonly laneUnder: ReadonlyMap<string, string>;
  readonly hasTraffic: boolean;
}

export function layoutOf({ sizes, alertRows, groups, laneUnder, hasTraffic }: LayoutInput): Layout {
  let y = sizes.ruler + 4;
  const alertTop = y;
  const alertHeight = alertRows * sizes.alertRow;
  if (alertRows > 0) y += alertHeight + sizes.groupGap;
  const placedGroups: PlacedGroup[] = [];
  const lanes: PlacedLane[] = [];
  for (const { domain, lanes: own } of groups) {
    const top = y;
    for (const lane of own) {
      lanes.push({ ...lane, domain, y: y + sizes.lane / 2 });
      y += sizes.lane;
    }
    placedGroups.push({ domain, top, height: y - top });
    y += sizes.groupGap;
  }
  const trafficTop = y;
  if (hasTraffic) y += sizes.traffic + 8;
  const middle = new Map(lanes.map(({ id, y: laneMiddle }) => [id, laneMiddle]));
  return {
    alertTop,
    alertHeight,
    groups: placedGroups,
    lanes,
    trafficTop,
    height: y + 2,
    laneY: (id) => middle.get(laneUnder.get(id) ?? id),
  };
}
