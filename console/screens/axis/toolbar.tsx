import type { ReactNode } from "react";
import { keyLabel, KEYS } from "../../app/keys.ts";
import { lengthOf, type View } from "../../components/axis/view.ts";
import { ENTITY_ICON, type Entity } from "../../components/entities/entity.ts";
import { clock, day, duration } from "../../components/time/format.ts";
import { copyText } from "../../components/ui/copy.tsx";
import { IconButton } from "../../components/ui/button.tsx";
import { Icon, type IconName } from "../../components/ui/icons.tsx";
import { SeverityBars } from "../../components/ui/severity.tsx";
import { Skeleton } from "../../components/ui/states.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import type { AlertDetail } from "../../data/client.ts";
import { absoluteRange } from "../../components/time/range.ts";
import { EntityFilter } from "./entity-filter.tsx";

export interface AxisActions {
  readonly earlier: () => void;
  readonly later: () => void;
  readonly zoomIn: () => void;
  readonly zoomOut: () => void;
  readonly fit: () => void;
  readonly follow: () => void;
}

interface ToolbarProps {
  readonly views: ReactNode;
  readonly view: View;
  readonly isFollowing: boolean;
  readonly alert: AlertDetail | undefined;
  /** The address names an alert that is not known yet: its place is kept. */
  readonly isAlertAwaited: boolean;
  readonly entities: readonly Entity[];
  readonly isFilterOpen: boolean;
  readonly onFilterOpen: (open: boolean) => void;
  readonly onRemoveAlert: () => void;
  readonly onEntities: (entities: readonly Entity[]) => void;
  readonly actions: AxisActions;
}

export function Toolbar(props: ToolbarProps) {
  const { views, view, isFollowing, alert, entities, isFilterOpen, onFilterOpen, onRemoveAlert, onEntities, actions } =
    props;
  const isAwaited = alert === undefined && props.isAlertAwaited;
  return (
    <div className="shrink-0 border-b border-line px-4 pt-3 pb-2 max-md:flex max-md:flex-wrap max-md:items-center max-md:gap-2">
      {/* On a phone both rows are one, which wraps: what is shown comes before who is followed. */}
      <div className="flex min-w-0 items-center gap-x-3 max-md:contents">
        <h1 className="text-lg font-semibold tracking-tight whitespace-nowrap">One time axis</h1>
        <div className="flex min-w-0 items-center max-md:order-1">{views}</div>
        <div className="ml-auto flex shrink-0 items-center gap-1">
          <span className="mr-1 text-xs whitespace-nowrap text-ink2 max-xl:hidden">
            {day(view.fromMs)} {clock(view.fromMs)} <span className="text-ink3">for</span> {duration(lengthOf(view))}
          </span>
          <Action icon="chevron-left" does="earlier" act={actions.earlier} />
          <Action icon="chevron-right" does="later" act={actions.later} />
          <Action icon="minus" does="zoomOut" act={actions.zoomOut} />
          <Action icon="plus" does="zoomIn" act={actions.zoomIn} />
          <Action icon="maximize-2" does="fit" act={actions.fit} />
          <Action icon="radio" does="follow" act={actions.follow} isOn={isFollowing} />
          <IconButton
            icon="link-2"
            label="Copy a link to exactly this"
            bordered
            className="size-7!"
            onClick={() => {
              const { from, to } = absoluteRange(view.fromMs, view.toMs);
              const address = new URL(location.href);
              address.searchParams.delete("range");
              address.searchParams.set("from", from!);
              address.searchParams.set("to", to!);
              void copyText(address.href).then((isCopied) =>
                showToast(isCopied ? "Copied a link to exactly this." : "This browser does not let the page copy.", {
                  isProblem: !isCopied,
                }),
              );
            }}
          />
        </div>
      </div>
      <div className="mt-1.5 flex min-w-0 items-center gap-2 max-md:order-2 max-md:mt-0 max-md:flex-wrap">
        {isAwaited && <Skeleton className="h-7 w-80 rounded-full max-md:w-50" />}
        {alert !== undefined && (
          <Chip name={`the alert ${alert.title}`} onRemove={onRemoveAlert}>
            <SeverityBars severity={alert.severity} size={13} />
            <span className="truncate font-medium" title={alert.title}>
              {alert.title}
            </span>
          </Chip>
        )}
        {entities.map((entity) => (
          <Chip
            key={`${entity.kind} ${entity.value}`}
            name={entity.value}
            onRemove={() => onEntities(entities.filter((other) => other !== entity))}
          >
            <Icon name={ENTITY_ICON[entity.kind]} size={13} className="text-ink3" />
            <span className="truncate font-medium" title={entity.value}>
              {entity.value}
            </span>
          </Chip>
        ))}
        <EntityFilter
          open={isFilterOpen}
          onOpenChange={onFilterOpen}
          onChoose={(entity) =>
            onEntities([
              ...entities.filter(({ kind, value }) => kind !== entity.kind || value !== entity.value),
              entity,
            ])
          }
        />
      </div>
    </div>
  );
}

interface ActionProps {
  readonly icon: IconName;
  readonly does: keyof AxisActions;
  readonly act: () => void;
  readonly isOn?: boolean;
}

function Action({ icon, does, act, isOn }: ActionProps) {
  const { does: words, keys } = KEYS.axis[does];
  return (
    <IconButton
      icon={icon}
      label={words.charAt(0).toUpperCase() + words.slice(1)}
      title={`${words.charAt(0).toUpperCase() + words.slice(1)} (${keyLabel(keys[0])})`}
      bordered
      onClick={act}
      {...(isOn !== undefined && { "aria-pressed": isOn })}
      className={`size-7! ${isOn === true ? "bg-accent-soft text-accent" : ""}`}
    />
  );
}

function Chip({ name, onRemove, children }: { name: string; onRemove: () => void; children: ReactNode }) {
  return (
    <span className="inline-flex h-7 max-w-80 min-w-0 items-center gap-2 rounded-full max-md:max-w-50 border border-line2/60 bg-raised pr-1 pl-2.5 text-xs">
      {children}
      <button
        type="button"
        aria-label={`Remove ${name}`}
        onClick={onRemove}
        className="grid size-6 shrink-0 place-items-center rounded-full text-ink3 hover:bg-hover hover:text-ink"
      >
        <Icon name="x" size={12} />
      </button>
    </span>
  );
}
