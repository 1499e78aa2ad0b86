import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { DOMAIN_ICON, DOMAIN_WORD } from "../../text/domains.ts";
import { bytesPerSecond } from "../../text/numbers.ts";
import { absoluteRange } from "../time/range.ts";
import { Icon, type IconName } from "../ui/icons.tsx";
import type { AxisSizes, PlacedLane } from "./layout.ts";
import type { Picture } from "./picture.ts";
import { peakOf, type Traffic } from "./traffic.ts";
import type { View } from "./view.ts";

interface LaneHeadsProps {
  readonly picture: Picture;
  readonly sizes: AxisSizes;
  readonly isMini: boolean;
  readonly traffic: Traffic | undefined;
}

/** The names of the lanes. A door or camera leads to its page, a number to the list behind it. */
export const LaneHeads = memo(function LaneHeads({ picture, sizes, isMini, traffic }: LaneHeadsProps) {
  const { layout, alertRows, view } = picture;
  const isOneRow = layout.alertHeight <= sizes.alertRow && !isMini;
  const more = alertRows.ongoing.length + alertRows.hidden.length;
  return (
    <div className="absolute top-0 left-0" style={{ width: sizes.left, height: layout.height }}>
      {layout.alertHeight > 0 && (
        <Head icon="bell" label="Alerts" top={layout.alertTop} height={layout.alertHeight} isMini={isMini}>
          <p
            className={`text-right font-semibold text-ink ${isMini ? "text-[10.5px]/4" : "text-xs/6"} ${isOneRow ? "inline-block w-1/3" : ""}`}
          >
            Alerts
          </p>
          {more > 0 && !isMini && (
            <p className={`text-right text-2xs/4 ${isOneRow ? "inline-block w-2/3" : ""}`}>
              <Link
                to="/alerts"
                search={{ view: "all", time: "overlap", ...absoluteRange(view.fromMs, view.toMs) } as never}
                title={alertRows.ongoing.map(({ title }) => title).join("\n")}
                className="text-ink3 hover:text-ink hover:underline"
              >
                {alertRows.hidden.length === 0 ? `+ ${more} going on` : `+ ${more} more`}
              </Link>
            </p>
          )}
        </Head>
      )}
      {layout.groups.map(({ domain, top, height }) => (
        <Head
          key={domain}
          icon={DOMAIN_ICON[domain]}
          label={DOMAIN_WORD[domain]}
          top={top}
          height={height}
          isMini={isMini}
        />
      ))}
      {layout.lanes.map((lane) => (
        <LaneName key={lane.id} lane={lane} sizes={sizes} isMini={isMini} view={view} />
      ))}
      {traffic !== undefined && (
        <Head icon="waves" label="Traffic" top={layout.trafficTop} height={sizes.traffic} isMini={isMini}>
          <p className="pt-0.5 text-right text-xs text-ink2">Traffic</p>
          <p className="text-right text-2xs">
            <Link
              to="/flows"
              search={absoluteRange(view.fromMs, view.toMs) as never}
              title="The most at once; opens the flows of this time"
              className="text-ink3 hover:text-ink hover:underline"
            >
              {bytesPerSecond(peakOf(traffic, view.fromMs, view.toMs))}
            </Link>
          </p>
        </Head>
      )}
    </div>
  );
});

interface HeadProps {
  readonly icon: IconName;
  readonly label: string;
  readonly top: number;
  readonly height: number;
  readonly isMini: boolean;
  readonly children?: React.ReactNode;
}

function Head({ icon, label, top, height, isMini, children }: HeadProps) {
  return (
    <div className={`absolute left-0 w-full ${isMini ? "pr-3 pl-4" : "pr-3 pl-10"}`} style={{ top, height }}>
      {!isMini && <span className="absolute top-0 left-2.5 h-full w-[3px] rounded-full bg-line2" />}
      <Icon
        name={icon}
        size={isMini ? 11 : 14}
        label={label}
        className={`absolute text-ink3 ${isMini ? "top-[3px] left-0.5" : "top-[5px] left-5"}`}
      />
      {children}
    </div>
  );
}

interface LaneNameProps {
  readonly lane: PlacedLane;
  readonly sizes: AxisSizes;
  readonly isMini: boolean;
  readonly view: View;
}

function LaneName({ lane, sizes, isMini, view }: LaneNameProps) {
  const text = isMini ? "text-[10.5px]" : "text-xs";
  return (
    <div
      className={`absolute right-3 truncate text-right text-ink2 ${text} ${isMini ? "left-4" : "left-10"}`}
      style={{ top: lane.y - sizes.lane / 2, height: sizes.lane, lineHeight: `${sizes.lane}px` }}
    >
      {/* The lanes of the small axis are too close together for a finger. */}
      {lane.entity === undefined || isMini ? (
        <span title={lane.name}>{lane.name}</span>
      ) : (
        <Link
          to="/entity/$kind/$value"
          params={lane.entity}
          search={absoluteRange(view.fromMs, view.toMs) as never}
          title={lane.name}
          className="hover:text-ink hover:underline"
        >
          {lane.name}
        </Link>
      )}
    </div>
  );
}
