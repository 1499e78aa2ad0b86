import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { Button } from "../../components/ui/button.tsx";
import { CopyButton } from "../../components/ui/copy.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { collectorsQuery, type WholeSite } from "../../data/site.ts";
import { fillGuide, GUIDES, placeOf, type Guide } from "../../text/guides/guides.ts";
import { arrivals, newArrival, type Arrival } from "./arrivals.ts";

interface ConnectSheetProps {
  readonly site: WholeSite;
  readonly guideId: string;
  readonly onGuide: (id: string) => void;
  readonly onClose: () => void;
}

/** What is it, what to type on it, and the first line as it arrives. */
export function ConnectSheet({ site, guideId, onGuide, onClose }: ConnectSheetProps) {
  const guide = GUIDES.find(({ id }) => id === guideId);
  return (
    <Sheet
      open
      onClose={onClose}
      title={guide === undefined ? "Connect a source: what is it?" : `Connect: ${guide.device}`}
      width="wide"
      footer={
        guide === undefined ? undefined : (
          <>
            <Button onClick={() => onGuide("choose")}>Something else</Button>
            <Button look="primary" className="ml-auto" onClick={onClose}>
              Done
            </Button>
          </>
        )
      }
    >
      {guide === undefined ? (
        <ul className="grid grid-cols-2 gap-2 max-md:grid-cols-1">
          {GUIDES.map(({ id, device, sends }) => (
            <li key={id}>
              <button
                type="button"
                onClick={() => onGuide(id)}
                className="h-full w-full rounded-lg border border-line bg-raised px-4 py-3 text-left hover:border-accent"
              >
                <span className="block text-sm font-medium">{device}</span>
                <span className="block text-xs text-ink3">{sends}</span>
              </button>
            </li>
          ))}
        </ul>
      ) : (
        <GuideSteps key={guide.id} guide={guide} site={site} />
      )}
    </Sheet>
  );
}

function GuideSteps({ guide, site }: { guide: Guide; site: WholeSite }) {
  const place = placeOf(guide.collector, site);
  const command = guide.command === undefined ? undefined : fillGuide(guide.command, place, site);
  return (
    <div className="space-y-4">
      {!place.isOpen ? (
        <Notice>
          This service does not listen for it. Set <code className="mono">{guide.collector}_port</code> in its
          configuration and start it again.
        </Notice>
      ) : (
        place.address === undefined && (
          <Notice>
            Only this machine reaches the service now: set <code className="mono">host</code> in its configuration to an
            address that devices reach.
          </Notice>
        )
      )}
      <ol className="list-decimal space-y-2 pl-5 text-sm">
        {guide.steps.map((step) => (
          <li key={step}>{fillGuide(step, place, site)}</li>
        ))}
      </ol>
      {command !== undefined && (
        <div className="flex items-center rounded-md border border-line2 bg-app py-2 pr-2 pl-3">
          <code className="mono min-w-0 flex-1 text-xs break-all">{command}</code>
          <CopyButton text={command} label="Copy it" />
        </div>
      )}
      <Waiting guide={guide} />
    </div>
  );
}

function Notice({ children }: { children: ReactNode }) {
  return (
    <p className="flex gap-2 rounded-lg border border-line2 bg-raised px-3 py-2 text-sm">
      <Icon name="triangle-alert" size={16} className="mt-0.5 text-high" />
      <span>{children}</span>
    </p>
  );
}

const WAITING_REFRESH_MS = 2000;

/** What arrived before the sheet was opened does not count. */
function Waiting({ guide }: { guide: Guide }) {
  const { data } = useQuery(collectorsQuery(WAITING_REFRESH_MS));
  const [before, setBefore] = useState<readonly Arrival[]>();
  if (data !== undefined && before === undefined) setBefore(arrivals(data, guide));
  const arrived = data && before && newArrival(before, arrivals(data, guide));
  return (
    <div role="status" className="rounded-lg border border-line bg-raised px-4 py-3 text-sm">
      {arrived === undefined ? (
        <p className="flex items-center gap-2 text-ink2">
          <span aria-hidden className="size-2 animate-pulse rounded-full bg-accent motion-reduce:animate-none" />
          Waiting for the first{" "}
          {guide.collector === "netflow" || guide.collector === "ipfix" || guide.collector === "sflow"
            ? "packet"
            : "line"}
          …
        </p>
      ) : (
        <>
          <p className={`flex items-center gap-2 font-medium ${arrived.isUnderstood ? "text-good" : "text-high"}`}>
            <Icon name={arrived.isUnderstood ? "circle-check" : "triangle-alert"} size={16} />
            {arrived.words}
          </p>
          {arrived.text !== undefined && (
            <pre className="mono mt-2 overflow-x-auto text-xs break-all whitespace-pre-wrap text-ink2">
              {arrived.text}
            </pre>
          )}
        </>
      )}
    </div>
  );
}
