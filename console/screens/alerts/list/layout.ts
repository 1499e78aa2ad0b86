import type { Pages } from "./pages.ts";

// Which row stands at which place of the list. A list is a row of spans: fresh alerts, heads of groups, and pages of alerts.

export interface Segment {
  /** The rule of a group; null for a list without groups. */
  readonly rule: string | null;
  readonly isOpen: boolean;
  /** True if a row stands above its alerts. */
  readonly hasHead: boolean;
  /** Alerts that were let in above the pages. */
  readonly freshIds: readonly string[];
  readonly pages: Pages;
}

export type Place =
  | { readonly kind: "head"; readonly rule: string }
  | { readonly kind: "fresh"; readonly rule: string | null; readonly id: string }
  | { readonly kind: "paged"; readonly rule: string | null; readonly page: number; readonly row: number };

export interface Layout {
  readonly count: number;
  at(index: number): Place | undefined;
  /** The place of the head of a group. */
  headOf(rule: string): number;
  /** The first row of a page. */
  startOf(rule: string | null, page: number): number;
  /** The row of a fresh alert. */
  freshAt(id: string): number;
}

interface Span {
  readonly start: number;
  readonly size: number;
  readonly segment: Segment;
  readonly kind: "head" | "fresh" | "page";
  readonly page: number;
}

export function layOut(segments: readonly Segment[]): Layout {
  const spans: Span[] = [];
  let count = 0;
  const add = (segment: Segment, kind: Span["kind"], size: number, page = 0) => {
    if (size === 0) return;
    spans.push({ start: count, size, segment, kind, page });
    count += size;
  };
  for (const segment of segments) {
    if (segment.hasHead) add(segment, "head", 1);
    if (!segment.isOpen) continue;
    add(segment, "fresh", segment.freshIds.length);
    for (const [page, { size }] of segment.pages.marks.entries()) add(segment, "page", size, page);
  }
  return {
    count,
    at: (index) => {
      const span = spanAt(spans, index);
      if (span === undefined) return undefined;
      const { rule, freshIds } = span.segment;
      const row = index - span.start;
      if (span.kind === "head") return { kind: "head", rule: rule! };
      return span.kind === "fresh"
        ? { kind: "fresh", rule, id: freshIds[row]! }
        : { kind: "paged", rule, page: span.page, row };
    },
    headOf: (rule) => spans.find(({ kind, segment }) => kind === "head" && segment.rule === rule)?.start ?? -1,
    startOf: (rule, page) =>
      spans.find((span) => span.kind === "page" && span.segment.rule === rule && span.page === page)?.start ?? -1,
    freshAt: (id) => {
      const span = spans.find(({ kind, segment }) => kind === "fresh" && segment.freshIds.includes(id));
      return span === undefined ? -1 : span.start + span.segment.freshIds.indexOf(id);
    },
  };
}

function spanAt(spans: readonly Span[], index: number): Span | undefined {
  let [low, high] = [0, spans.length - 1];
  while (low <= high) {
    const middle = (low + high) >>> 1;
    const span = spans[middle]!;
    if (index < span.start) high = middle - 1;
    else if (index >= span.start + span.size) low = middle + 1;
    else return span;
  }
  return undefined;
}
