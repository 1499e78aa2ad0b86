import { showToast } from "../components/ui/toasts.tsx";
import { readRange, type RangeSearch } from "../components/time/range.ts";

// Each screen names the parameters of its address. Others are dropped, and the reader is told: a mistyped filter must not silently
// show everything.

export type ScreenSearch<Name extends string> = RangeSearch & { readonly [Parameter in Name]?: string | undefined };

export function screenSearch<Name extends string>(names: readonly Name[]) {
  return (search: Record<string, unknown>): ScreenSearch<Name> => {
    const known: Record<string, string> = {};
    for (const name of names) {
      const value = search[name];
      if (typeof value === "string" && value !== "") known[name] = value;
    }
    const dropped = Object.keys(search).filter(
      (name) => !["range", "from", "to"].includes(name) && !(names as readonly string[]).includes(name),
    );
    if (dropped.length > 0) tellOnce(dropped);
    return { ...known, ...readRange(search) } as ScreenSearch<Name>;
  };
}

let told = "";

/** The router validates the same address several times. */
function tellOnce(dropped: readonly string[]): void {
  const text = dropped.join(", ");
  if (text === told) return;
  told = text;
  showToast(`Not understood in the address, and left out: ${text}`);
}
