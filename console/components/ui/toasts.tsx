import { useSyncExternalStore, type ReactNode } from "react";
import { Button, IconButton } from "./button.tsx";

// What just happened, with a way back where there is one. Announced politely; never takes the focus.

export interface Toast {
  readonly id: number;
  readonly text: ReactNode;
  readonly undo?: (() => void) | undefined;
  readonly isProblem: boolean;
}

const TOASTS_MAX = 3;
const SHOWN_MS = 6000;
/** Long enough to read the sentence and to press `u`. */
const UNDO_MS = 10_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function dismissToast(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

export function showToast(text: ReactNode, options: { undo?: () => void; isProblem?: boolean } = {}): void {
  const id = ++lastId;
  const toast: Toast = { id, text, undo: options.undo, isProblem: options.isProblem ?? false };
  set([...toasts, toast].slice(-TOASTS_MAX));
  setTimeout(() => dismissToast(id), options.undo || toast.isProblem ? UNDO_MS : SHOWN_MS);
}

/** Undoes the latest thing that can be undone; for the key. */
export function undoLatest(): void {
  const latest = toasts.findLast((toast) => toast.undo !== undefined);
  if (latest === undefined) return;
  dismissToast(latest.id);
  latest.undo!();
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <section
      aria-label="Messages"
      className="pointer-events-none fixed inset-x-0 bottom-4 z-50 flex flex-col items-center gap-2 max-md:bottom-20"
    >
      <div role="status" aria-live="polite" className="contents">
        {shown.map((toast) => (
          <div
            key={toast.id}
            className={`pointer-events-auto flex max-w-[min(560px,calc(100vw-24px))] items-center gap-3 rounded-lg border bg-raised py-1.5 pr-1.5 pl-4 text-sm shadow-(--shadow) ${toast.isProblem ? "border-critical/60" : "border-line2"}`}
          >
            <span className="min-w-0">{toast.text}</span>
            {toast.undo !== undefined && (
              <Button
                look="quiet"
                hint="U"
                onClick={() => {
                  dismissToast(toast.id);
                  toast.undo!();
                }}
              >
                Undo
              </Button>
            )}
            <IconButton icon="x" label="Dismiss" onClick={() => dismissToast(toast.id)} />
          </div>
        ))}
      </div>
    </section>
  );
}
