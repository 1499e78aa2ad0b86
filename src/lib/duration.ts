export const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export const DURATION = /^([1-9]\d{0,8})([smhd])$/;

/** `30s`, `5m`, `1h`, `7d` in milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  return match ? Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS] : undefined;
}

/** A duration rounded for display: `45s`, `12m`, `2h 15m`, `3d 4h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / UNIT_MS.s);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.round(ms / UNIT_MS.m);
  if (minutes < 60) return `${minutes}m`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  const hours = Math.round(ms / UNIT_MS.h);
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}
