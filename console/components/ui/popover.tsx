import { Suspense, type ReactElement, type ReactNode } from "react";
import { lazyPart } from "./lazy-part.ts";

// Loaded after the first paint, like a menu.

export interface PopoverProps {
  readonly trigger: ReactElement<Record<string, unknown>>;
  readonly title: string;
  readonly open?: boolean;
  readonly onOpenChange?: (open: boolean) => void;
  readonly align?: "start" | "center" | "end";
  readonly children: ReactNode;
}

const PopoverBase = lazyPart(() => import("./popover-base.tsx"));

export function Popover(props: PopoverProps) {
  return (
    <Suspense fallback={props.trigger}>
      <PopoverBase {...props} />
    </Suspense>
  );
}
