import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { keyLabel, KEYS, useKeys } from "../../app/keys.ts";
import { siteQuery } from "../../data/site.ts";
import { usePreferences, setPreference } from "../../data/preferences.ts";
import { CopyButton } from "../ui/copy.tsx";
import { Button } from "../ui/button.tsx";
import { SelectField, TextField } from "../ui/fields.tsx";
import { Icon } from "../ui/icons.tsx";
import { Popover } from "../ui/popover.tsx";
import { copyableRange, parseRangeText, PRESETS, presetLabel, utcRange, type RangeSearch } from "./range.ts";
import { recentRanges, rememberRange } from "./recent-ranges.ts";
import { hoursWords, siteHourRanges } from "./site-hours.ts";
import { useRange, useSetRange } from "./use-range.ts";
import { useZone, zoneName, zoneOf } from "./zone.ts";

/** Presets, a text, two fields of the calendar, and what was chosen lately. */
export function RangePicker() {
  const [isOpen, setOpen] = useState(false);
  const range = useRange();
  const setRange = useSetRange();
  const zone = useZone();
  const { zone: zoneChoice } = usePreferences();
  useKeys("everywhere", { time: () => setOpen(true) });
  const choose = (search: RangeSearch) => {
    rememberRange(search);
    setRange(search);
    setOpen(false);
  };
  return (
    <Popover
      title="Time"
      open={isOpen}
      onOpenChange={setOpen}
      trigger={
        <button
          type="button"
          title={utcRange(range)}
          className="flex h-8 items-center gap-2 rounded-md border border-line bg-app px-2.5 text-sm whitespace-nowrap text-ink2 hover:border-line2"
        >
          <Icon name="calendar" size={14} className="md:hidden" />
          <span className="max-md:sr-only">{range.label}</span>
          <Icon name="chevron-down" size={13} className="max-md:hidden" />
          <kbd aria-hidden className="max-md:hidden">
            {keyLabel(KEYS.everywhere.time.keys[0])}
          </kbd>
        </button>
      }
    >
      <div className="grid w-[640px] max-w-full grid-cols-[200px_1fr] gap-4 max-md:grid-cols-1">
        <div className="space-y-3">
          <ul className="space-y-0.5" aria-label="Lengths">
            {PRESETS.map((preset) => (
              <li key={preset}>
                <button
                  type="button"
                  aria-pressed={range.label === presetLabel(preset)}
                  onClick={() => choose({ range: preset })}
                  className={`w-full rounded-md px-2.5 py-1.5 text-left text-sm hover:bg-hover ${range.label === presetLabel(preset) ? "bg-accent-soft text-accent" : "text-ink2"}`}
                >
                  {presetLabel(preset)}
                </button>
              </li>
            ))}
          </ul>
          <SiteHourChoices onChoose={choose} />
        </div>
        <div className="space-y-3">
          <TypedRange zone={zone} onChoose={choose} />
          <CalendarRange key={range.label} zone={zone} fromMs={range.fromMs} toMs={range.toMs} onChoose={choose} />
          <Recent onChoose={choose} />
          <SelectField
            label="Times are shown in"
            value={zoneChoice}
            onChange={(value) => setPreference("zone", value as typeof zoneChoice)}
            options={[
              { value: "browser", label: `This browser's zone (${zoneName(zoneOf("browser"))})` },
              { value: "site", label: `The site's zone (${zoneName(zoneOf("site"))})` },
              { value: "UTC", label: "UTC" },
            ]}
          />
          <div className="flex items-center text-2xs text-ink3">
            Copy as ISO 8601
            <CopyButton text={copyableRange(range, zone)} label="Copy the range as ISO 8601" />
          </div>
        </div>
      </div>
    </Popover>
  );
}

/** Offered for the hours that the service's settings name. */
function SiteHourChoices({ onChoose }: { onChoose: (range: RangeSearch) => void }) {
  const { data: site } = useQuery(siteQuery);
  const [nowMs] = useState(Date.now);
  if (site === undefined) return null;
  const choices = siteHourRanges(site.hours, site.timezone, nowMs);
  if (choices.length === 0) return null;
  return (
    <div>
      <h3 className="px-2.5 text-xs font-medium text-ink2">Site hours</h3>
      <p className="px-2.5 text-2xs text-ink3">
        {hoursWords(site.hours)} ({zoneName(site.timezone)})
      </p>
      <ul className="mt-1 space-y-0.5" aria-label="Site hours">
        {choices.map(({ label, search }) => (
          <li key={label}>
            <button
              type="button"
              onClick={() => onChoose(search)}
              className="w-full rounded-md px-2.5 py-1.5 text-left text-sm text-ink2 hover:bg-hover"
            >
              {label}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function TypedRange({ zone, onChoose }: { zone: string; onChoose: (range: RangeSearch) => void }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string>();
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const range = parseRangeText(text, zone, Date.now());
        if (range === undefined)
          setFault("Try 3h, yesterday 18:00 for 2h, a day, or two times with “to” between them.");
        else onChoose(range);
      }}
    >
      <TextField
        label="Type a time"
        autoFocus
        placeholder="yesterday 18:00 for 2h"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setFault(undefined);
        }}
        fault={fault}
      />
    </form>
  );
}

interface CalendarProps {
  readonly zone: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly onChoose: (range: RangeSearch) => void;
}

function CalendarRange({ zone, fromMs, toMs, onChoose }: CalendarProps) {
  const [from, setFrom] = useState(() => wallText(fromMs, zone));
  const [to, setTo] = useState(() => wallText(toMs, zone));
  const range = parseRangeText(`${from} to ${to}`, zone, toMs);
  return (
    <form
      className="space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (range !== undefined) onChoose(range);
      }}
    >
      <div className="grid grid-cols-2 gap-2">
        <TextField
          label="From"
          type="datetime-local"
          value={from}
          onChange={({ target }) => setFrom(target.value)}
          fault={range === undefined ? "Must be before the end." : undefined}
        />
        <TextField label="To" type="datetime-local" value={to} onChange={({ target }) => setTo(target.value)} />
      </div>
      <Button type="submit" disabled={range === undefined}>
        Show this time
      </Button>
    </form>
  );
}

function Recent({ onChoose }: { onChoose: (range: RangeSearch) => void }) {
  const recent = recentRanges();
  if (recent.length === 0) return null;
  return (
    <div>
      <h3 className="text-xs font-medium text-ink2">Lately</h3>
      <ul>
        {recent.map(({ label, search }) => (
          <li key={label}>
            <button
              type="button"
              onClick={() => onChoose(search)}
              className="w-full truncate rounded-md px-2 py-1 text-left text-xs text-ink2 hover:bg-hover"
            >
              {label}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function wallText(atMs: number, zone: string): string {
  return new Intl.DateTimeFormat("sv-SE", {
    timeZone: zone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
  })
    .format(atMs)
    .replace(" ", "T");
}
