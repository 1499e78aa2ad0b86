import { createContext, useContext } from "react";
import type { Fault } from "../../../data/client.ts";
import { writePath, type Path } from "./draft.ts";

/** What the service said about the rule when it was last tried or saved. */
export const FaultContext = createContext<readonly Fault[]>([]);

/** The fault of this very field, or of the item of its list. */
export function useFault(path: Path): string | undefined {
  const faults = useContext(FaultContext);
  const field = writePath(path);
  return faults.find((fault) => fault.field === field || fault.field.replace(/\[\d+\]$/, "") === field)?.message;
}
