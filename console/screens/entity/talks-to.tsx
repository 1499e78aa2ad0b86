import { AreaChart, shadeOf } from "../../components/charts/area-chart.tsx";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { absoluteRange } from "../../components/time/range.ts";
import { useSetRange } from "../../components/time/use-range.ts";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty } from "../../components/ui/states.tsx";
import type { EntityDetail } from "../../data/entities.ts";
import { bytes, bytesPerSecond, count } from "../../text/numbers.ts";
import { portText } from "../../text/ports.ts";
import { Part } from "./part.tsx";

type Traffic = NonNullable<EntityDetail["traffic"]>;
const PEERS_MAX = 6;
const HEIGHT = 150;
const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

/** The flows of an address: how much, with whom, and on which ports. */
export function TalksTo({ address, detail }: { address: string; detail: EntityDetail | undefined }) {
  const traffic = detail?.traffic;
  const received = traffic == null ? 0 : sum(traffic.in.bytes);
  const sent = traffic == null ? 0 : sum(traffic.out.bytes);
  return (
    <Part
      title={
        <>
          Talks to
          {received + sent > 0 && (
            <span className="ml-2 font-normal text-ink3">
              {bytes(received)} in, {bytes(sent)} out
            </span>
          )}
        </>
      }
      part="traffic"
      detail={detail}
      minHeight="min-h-[380px]"
      className="col-span-full"
      right={
        <ScreenLink to="/flows" search={{ host: address }} className="text-xs font-medium text-accent hover:underline">
          Its flows
        </ScreenLink>
      }
    >
      {traffic == null || received + sent === 0 ? (
        <Empty title="No flow from or to it in this time" />
      ) : (
        <TrafficParts address={address} detail={detail!} traffic={traffic} />
      )}
    </Part>
  );
}

function TrafficParts({ address, detail, traffic }: { address: string; detail: EntityDetail; traffic: Traffic }) {
  const setRange = useSetRange();
  const perSecond = (values: readonly number[]) => values.map((value) => value / detail.interval_secs);
  const series = [
    { name: "in", values: perSecond(traffic.in.bytes) },
    { name: "out", values: perSecond(traffic.out.bytes) },
  ];
  const largestPort = Math.max(1, ...traffic.ports.map((port) => port.bytes));
  return (
    <>
      <AreaChart
        label={`Traffic of ${address} over time, in and out`}
        title={`Traffic of ${address} over time`}
        timesMs={detail.timestamps.map((at) => Date.parse(at))}
        stepMs={detail.interval_secs * 1000}
        series={series}
        format={bytesPerSecond}
        height={HEIGHT}
        onZoom={(fromMs, toMs) => setRange(absoluteRange(Math.round(fromMs), Math.round(toMs)))}
        onUnzoom={() => setRange({})}
      />
      <ul aria-label="Legend" className="mb-4 flex gap-4 pl-16 text-2xs text-ink2">
        {series.map(({ name }, index) => (
          <li key={name} className="flex items-center gap-1.5">
            <span
              aria-hidden
              className="size-2.5 rounded-sm"
              style={{ background: shadeOf(index, series.length, false) }}
            />
            {name}
          </li>
        ))}
      </ul>
      <div className="grid gap-x-8 gap-y-5 md:grid-cols-3">
        <Peers title="Sends to it" peers={traffic.peers_in} searchOf={(peer) => ({ src: peer, dst: address })} />
        <Peers title="It sends to" peers={traffic.peers_out} searchOf={(peer) => ({ src: address, dst: peer })} />
        <div>
          <h3 className="mb-1 text-xs font-medium text-ink3">Ports</h3>
          <ul>
            {traffic.ports.slice(0, PEERS_MAX).map((port) => (
              <Row key={port.port} share={port.bytes / largestPort}>
                <ScreenLink
                  to="/flows"
                  search={{ host: address, port: port.port }}
                  className="mono min-w-0 flex-1 truncate hover:underline"
                >
                  {portText(port.port)}
                </ScreenLink>
                <span className="text-ink3">{bytes(port.bytes)}</span>
              </Row>
            ))}
          </ul>
        </div>
      </div>
    </>
  );
}

interface PeersProps {
  readonly title: string;
  readonly peers: Traffic["peers_in"];
  readonly searchOf: (peer: string) => { readonly src: string; readonly dst: string };
}

function Peers({ title, peers, searchOf }: PeersProps) {
  const largest = Math.max(1, ...peers.map((peer) => peer.bytes));
  return (
    <div className="min-w-0">
      <h3 className="mb-1 text-xs font-medium text-ink3">{title}</h3>
      {peers.length === 0 && <p className="text-xs text-ink3">Nobody in this time.</p>}
      <ul>
        {peers.slice(0, PEERS_MAX).map((peer) => (
          <Row key={peer.address} share={peer.bytes / largest}>
            <span className="min-w-0 flex-1 truncate">
              <EntityLink kind="address" value={peer.address} />
              {peer.hostname !== null && <span className="ml-1.5 text-2xs text-ink3">{peer.hostname}</span>}
            </span>
            <ScreenLink to="/flows" search={searchOf(peer.address)} className="text-ink2 hover:underline">
              <span title={count(peer.flow_count, "flow")}>{bytes(peer.bytes)}</span>
            </ScreenLink>
          </Row>
        ))}
      </ul>
    </div>
  );
}

function Row({ share, children }: { share: number; children: React.ReactNode }) {
  return (
    <li className="relative isolate flex h-7 items-center gap-2 px-2 text-xs">
      <span
        aria-hidden
        className="absolute inset-y-0.5 left-0 -z-10 rounded-sm bg-accent/10"
        style={{ width: `${share * 100}%` }}
      />
      {children}
    </li>
  );
}
