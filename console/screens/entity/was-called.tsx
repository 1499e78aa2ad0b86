import { useQuery } from "@tanstack/react-query";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { ENTITY_ICON, type Entity, type EntityKind } from "../../components/entities/entity.ts";
import { Sentence } from "../../components/entities/sentence.tsx";
import { clock, day } from "../../components/time/format.ts";
import { Icon } from "../../components/ui/icons.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import { Empty, Skeleton } from "../../components/ui/states.tsx";
import type { Event } from "../../data/client.ts";
import type { EntityDetail } from "../../data/entities.ts";
import { latestEventsQuery } from "../../data/events.ts";
import { ENTITY_FIELD, entityValue, type Condition } from "../../data/event-conditions.ts";
import { exact } from "../../text/numbers.ts";
import { entityFilter, relatedGroups } from "./known.ts";
import { Part } from "./part.tsx";

const GROUP_WORD: Record<EntityKind, string> = {
  address: "Addresses",
  user: "People",
  door: "Doors",
  camera: "Cameras",
  device: "Devices and names",
  phone: "Numbers",
};
const LEASES_MAX = 5;

interface WasCalledProps {
  readonly entity: Entity;
  readonly detail: EntityDetail | undefined;
  readonly fromMs: number;
  readonly toMs: number;
}

const hasLeases = (kind: EntityKind) => kind === "address" || kind === "device";

/** The names, people and addresses that occur with it, and the leases it was given. */
export function WasCalled({ entity, detail, fromMs, toMs }: WasCalledProps) {
  const groups = detail === undefined ? [] : relatedGroups(detail);
  const read = detail?.related?.events_read ?? 0;
  return (
    <Part
      title={hasLeases(entity.kind) ? "Was called, and seen with" : "Seen with"}
      part="related"
      detail={detail}
      minHeight="min-h-56"
      right={
        detail?.related?.complete === false && (
          <span className="text-2xs text-ink3">from the newest {exact(read)} events</span>
        )
      }
    >
      {groups.length === 0 ? (
        <Empty title="Nothing else is named with it" />
      ) : (
        <div className="space-y-3">
          {groups.map(({ kind, entities }) => (
            <div key={kind}>
              <h3 className="mb-1 flex items-center gap-1.5 text-xs font-medium text-ink3">
                <Icon name={ENTITY_ICON[kind]} size={13} />
                {GROUP_WORD[kind]}
              </h3>
              <ul className="flex flex-wrap gap-x-4 gap-y-1.5 text-sm">
                {entities.map(({ value, events }) => (
                  <li key={value} className="flex max-w-full items-center gap-1">
                    <EntityLink kind={kind} value={value} />
                    <ScreenLink
                      to="/events"
                      search={{ filter: entityFilter(entity, { kind, value }) }}
                      className="grid h-6 min-w-6 place-items-center text-2xs text-ink3 hover:text-ink hover:underline"
                    >
                      {exact(events)}
                    </ScreenLink>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </div>
      )}
      {hasLeases(entity.kind) && detail !== undefined && <Leases entity={entity} fromMs={fromMs} toMs={toMs} />}
    </Part>
  );
}

function Leases({ entity, fromMs, toMs }: Pick<WasCalledProps, "entity" | "fromMs" | "toMs">) {
  const conditions: Condition[] = [
    { field: ENTITY_FIELD, operator: "=", value: entityValue(entity) },
    { field: "type", operator: "=", value: "dhcp_lease" },
  ];
  const leases = useQuery(latestEventsQuery({ fromMs, toMs, conditions, words: "" }, LEASES_MAX));
  if (leases.data === undefined || leases.data.total === 0) return null;
  return (
    <div className="mt-3">
      <h3 className="mb-1 flex items-center text-xs font-medium text-ink3">
        Latest leases
        <ScreenLink
          to="/events"
          search={{ type: "dhcp_lease", filter: entityFilter(entity) }}
          className="ml-auto text-accent hover:underline"
        >
          All {exact(leases.data.total)}
        </ScreenLink>
      </h3>
      <EventSentences events={leases.data.events} />
    </div>
  );
}

/** The newest events of an entity, said in words. */
export function Newest({ entity, detail, fromMs, toMs }: WasCalledProps) {
  const conditions: Condition[] = [{ field: ENTITY_FIELD, operator: "=", value: entityValue(entity) }];
  const newest = useQuery(latestEventsQuery({ fromMs, toMs, conditions, words: "" }, 10));
  return (
    <Part title="Newest events" part="events" detail={detail} minHeight="min-h-56">
      {newest.data === undefined ? (
        <Skeleton className="h-56" />
      ) : newest.data.total === 0 ? (
        <Empty title="Nothing in this time" />
      ) : (
        <EventSentences events={newest.data.events} />
      )}
    </Part>
  );
}

function EventSentences({ events }: { events: readonly Event[] }) {
  return (
    <ul className="text-sm">
      {events.map((event) => (
        <li key={event.id} className="flex items-baseline gap-3 py-1">
          <time
            dateTime={event.timestamp}
            title={event.timestamp}
            className="mono w-32 shrink-0 text-xs whitespace-nowrap text-ink3"
          >
            {day(event.timestamp)} {clock(event.timestamp)}
          </time>
          <span className="words min-w-0 flex-1 text-ink2">
            <Sentence event={event} />
          </span>
        </li>
      ))}
    </ul>
  );
}
