import { readRange, resolveRange, type RangeSearch } from "./range.ts";

// The last ranges that were chosen in this browser.

const NAME = "recent-ranges";
const RECENT_MAX = 5;

function stored(): RangeSearch[] {
  try {
    const list: unknown = JSON.parse(localStorage.getItem(NAME) ?? "[]");
    return Array.isArray(list) ? list.slice(0, RECENT_MAX).map((item) => readRange(Object(item))) : [];
  } catch {
    // Somebody else wrote there: start anew.
    return [];
  }
}

const labelled = (search: RangeSearch) => ({ search, label: resolveRange(search, Date.now()).label });

export const recentRanges = () => stored().map(labelled);

export function rememberRange(search: RangeSearch): void {
  const { label } = labelled(search);
  const others = stored().filter((other) => labelled(other).label !== label);
  localStorage.setItem(NAME, JSON.stringify([search, ...others].slice(0, RECENT_MAX)));
}
