import { useQuery } from "@tanstack/react-query";
import { EntityLink } from "../../components/entities/entity-link.tsx";
import { ENTITY_ICON, ENTITY_WORD, type Entity } from "../../components/entities/entity.ts";
import { ago, full } from "../../components/time/format.ts";
import { useNow } from "../../components/time/use-range.ts";
import { CopyButton } from "../../components/ui/copy.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { ScreenLink } from "../../components/ui/screen-link.tsx";
import type { EntityDetail } from "../../data/entities.ts";
import { literally } from "../../data/event-conditions.ts";
import { fieldValuesQuery } from "../../data/events.ts";
import { count } from "../../text/numbers.ts";
import { entityFilter, knownNames, knownWords, namingOf } from "./known.ts";

const LINK =
  "inline-flex h-8 items-center gap-2 rounded-md border border-line2/70 bg-raised px-3 text-sm font-medium whitespace-nowrap hover:bg-hover";

interface EntityHeadProps {
  readonly entity: Entity;
  readonly detail: EntityDetail | undefined;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What it is, what it is called, and since when it is known. */
export function EntityHead({ entity, detail, fromMs, toMs }: EntityHeadProps) {
  const nowMs = useNow();
  const isMono = entity.kind === "address" || entity.kind === "device" || entity.kind === "phone";
  const names = useNames(entity, fromMs, toMs);
  const words = detail === undefined ? [] : knownWords(detail);
  const seen = detail?.seen;
  return (
    <div className="flex flex-wrap items-start gap-4">
      <span className="grid size-12 shrink-0 place-items-center rounded-xl bg-accent-soft text-accent">
        <Icon name={ENTITY_ICON[entity.kind]} size={22} />
      </span>
      <div className="min-w-0 flex-1">
        <p className="text-2xs font-medium tracking-wide text-ink3 uppercase">{ENTITY_WORD[entity.kind]}</p>
        <div className="flex items-center gap-1">
          <h1 className={`text-xl font-semibold break-all ${isMono ? "mono" : "tracking-tight"}`}>{entity.value}</h1>
          <CopyButton text={entity.value} label={`Copy ${entity.value}`} />
        </div>
        <p
          className={`flex flex-wrap ${namingOf(entity) === undefined ? "" : "min-h-6"} items-center gap-x-3 gap-y-1 text-sm text-ink2`}
        >
          {detail?.hostname != null && <span className="mono text-ink">{detail.hostname}</span>}
          {names.map((name) => (
            <EntityLink key={`${name.kind} ${name.value}`} {...name} />
          ))}
          {words.map((word) => (
            <span key={word}>{word}</span>
          ))}
        </p>
        <p className="min-h-5 text-xs text-ink3">
          {seen != null && seen.first_seen !== null && seen.last_seen !== null && (
            <>
              <span title={full(seen.first_seen)}>First seen {ago(seen.first_seen, nowMs)}</span>
              {", "}
              <span title={full(seen.last_seen)}>last seen {ago(seen.last_seen, nowMs)}</span>
              {`, ${count(seen.events, "event")} in all`}
              {!seen.complete && " (older ones are still being counted)"}
            </>
          )}
        </p>
      </div>
      <div className="flex flex-wrap gap-2">
        <ScreenLink to="/events" search={{ filter: entityFilter(entity) }} className={LINK}>
          <Icon name="scroll-text" size={14} />
          Its events
        </ScreenLink>
        <ScreenLink to="/axis" search={{ entity: `${entity.kind}:${entity.value}` }} className={LINK}>
          <Icon name="activity" size={14} />
          On the time axis
        </ScreenLink>
        {entity.kind === "address" && (
          <ScreenLink to="/flows" search={{ host: entity.value }} className={LINK}>
            <Icon name="waves" size={14} />
            Its flows
          </ScreenLink>
        )}
      </div>
    </div>
  );
}

function useNames(entity: Entity, fromMs: number, toMs: number): Entity[] {
  const naming = namingOf(entity);
  const conditions =
    naming === undefined ? [] : [{ field: naming.field, operator: "=" as const, value: literally(entity.value) }];
  const fields = naming?.names.map(({ field }) => field) ?? [];
  const values = useQuery({
    ...fieldValuesQuery({ fromMs, toMs, conditions, words: "" }, fields, 1),
    enabled: naming !== undefined,
  });
  return naming === undefined || values.data === undefined ? [] : knownNames(naming, values.data);
}
