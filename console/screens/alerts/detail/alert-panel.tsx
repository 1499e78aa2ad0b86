import { useQuery } from "@tanstack/react-query";
import type { RefObject } from "react";
import { IconButton } from "../../../components/ui/button.tsx";
import { Score } from "../../../components/ui/marks.tsx";
import { Empty, Failure, Skeleton } from "../../../components/ui/states.tsx";
import { alertDetailQuery } from "../../../data/alerts.ts";
import { ApiError, type AlertDetail } from "../../../data/client.ts";
import type { AlertCommands } from "../work/commands.ts";
import { AlertHead } from "./alert-head.tsx";
import { Around } from "./around.tsx";
import { CommentBox } from "./comment-box.tsx";
import { ScoreReasons } from "./score-reasons.tsx";
import { Timeline } from "./timeline.tsx";
import { WhoAndWhat } from "./who-and-what.tsx";
import { WhyItFired } from "./why-it-fired.tsx";

interface AlertPanelProps {
  readonly id: string;
  readonly nowMs: number;
  readonly commandsOf: (alert: AlertDetail) => AlertCommands;
  readonly onBack: (() => void) | undefined;
  readonly commentBox: RefObject<HTMLTextAreaElement | null>;
  readonly refusal: string | undefined;
  readonly exceptionRefusal: string | undefined;
}

export function AlertPanel(props: AlertPanelProps) {
  const { id } = props;
  const { data: alert, error, refetch } = useQuery(alertDetailQuery(id));
  if (alert === undefined) {
    if (error === null) return <PanelSkeleton />;
    return (
      <>
        {props.onBack !== undefined && (
          <IconButton icon="chevron-left" label="Back to the queue" className="m-2" onClick={props.onBack} />
        )}
        {error instanceof ApiError && error.status === 404 ? (
          <Empty title="This alert is no longer there">
            Alerts are removed after the time that the site keeps them.
          </Empty>
        ) : (
          <Failure error={error} onRetry={() => void refetch()} />
        )}
      </>
    );
  }
  const commands = props.commandsOf(alert);
  const [what, ...todo] = alert.description.split("\n\n");
  return (
    <div className="flex h-full flex-col">
      {/* It scrolls, so that keys must be able to reach it; what gets the focus must not end up behind its head. */}
      <div
        key={`alert ${id}`}
        tabIndex={0}
        role="region"
        aria-label="Alert"
        className="min-h-0 flex-1 scroll-pt-52 overflow-y-auto outline-offset-[-2px]"
      >
        <AlertHead
          alert={alert}
          commands={commands}
          onBack={props.onBack}
          refusal={props.refusal}
          exceptionRefusal={props.exceptionRefusal}
        />
        <div className="space-y-5 px-5 py-4 max-md:px-4">
          <div className="grid grid-cols-[minmax(0,1fr)_auto] gap-4">
            <p className="text-sm/[1.55] wrap-anywhere whitespace-pre-line text-ink2">{what}</p>
            {alert.ai_analysis !== null && (
              <div className="text-center">
                <Score value={alert.ai_analysis.threat_score} size={52} />
                <p className="mt-0.5 text-[10px] text-ink3">threat score</p>
              </div>
            )}
          </div>
          {todo.length > 0 && (
            <div className="rounded-lg border border-accent/25 bg-accent-soft/60 px-3.5 py-2.5 text-sm/[1.5] wrap-anywhere whitespace-pre-line">
              <strong className="font-semibold text-accent">Do now. </strong>
              {todo.join("\n\n")}
            </div>
          )}
          <WhyItFired alert={alert} />
          <Around alert={alert} />
          <WhoAndWhat alert={alert} />
          {alert.ai_analysis !== null && <ScoreReasons analysis={alert.ai_analysis} />}
          <Timeline alert={alert} nowMs={props.nowMs} />
        </div>
      </div>
      <CommentBox key={`comment ${id}`} box={props.commentBox} refusal={props.refusal} onSend={commands.comment} />
    </div>
  );
}

/** An alert that is not known yet. */
export function PanelSkeleton() {
  return (
    <div aria-busy className="space-y-5 px-5 py-4">
      <Skeleton className="h-5 w-48" />
      <Skeleton className="h-11 w-4/5" />
      <Skeleton className="h-4 w-3/5" />
      <Skeleton className="h-8 w-full" />
      <Skeleton className="h-20 w-full" />
      <Skeleton className="h-16 w-full" />
      <Skeleton className="h-40 w-full" />
      <Skeleton className="h-[230px] w-full" />
    </div>
  );
}
