import { Button } from "../../components/ui/button.tsx";
import { count, exact } from "../../text/numbers.ts";
import type { LiveTail } from "./use-tail.ts";

interface TailBarProps {
  readonly live: LiveTail;
  readonly isPaused: boolean;
  readonly onShow: () => void;
  readonly onReload: () => void;
}

const STATES = {
  off: "",
  connecting: "Connecting…",
  live: "Live",
  offline: "The stream is interrupted; trying again…",
};

/** What the live tail does: it follows, or waits while somebody reads. */
export function TailBar({ live, isPaused, onShow, onReload }: TailBarProps) {
  const { tail, state } = live;
  const waiting = tail.waiting.length;
  return (
    <div className="flex min-h-9 items-center gap-3 border-b border-line bg-accent-soft/60 px-4 py-1 text-xs">
      <span
        aria-hidden
        className={`size-2 rounded-full ${state === "live" && !isPaused ? "animate-pulse bg-good motion-reduce:animate-none" : "bg-ink3"}`}
      />
      <p role="status" className="min-w-0 text-ink2">
        {state === "live" && isPaused
          ? waiting === 0
            ? "Paused while you read"
            : `Paused while you read: ${count(waiting, "event")} waiting`
          : `${STATES[state]}${state === "live" ? `, ${count(tail.shown.length, "new event")}` : ""}`}
      </p>
      {waiting > 0 && (
        <Button look="quiet" hint="." className="!h-7" onClick={onShow}>
          Show
        </Button>
      )}
      {tail.skipped > 0 && (
        <p className="ml-auto text-ink2">
          {exact(tail.skipped)} skipped to keep up.{" "}
          <button type="button" className="h-6 text-accent underline" onClick={onReload}>
            Load them
          </button>
        </p>
      )}
    </div>
  );
}
