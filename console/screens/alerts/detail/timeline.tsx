import { Suspense, useState } from "react";
import { ago, full } from "../../../components/time/format.ts";
import { Button } from "../../../components/ui/button.tsx";
import { SectionHeading } from "../../../components/ui/heading.tsx";
import type { AlertDetail, TimelineEntry } from "../../../data/client.ts";
import { actorName, entryWords } from "./timeline-words.ts";
import { lazyPart } from "../../../components/ui/lazy-part.ts";

const CommentText = lazyPart(() => import("./markdown.tsx"));

/** At first the beginning and the latest are shown; an alert may have a thousand comments. */
const SHOWN_MAX = 30;

const DOT: Partial<Record<TimelineEntry["kind"], string>> = {
  commented: "bg-accent",
  created: "bg-high",
  resolved: "bg-good",
};

export function Timeline({ alert, nowMs }: { alert: AlertDetail; nowMs: number }) {
  const [isWhole, setWhole] = useState(false);
  const hidden = isWhole ? 0 : Math.max(0, alert.timeline.length - SHOWN_MAX);
  const shown = hidden === 0 ? alert.timeline : [alert.timeline[0]!, ...alert.timeline.slice(hidden + 1)];
  return (
    <section>
      <SectionHeading>Timeline</SectionHeading>
      <ol className="relative space-y-3 pl-5 before:absolute before:top-1 before:bottom-1 before:left-[6px] before:w-px before:bg-line2/60">
        {shown.map((entry, index) => (
          <li key={entry.id} className="relative text-xs">
            <span
              aria-hidden
              className={`absolute top-1 -left-[18px] size-2.5 rounded-full ring-4 ring-panel ${DOT[entry.kind] ?? "bg-line2"}`}
            />
            <p className="wrap-anywhere text-ink2">
              <span className="font-medium text-ink">{actorName(entry.actor)}</span> {entryWords(entry)}{" "}
              <time dateTime={entry.at} title={`${full(entry.at)} (${entry.at})`} className="text-ink3">
                {ago(entry.at, nowMs)}
              </time>
            </p>
            {(entry.actions_taken?.length ?? 0) > 0 && (
              <ul className="mt-1 list-disc space-y-0.5 pl-4 text-ink2">
                {entry.actions_taken!.map((action) => (
                  <li key={action}>{action}</li>
                ))}
              </ul>
            )}
            {entry.comment !== undefined && (
              <div className="comment mt-1.5 rounded-lg border border-line bg-raised px-3 py-2 text-sm/[1.5] wrap-anywhere">
                <Suspense fallback={<p className="whitespace-pre-wrap">{entry.comment.body}</p>}>
                  <CommentText text={entry.comment.body} />
                </Suspense>
              </div>
            )}
            {index === 0 && hidden > 0 && (
              <Button look="quiet" className="mt-2" onClick={() => setWhole(true)}>
                {hidden} more in between
              </Button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}
