import { Suspense, type ReactNode, type RefObject } from "react";
import { lazyPart } from "./lazy-part.ts";

// What keeps the focus inside is loaded when the first sheet opens.

export interface SheetProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly children: ReactNode;
  readonly footer?: ReactNode;
  readonly width?: "narrow" | "wide";
  /** Nothing in it takes the focus: it takes it itself, so that keys scroll it. */
  readonly isForReading?: boolean;
  readonly initialFocus?: RefObject<HTMLElement | null>;
}

const load = () => import("./sheet-base.tsx");
const SheetBase = lazyPart(load);

export function preloadSheet(): void {
  void load();
}

/** A small page over the page. Focus stays inside and returns when it closes. */
export function Sheet(props: SheetProps) {
  return (
    <Suspense fallback={null}>
      <SheetBase {...props} />
    </Suspense>
  );
}
