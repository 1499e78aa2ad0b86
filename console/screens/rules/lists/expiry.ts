// How long an entry counts.

export const EXPIRIES = [
  { value: "", label: "for good" },
  { value: "1", label: "for a day" },
  { value: "7", label: "for a week" },
  { value: "30", label: "for 30 days" },
  { value: "365", label: "for a year" },
] as const;

const DAY_MS = 86_400_000;

export const expiryOf = (days: string, nowMs: number): string | null =>
  days === "" ? null : new Date(nowMs + Number(days) * DAY_MS).toISOString();
