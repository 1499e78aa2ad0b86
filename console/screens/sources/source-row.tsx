import { Sparkline } from "../../components/charts/sparkline.tsx";
import { TableButton, type TwinRow } from "../../components/charts/table-twin.tsx";
import { ago } from "../../components/time/format.ts";
import { Icon, type IconName } from "../../components/ui/icons.tsx";
import { exact, short } from "../../text/numbers.ts";
import type { Health, Source } from "../../data/sources.ts";

const HEALTH: Record<Health, { icon: IconName; word: string; look: string }> = {
  receiving: { icon: "circle-check", word: "Receiving", look: "text-good" },
  trouble: { icon: "triangle-alert", word: "Needs a look", look: "text-high" },
  silent: { icon: "pause", word: "Silent", look: "text-ink3" },
};

interface SourceRowProps {
  readonly source: Source;
  readonly nowMs: number;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

export function SourceRow({ source, nowMs, isOpen, onToggle }: SourceRowProps) {
  const { icon, word, look } = HEALTH[source.health];
  const rate = `${short(source.perMinute)} ${source.unit}/min`;
  return (
    <li className="border-b border-line last:border-0">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className="grid w-full grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_130px_110px_minmax(0,1.4fr)_20px] items-center gap-4 px-4 py-3 text-left hover:bg-hover/60 max-md:grid-cols-[minmax(0,1fr)_auto]"
      >
        <span className="min-w-0">
          <span className="mono block truncate text-sm font-medium">{source.name}</span>
          <span className="block truncate text-2xs text-ink3">{source.kind}</span>
        </span>
        <span className={`flex items-center gap-1.5 text-xs font-medium ${look}`}>
          <Icon name={icon} size={14} />
          {word}
        </span>
        <span className="max-md:hidden">
          <Sparkline values={source.history} label={`${source.unit} a minute over the last hour`} />
        </span>
        <span className="text-xs text-ink2 max-md:hidden" title={exact(source.perMinute)}>
          {rate}
        </span>
        <span className="min-w-0 text-xs text-ink2 max-md:hidden">
          <span className="block truncate">{source.summary}</span>
          <span className="text-2xs text-ink3">
            {source.lastSeen === null ? "never" : `last ${ago(source.lastSeen, nowMs)}`}
          </span>
        </span>
        <Icon name={isOpen ? "chevron-up" : "chevron-down"} size={14} className="text-ink3 max-md:hidden" />
      </button>
      {isOpen && <SourceDetail source={source} nowMs={nowMs} />}
    </li>
  );
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

const minutes = (history: readonly number[]): TwinRow[] =>
  history
    .map((value, index) => ({ id: index, name: String(history.length - 1 - index), cells: [exact(value)] }))
    .toReversed();

function SourceDetail({ source, nowMs }: { source: Source; nowMs: number }) {
  return (
    <div className="space-y-3 bg-app px-4 py-3 text-sm">
      <p className="text-ink2">{source.summary}</p>
      {source.lastLine !== null && (
        <div>
          <p className="mb-1 text-xs text-ink3">
            Last line, {ago(source.lastLine.at, nowMs)}:{" "}
            <span className={source.lastLine.isUnderstood ? "text-good" : "text-high"}>{source.lastLine.outcome}</span>
          </p>
          <pre className="mono overflow-x-auto rounded-md border border-line bg-panel p-3 text-xs break-all whitespace-pre-wrap">
            {source.lastLine.text}
          </pre>
        </div>
      )}
      <dl className="flex flex-wrap items-center gap-x-8 gap-y-1 text-xs">
        <div className="flex items-center gap-1">
          <dt className="text-ink3">last hour</dt>
          <dd>
            <TableButton
              title={`${capital(source.unit)} a minute from ${source.name}`}
              columns={["Minutes ago", capital(source.unit)]}
              rows={() => minutes(source.history)}
            />
          </dd>
        </div>
        {source.facts.map(([name, value]) => (
          <div key={name} className="flex gap-2">
            <dt className="text-ink3">{name}</dt>
            <dd>{typeof value === "number" ? exact(value) : value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
