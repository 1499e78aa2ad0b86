import { Dialog } from "@base-ui/react/dialog";
import { useLayoutEffect } from "react";
import { IconButton } from "./button.tsx";
import type { SheetProps } from "./sheet.tsx";

let openSheets = 0;

/**
 * What keeps the focus in a sheet brings it back a frame after it left: on a slow machine, two quick Tabs were faster and went
 * on in the page below. Messages and the banner stay in reach.
 */
function usePageOutOfReach(open: boolean): void {
  useLayoutEffect(() => {
    if (!open) return;
    const mark = (change: 1 | -1) => {
      openSheets += change;
      for (const part of document.querySelectorAll<HTMLElement>("[data-below-sheets]")) part.inert = openSheets > 0;
    };
    mark(1);
    // Before the focus returns.
    return () => mark(-1);
  }, [open]);
}

/** A small page over the page. Focus stays inside and returns when it closes. */
export default function SheetBase({
  open,
  onClose,
  title,
  children,
  footer,
  width = "narrow",
  isForReading = false,
  initialFocus,
}: SheetProps) {
  usePageOutOfReach(open);
  return (
    <Dialog.Root open={open} onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="fixed inset-0 z-40 bg-app/70" />
        <Dialog.Popup
          data-covers-page
          {...(initialFocus && { initialFocus })}
          className={`fixed top-[10vh] left-1/2 z-50 flex max-h-[80vh] max-w-[calc(100vw-24px)] -translate-x-1/2 flex-col rounded-xl border border-line2/70 bg-panel shadow-(--shadow) ${width === "wide" ? "w-[880px]" : "w-[520px]"}`}
        >
          <div className="flex items-center border-b border-line py-2 pr-2 pl-5">
            <Dialog.Title className="text-base font-semibold">{title}</Dialog.Title>
            <IconButton icon="x" label="Close" className="ml-auto" onClick={onClose} />
          </div>
          <div
            {...(isForReading && { tabIndex: 0, role: "region", "aria-label": title })}
            className="min-h-0 flex-1 overflow-y-auto px-5 py-4 outline-offset-[-2px]"
          >
            {children}
          </div>
          {footer !== undefined && (
            <div className="flex flex-wrap items-center gap-2 border-t border-line px-5 py-3">{footer}</div>
          )}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
