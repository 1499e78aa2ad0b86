import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { alertGroupsQuery, type AlertGroup } from "../../../data/alert-groups.ts";
import {
  ALERTS_PER_PAGE,
  alertPageQuery,
  forgetHiddenPages,
  type AlertFilters,
  type AlertPage,
} from "../../../data/alerts.ts";
import type { Alert } from "../../../data/client.ts";
import type { Grouping, Sort } from "../address.ts";
import { freeze, NOT_FROZEN } from "./groups.ts";
import { layOut, type Layout, type Place, type Segment } from "./layout.ts";
import { unread, withPage, type Pages } from "./pages.ts";

// The rows of the queue: which there are, and those in sight. Pages are read when they come into sight.

export type Row =
  | { readonly kind: "group"; readonly place: Place; readonly group: AlertGroup; readonly isOpen: boolean }
  | { readonly kind: "alert"; readonly place: Place; readonly alert: Alert; readonly isInGroup: boolean }
  | { readonly kind: "waiting"; readonly place: Place }
  /** It was in the list and no longer matches; only its place is known. */
  | { readonly kind: "gone"; readonly place: Place };

export interface Question {
  readonly filters: AlertFilters;
  readonly sort: Sort;
  readonly grouping: Grouping;
  /** Raised to ask everything anew. */
  readonly generation: number;
  /** Raised when new groups get their place. */
  readonly letIns: number;
  /** The width of the small tracks' steps. */
  readonly stepMs: number;
}

export interface AlertList {
  readonly layout: Layout;
  readonly total: number | undefined;
  readonly groups: readonly AlertGroup[];
  /** The clock of the service when the list was read. */
  readonly readAtMs: number | undefined;
  readonly error: Error | null;
  readonly isPending: boolean;
  rowAt(index: number): Row | undefined;
  retry(): void;
}

interface State {
  readonly key: string;
  readonly pages: ReadonlyMap<string, Pages>;
}

const UNGROUPED = "";

interface Visible {
  readonly start: number;
  readonly end: number;
}

export function useAlertList(
  question: Question | undefined,
  openRules: ReadonlySet<string>,
  fresh: readonly Alert[],
  visible: Visible,
): AlertList {
  const isGrouped = question?.grouping === "rule";
  const key = JSON.stringify(question ?? null);
  const { groups, singles, query: groupsQuery } = useGroups(question);
  const singleAlerts = useSingles(question, singles);

  const [state, setState] = useState<State>({ key, pages: new Map() });
  const pagesOf = (rule: string | null, expected: number): Pages =>
    (state.key === key ? state.pages.get(rule ?? UNGROUPED) : undefined) ?? unread(expected, ALERTS_PER_PAGE);

  const segments: Segment[] = isGrouped
    ? groups.map(({ rule, count }) => {
        const isSingle = singles.has(rule);
        return {
          rule,
          hasHead: !isSingle,
          isOpen: isSingle || openRules.has(rule),
          freshIds: isSingle ? [] : fresh.filter(({ rule_name: name }) => name === rule).map(({ id }) => id),
          pages: isSingle ? unread(1, 1) : pagesOf(rule, count),
        };
      })
    : [{ rule: null, hasHead: false, isOpen: true, freshIds: fresh.map(({ id }) => id), pages: pagesOf(null, 12) }];
  const layout = layOut(question === undefined ? [] : segments);

  // The first page of a list without groups says how many there are, even if that is none.
  const first: WantedPage[] = question === undefined || isGrouped ? [] : [{ rule: null, page: 0 }];
  const wanted = wantedPages(layout, visible, singles, first);
  const results = useQueries({
    queries: wanted.map(({ rule, page }) => {
      const { after } = pagesOf(rule, 1).marks[page]!;
      return alertPageQuery(filtersOf(question!, rule), question!.sort, after, question!.generation);
    }),
  });
  const client = useQueryClient();
  const wantedKey = wanted.map(({ rule, page }) => `${rule ?? UNGROUPED} ${page}`).join("\n");
  // After others came into sight.
  // oxlint-disable-next-line react/exhaustive-effect-dependencies
  useEffect(() => forgetHiddenPages(client), [client, wantedKey]);
  const byPage = new Map(wanted.map(({ rule, page }, i) => [`${rule ?? UNGROUPED} ${page}`, results[i]!.data]));

  const readPages = withRead(state.key === key ? state.pages : new Map(), wanted, results);
  if (state.key !== key || readPages !== state.pages) setState({ key, pages: readPages });

  const rowAt = (index: number): Row | undefined => {
    const place = layout.at(index);
    if (place === undefined) return undefined;
    if (place.kind === "head") {
      const group = groups.find(({ rule }) => rule === place.rule)!;
      return { kind: "group", place, group, isOpen: openRules.has(place.rule) };
    }
    if (place.kind === "fresh") {
      const alert = fresh.find(({ id }) => id === place.id)!;
      return { kind: "alert", place, alert, isInGroup: isGrouped };
    }
    if (place.rule !== null && singles.has(place.rule)) {
      const alert = singleAlerts.get(place.rule);
      return alert === undefined ? { kind: "waiting", place } : { kind: "alert", place, alert, isInGroup: false };
    }
    const page = byPage.get(`${place.rule ?? UNGROUPED} ${place.page}`);
    if (page === undefined) return { kind: "waiting", place };
    const alert = page.alerts[place.row];
    return alert === undefined ? { kind: "gone", place } : { kind: "alert", place, alert, isInGroup: isGrouped };
  };

  const firstPage = isGrouped ? undefined : results[0]?.data;
  const total = isGrouped ? groupsQuery.data?.total : firstPage?.total;
  const failed = isGrouped ? groupsQuery : results.find(({ isError }) => isError);
  return {
    layout,
    total,
    groups,
    readAtMs: isGrouped ? groupsQuery.data?.atMs : firstPage?.atMs,
    error: failed?.error ?? null,
    isPending: question !== undefined && total === undefined && (failed?.error ?? null) === null,
    rowAt,
    retry: () => {
      if (isGrouped) void groupsQuery.refetch();
      for (const result of results) if (result.isError) void result.refetch();
    },
  };
}

