const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `30s`, `5m`, `1h`, `7d` in milliseconds; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = /^([1-9]\d{0,8})([smhd])$/.exec(text);
  return match ? Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS] : undefined;
}
