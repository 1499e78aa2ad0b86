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
    const range = readRange(search);
    const understood = new Set([...names, ...Object.keys(range)] as string[]);
    const dropped = Object.keys(search).filter((name) => !understood.has(name) && isGiven(search[name]));
    if (dropped.length > 0) tellOnce(dropped);
    return { ...known, ...range } as ScreenSearch<Name>;
  };
}

/** The console itself writes `undefined` for what it takes away. */
const isGiven = (value: unknown) => value !== undefined && value !== "";

/** The router validates the same address several times at once. */
const SAME_MS = 1000;
let told = { text: "", atMs: 0 };

function tellOnce(dropped: readonly string[]): void {
  const text = dropped.join(", ");
  const nowMs = performance.now();
  const isSame = text === told.text && nowMs - told.atMs < SAME_MS;
  told = { text, atMs: nowMs };
  if (!isSame) showToast(`Not understood in the address, and left out: ${text}`);
}
