import { Popover as Base } from "@base-ui/react/popover";
import type { PopoverProps } from "./popover.tsx";

export default function PopoverBase({ trigger, title, open, onOpenChange, align = "end", children }: PopoverProps) {
  return (
    <Base.Root {...(open !== undefined && { open })} {...(onOpenChange && { onOpenChange })}>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align={align} className="z-50">
          <Base.Popup
            data-covers-page
            className="max-h-[80vh] max-w-[calc(100vw-16px)] overflow-y-auto rounded-lg border border-line2/70 bg-panel p-3 shadow-(--shadow) outline-none"
          >
            <Base.Title className="sr-only">{title}</Base.Title>
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
