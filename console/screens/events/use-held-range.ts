import { useState } from "react";
import type { TimeRange } from "../../components/time/range.ts";
import { useRange } from "../../components/time/use-range.ts";

export interface HeldRange {
  readonly fromMs: number;
  readonly toMs: number;
  readonly isRelative: boolean;
  /** Moves the end of a range that follows the clock to now. */
  readonly refresh: () => void;
}

const now = () => Date.now();

/** A range that follows the clock ends when the question was asked, so that no row moves while somebody reads. */
export function useHeldRange(question: string): HeldRange {
  const range = useRange();
  const key = `${question} ${rangeKey(range)}`;
  const [held, setHeld] = useState(() => ({ key, asOfMs: now() }));
  // Another question is asked now. Setting state while rendering renders again before anything is shown.
  if (held.key !== key) setHeld({ key, asOfMs: now() });
  const refresh = () => setHeld({ key, asOfMs: now() });
  if (!range.isRelative) return { fromMs: range.fromMs, toMs: range.toMs, isRelative: false, refresh };
  const lengthMs = range.toMs - range.fromMs;
  return { fromMs: held.asOfMs - lengthMs, toMs: held.asOfMs, isRelative: true, refresh };
}

const rangeKey = ({ fromMs, toMs, isRelative }: TimeRange) => (isRelative ? toMs - fromMs : `${fromMs} ${toMs}`);
