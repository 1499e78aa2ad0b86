import type { Collectors } from "../../data/site.ts";
import type { Guide } from "../../text/guides/guides.ts";
import { count } from "../../text/numbers.ts";
import { sourcesOf } from "../../data/sources.ts";

// What has arrived at the collector that a guide is about, to tell the first line of a device from what came before.

export interface Arrival {
  readonly id: string;
  readonly received: number;
  readonly words: string;
  readonly text: string | undefined;
  readonly isUnderstood: boolean;
}

const FLOW_VERSIONS: Readonly<Record<string, readonly number[]>> = {
  netflow: [5, 9, 10],
  ipfix: [10],
  sflow: [105],
};

function idsOf(collectors: Collectors, guide: Guide): ReadonlyMap<string, number> {
  const versions = FLOW_VERSIONS[guide.collector];
  if (versions !== undefined) {
    const exporters = collectors.exporters.filter((exporter) =>
      exporter.versions.some((version) => versions.includes(version)),
    );
    return new Map(exporters.map(({ address, packets }) => [`exporter ${address}`, packets]));
  }
  if (guide.collector === "webhook") {
    const hooks = collectors.webhooks.filter(({ name }) => name === guide.hook);
    return new Map(hooks.map(({ name, requests }) => [`webhook ${name}`, requests]));
  }
  const senders = collectors.senders.filter(({ collector }) => collector === guide.collector);
  return new Map(
    senders.map(({ collector, transport, address, lines }) => [`sender ${collector} ${transport} ${address}`, lines]),
  );
}

export function arrivals(collectors: Collectors, guide: Guide): Arrival[] {
  const ids = idsOf(collectors, guide);
  return sourcesOf(collectors, Date.now())
    .filter(({ id }) => ids.has(id))
    .map((source) => {
      const received = ids.get(source.id)!;
      const unit = source.unit === "packets" ? "packet" : "line";
      const outcome = source.lastLine?.outcome ?? source.summary;
      return {
        id: source.id,
        received,
        words: `${count(received, unit)} from ${source.name}. ${outcome}`,
        text: source.lastLine?.text,
        isUnderstood: source.lastLine?.isUnderstood ?? source.health === "receiving",
      };
    });
}

/** The source that has sent something since; one that is new before one that goes on. */
export function newArrival(before: readonly Arrival[], after: readonly Arrival[]): Arrival | undefined {
  const known = new Map(before.map(({ id, received }) => [id, received]));
  return after.find(({ id }) => !known.has(id)) ?? after.find(({ id, received }) => received > known.get(id)!);
}
