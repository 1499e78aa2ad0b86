import { Suspense, type ReactElement, type ReactNode } from "react";
import type { IconName } from "./icons.tsx";
import { lazyPart } from "./lazy-part.ts";

// The parts that place a menu are loaded after the first paint; until then its button stands there alone.

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly hint?: string;
  readonly isChosen?: boolean;
  readonly disabledBecause?: string | undefined;
  readonly onChoose: () => void;
}

export interface MenuProps {
  /** The button that opens it. */
  readonly trigger: ReactElement<Record<string, unknown>>;
  readonly heading?: ReactNode;
  readonly items: readonly (MenuItem | "line")[];
}

const MenuBase = lazyPart(() => import("./menu-base.tsx"));

export function Menu(props: MenuProps) {
  return (
    <Suspense fallback={props.trigger}>
      <MenuBase {...props} />
    </Suspense>
  );
}
