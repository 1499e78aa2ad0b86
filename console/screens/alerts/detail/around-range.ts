const PADDING_MS_MIN = 8 * 60_000;
const PADDING_SHARE = 0.35;

interface Span {
  readonly id: string;
  readonly first_event_at: string;
  readonly last_event_at: string;
}

/** The time of an alert, with some before and after it. */
function aroundRange({ first_event_at: first, last_event_at: last }: Span): { fromMs: number; toMs: number } {
  const [startMs, endMs] = [Date.parse(first), Date.parse(last)];
  const padding = Math.max(PADDING_MS_MIN, (endMs - startMs) * PADDING_SHARE);
  return { fromMs: startMs - padding, toMs: endMs + padding };
}

export function axisSearch(alert: Span): { alert: string; from: string; to: string } {
  const { fromMs, toMs } = aroundRange(alert);
  return { alert: alert.id, from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() };
}
