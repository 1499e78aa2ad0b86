import { Link } from "@tanstack/react-router";
import { Bell } from "../../components/ui/bell.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { useSession } from "../../data/session.ts";
import { SCREENS, type ScreenEntry } from "../screens.ts";

/** The range is kept from screen to screen; everything else belongs to the screen that is left. */
export const keepRange = ({ range, from, to }: Record<string, unknown>) => ({ range, from, to });

const ENTRY =
  "mx-1.5 flex flex-col items-center gap-1 rounded-lg py-2 text-[10.5px] font-medium max-md:mx-0 max-md:px-1.5";

export function Rail() {
  const { key } = useSession();
  return (
    <nav
      aria-label="Screens"
      className="row-span-2 flex flex-col items-stretch border-r border-line bg-panel py-2.5 max-md:order-3 max-md:row-span-1 max-md:flex-row max-md:justify-around max-md:overflow-x-auto max-md:border-t max-md:border-r-0 max-md:py-1 print:hidden"
    >
      <Bell className="mx-auto mb-3 size-9 max-md:hidden" />
      {SCREENS.map((screen: ScreenEntry) => {
        const isLast = screen.path === "/settings";
        const isAllowed = screen.scope === null || key.scopes.includes(screen.scope);
        const inside = (
          <>
            <Icon name={screen.icon} size={18} />
            {screen.name}
          </>
        );
        return isAllowed ? (
          <Link
            key={screen.path}
            to={screen.path as "/alerts"}
            search={keepRange as never}
            className={`${ENTRY} ${isLast ? "mt-auto max-md:mt-0" : ""} text-ink3 hover:bg-hover hover:text-ink data-[status=active]:bg-accent-soft data-[status=active]:text-accent`}
          >
            {inside}
          </Link>
        ) : (
          <span
            key={screen.path}
            aria-disabled
            title={`Your key lacks the scope ${screen.scope}.`}
            className={`${ENTRY} cursor-not-allowed text-ink3 opacity-60`}
          >
            {inside}
            <span className="sr-only">{`(your key lacks the scope ${screen.scope})`}</span>
          </span>
        );
      })}
    </nav>
  );
}
