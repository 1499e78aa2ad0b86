import { Menu as Base } from "@base-ui/react/menu";
import { Icon } from "./icons.tsx";
import type { MenuProps } from "./menu.tsx";

export default function MenuBase({ trigger, heading, items }: MenuProps) {
  return (
    <Base.Root modal={false}>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className="z-50">
          <Base.Popup
            data-covers-page
            className="min-w-48 rounded-lg border border-line2/70 bg-panel p-1 text-sm shadow-(--shadow) outline-none"
          >
            {heading !== undefined && <div className="px-2.5 py-1.5 text-2xs text-ink3">{heading}</div>}
            {items.map((item, index) =>
              item === "line" ? (
                <Base.Separator key={`line ${String(index)}`} className="my-1 h-px bg-line" />
              ) : (
                <Base.Item
                  key={item.label}
                  disabled={item.disabledBecause !== undefined}
                  onClick={item.onChoose}
                  className="flex cursor-pointer items-center gap-2.5 rounded-md px-2.5 py-1.5 text-ink outline-none data-[disabled]:cursor-not-allowed data-[disabled]:text-ink3 data-[highlighted]:bg-hover"
                >
                  <span className="grid w-4 place-items-center text-ink3">
                    {item.isChosen === true ? (
                      <Icon name="check" size={14} className="text-accent" label="chosen" />
                    ) : (
                      item.icon !== undefined && <Icon name={item.icon} size={14} />
                    )}
                  </span>
                  <span className="min-w-0 flex-1">
                    {item.label}
                    {item.disabledBecause !== undefined && (
                      <span className="block text-2xs text-ink3">{item.disabledBecause}</span>
                    )}
                  </span>
                  {item.hint !== undefined && <kbd aria-hidden>{item.hint}</kbd>}
                </Base.Item>
              ),
            )}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
