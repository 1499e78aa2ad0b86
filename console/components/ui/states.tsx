import { useEffect, useState, type ReactNode } from "react";
import { ApiError, OfflineError } from "../../data/client.ts";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy.tsx";
import { Icon } from "./icons.tsx";

// What stands in the place of data: while it loads, where there is none, and where it could not be had.

const SKELETON_AFTER_MS = 150;

/** Shown only when waiting is noticed. Takes its final room at once, so nothing moves. */
export function Skeleton({ className = "" }: { className?: string }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div
      aria-hidden
      data-loading
      className={`rounded-md ${isShown ? "animate-pulse bg-hover motion-reduce:animate-none" : ""} ${className}`}
    />
  );
}

interface EmptyProps {
  readonly title: string;
  readonly children?: ReactNode;
}

/** What would be here, and the one thing that brings it here. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div className="mx-auto flex max-w-lg flex-col items-center gap-2 px-6 py-12 text-center">
      <p className="text-base font-medium">{title}</p>
      {children !== undefined && <div className="text-sm text-ink2">{children}</div>}
    </div>
  );
}

/** In the place of a whole screen. */
export function EmptyScreen({ heading, ...empty }: EmptyProps & { readonly heading: string }) {
  return (
    <main>
      <h1 className="sr-only">{heading}</h1>
      <Empty {...empty} />
    </main>
  );
}

interface FailureProps {
  readonly error: Error;
  readonly onRetry?: () => void;
}

/** A refusal or a fault, in words, with what helps: the field, the scope, the id of the request. */
export function Failure({ error, onRetry }: FailureProps) {
  const isForbidden = error instanceof ApiError && error.status === 403;
  return (
    <div role="alert" className="mx-auto flex max-w-xl flex-col items-center gap-2 px-6 py-10 text-center">
      <Icon
        name={isForbidden ? "lock" : error instanceof OfflineError ? "wifi-off" : "triangle-alert"}
        size={22}
        className="text-ink3"
      />
      <p className="text-base font-medium">{isForbidden ? "Your key may not see this" : sentence(error.message)}</p>
      {isForbidden && <p className="text-sm text-ink2">{sentence(error.message)}</p>}
      {error instanceof ApiError && error.faults.length > 0 && (
        <ul className="text-sm text-ink2">
          {error.faults.map((fault) => (
            <li key={`${fault.field} ${fault.message}`}>
              <code className="mono text-ink">{fault.field}</code> {fault.message}
            </li>
          ))}
        </ul>
      )}
      <div className="flex items-center gap-2">
        {onRetry !== undefined && !isForbidden && (
          <Button icon="refresh-cw" onClick={onRetry}>
            Try again
          </Button>
        )}
        {error instanceof ApiError && error.requestId !== null && (
          <CopyButton text={error.requestId} label="Copy the id of the request">
            <span className="mono text-2xs text-ink3">{error.requestId}</span>
          </CopyButton>
        )}
      </div>
    </div>
  );
}

function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
