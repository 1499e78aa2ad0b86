import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";
import { ENTITY_KINDS, type Entity, type EntityKind } from "../../components/entities/entity.ts";
import { useRange } from "../../components/time/use-range.ts";
import { Panel } from "../../components/ui/heading.tsx";
import { EmptyScreen, Failure } from "../../components/ui/states.tsx";
import { entityDetailQuery } from "../../data/entities.ts";
import { useMay } from "../../data/session.ts";
import { EntityAlerts } from "./entity-alerts.tsx";
import { EntityAxis } from "./entity-axis.tsx";
import { EntityEvents } from "./entity-events.tsx";
import { EntityHead } from "./entity-head.tsx";
import { TalksTo } from "./talks-to.tsx";
import { Newest, WasCalled } from "./was-called.tsx";

/** One person, door, camera, device, address or number, and everything that is known about it. */
export function EntityScreen() {
  const { kind, value } = useParams({ from: "/entity/$kind/$value" });
  const mayRead = useMay("events:read");
  if (!mayRead) {
    return (
      <EmptyScreen heading={value} title="Your key may not see this">
        <p>This page needs the scope events:read.</p>
      </EmptyScreen>
    );
  }
  if (!(ENTITY_KINDS as readonly string[]).includes(kind)) {
    return (
      <EmptyScreen heading={value} title={`There is no page for a ${kind}`}>
        <p>There are pages for addresses, people, doors, cameras, devices and numbers.</p>
      </EmptyScreen>
    );
  }
  return <EntityPage key={`${kind} ${value}`} kind={kind as EntityKind} value={value} />;
}

function EntityPage({ kind, value }: Entity) {
  const { fromMs, toMs } = useRange();
  const entity = useMemo<Entity>(() => ({ kind, value }), [kind, value]);
  const { data: detail, error, isPlaceholderData, refetch } = useQuery(entityDetailQuery(entity, fromMs, toMs));
  const range = { fromMs, toMs };
  return (
    <main className="h-full overflow-y-auto p-4">
      <div
        className={`mx-auto grid max-w-7xl grid-cols-[minmax(0,1fr)_minmax(0,1fr)] gap-4 max-lg:grid-cols-[minmax(0,1fr)] ${isPlaceholderData ? "opacity-60" : ""}`}
      >
        <Panel className="col-span-full">
          <EntityHead entity={entity} detail={detail} {...range} />
        </Panel>
        {error !== null && detail === undefined ? (
          <Panel className="col-span-full">
            <Failure error={error} onRetry={() => void refetch()} />
          </Panel>
        ) : (
          <>
            <EntityAxis entity={entity} {...range} />
            <EntityAlerts entity={entity} detail={detail} />
            <EntityEvents entity={entity} detail={detail} {...range} />
            {kind === "address" && <TalksTo address={detail?.value ?? value} detail={detail} />}
            <WasCalled entity={entity} detail={detail} {...range} />
            <Newest entity={entity} detail={detail} {...range} />
          </>
        )}
      </div>
    </main>
  );
}