/** The pages after those that have been read by now. */
function withRead(
  pages: ReadonlyMap<string, Pages>,
  wanted: readonly WantedPage[],
  results: readonly { readonly data: AlertPage | undefined }[],
): ReadonlyMap<string, Pages> {
  let next = pages;
  for (const [i, { rule, page }] of wanted.entries()) {
    const data = results[i]!.data;
    if (data === undefined) continue;
    const name = rule ?? UNGROUPED;
    const known = next.get(name) ?? unread(1, ALERTS_PER_PAGE);
    const read = { rows: data.alerts.length, next: data.next, total: data.total };
    const changed = withPage(known, page, read, ALERTS_PER_PAGE);
    if (changed !== known) next = new Map(next).set(name, changed);
  }
  return next;
}

const filtersOf = ({ filters }: Question, rule: string | null): AlertFilters =>
  rule === null ? filters : { ...filters, rule_name: [rule] };

/** The filters by which the alerts of a group are listed. */
export const groupFilters = filtersOf;

interface WantedPage {
  readonly rule: string | null;
  readonly page: number;
}

/** Pages in sight. Rows shortly before and after those are in sight too, so that the next page comes early. */
function wantedPages(
  layout: Layout,
  { start, end }: Visible,
  singles: ReadonlySet<string>,
  always: readonly WantedPage[],
): WantedPage[] {
  const wanted = new Map(always.map((each) => [`${each.rule} ${each.page}`, each]));
  for (let index = start; index <= end; index++) {
    const place = layout.at(index);
    if (place?.kind !== "paged" || (place.rule !== null && singles.has(place.rule))) continue;
    wanted.set(`${place.rule} ${place.page}`, { rule: place.rule, page: place.page });
  }
  return [...wanted.values()];
}

/** Groups in an order that stays until the question changes or new ones are let in. */
function useGroups(question: Question | undefined) {
  const isGrouped = question?.grouping === "rule";
  const { filters = {}, stepMs = 0, generation = 0, letIns = 0 } = question ?? {};
  const query = useQuery({ ...alertGroupsQuery(filters, stepMs, generation), enabled: isGrouped });
  const key = JSON.stringify([filters, generation, letIns]);
  const [frozen, setFrozen] = useState(NOT_FROZEN);
  const data = isGrouped ? query.data?.groups : undefined;
  const next = data === undefined ? NOT_FROZEN : freeze(frozen, key, data);
  if (next !== frozen) setFrozen(next);
  return { query, groups: next.groups, singles: next.singles };
}

/** The alerts of groups of one, a hundred of them in one request. */
function useSingles(question: Question | undefined, rules: ReadonlySet<string>): ReadonlyMap<string, Alert> {
  const names = [...rules];
  const chunks = Array.from({ length: Math.ceil(names.length / ALERTS_PER_PAGE) }, (_, i) =>
    names.slice(i * ALERTS_PER_PAGE, (i + 1) * ALERTS_PER_PAGE),
  );
  const results = useQueries({
    queries: chunks.map((chunk) =>
      alertPageQuery({ ...question!.filters, rule_name: chunk }, question!.sort, null, question!.generation),
    ),
  });
  // An alert that no longer matches is in no later answer, but stays in the list.
  const key = JSON.stringify([question?.filters, question?.generation]);
  const [known, setKnown] = useState<KnownAlerts>({ key, alerts: new Map() });
  const read = results.flatMap(({ data }) => data?.alerts ?? []);
  const next = withKnown(known, key, read);
  if (next !== known) setKnown(next);
  return next.alerts;
}

interface KnownAlerts {
  readonly key: string;
  readonly alerts: ReadonlyMap<string, Alert>;
}

function withKnown(known: KnownAlerts, key: string, read: readonly Alert[]): KnownAlerts {
  const before = known.key === key ? known.alerts : new Map<string, Alert>();
  const changed = read.filter((alert) => before.get(alert.rule_name) !== alert);
  if (known.key === key && changed.length === 0) return known;
  return { key, alerts: new Map([...before, ...changed.map((alert) => [alert.rule_name, alert] as const)]) };
}
