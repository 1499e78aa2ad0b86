import { Dialog } from "@base-ui/react/dialog";
import { IconButton } from "./button.tsx";
import type { SheetProps } from "./sheet.tsx";

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
            <div className="flex items-center gap-2 border-t border-line px-5 py-3">{footer}</div>
          )}
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
