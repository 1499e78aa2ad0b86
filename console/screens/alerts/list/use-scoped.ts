import { useState } from "react";
import { NOTHING, type Selection } from "../selection.ts";

interface Scoped {
  readonly key: string;
  readonly openRules: ReadonlySet<string>;
  readonly selection: Selection;
}

/** What belongs to one list, and starts anew with another. */
export function useScoped(key: string) {
  const [state, setState] = useState<Scoped>({ key, openRules: new Set(), selection: NOTHING });
  const current = state.key === key ? state : { key, openRules: new Set<string>(), selection: NOTHING };
  return {
    ...current,
    setOpenRules: (openRules: ReadonlySet<string>) => setState({ ...current, openRules }),
    setSelection: (next: Selection | ((selection: Selection) => Selection)) =>
      setState((latest) => {
        const base = latest.key === key ? latest : current;
        return { ...base, selection: typeof next === "function" ? next(base.selection) : next };
      }),
  };
}
