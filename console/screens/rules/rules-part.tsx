import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { KEYS, useKeys } from "../../app/keys.ts";
import { Button } from "../../components/ui/button.tsx";
import { KeyHints, type KeyHint } from "../../components/ui/key-hints.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { SEVERITIES, type Rule } from "../../data/client.ts";
import { rulesQuery } from "../../data/rules.ts";
import { useMay } from "../../data/session.ts";
import { siteQuery } from "../../data/site.ts";
import { count } from "../../text/numbers.ts";
import { FilterBar } from "./filter-bar.tsx";
import { RuleList } from "./rule-list.tsx";
import { RulePanel } from "./rule-panel.tsx";
import { filterOf, isRule, sortOf, sortRules, type RuleSearch } from "./rule-search.ts";
import { useRuleSwitch } from "./use-rule-switch.ts";

const REST_MS = 150;
const SOURCES_UNTIL_KNOWN: readonly string[] = [];

const HINTS: readonly KeyHint[] = [
  [[KEYS.list.next, KEYS.list.previous], "move"],
  [[KEYS.list.open], "open"],
  [[KEYS.rules.toggle], "on or off"],
  [[KEYS.rules.edit], "edit"],
  [[KEYS.rules.simulate], "try"],
  [[KEYS.rules.test], "run tests"],
];

/** The list of rules, and beside it the one that is open. */
export function RulesPart() {
  const search = useSearch({ from: "/rules" }) as RuleSearch & { readonly rule?: string };
  const navigate = useNavigate({ from: "/rules" });
  const mayWrite = useMay("rules:write");
  const site = useQuery(siteQuery);
  const sources = site.data?.sources ?? SOURCES_UNTIL_KNOWN;
  const sort = sortOf(search);
  const { switchTo, switchingId } = useRuleSwitch();

  // The sources of the site are known a moment later; until then a source in the address is taken as it is.
  const known = site.data === undefined && search.source !== undefined ? [search.source] : sources;
  const filter = filterOf(search, { sources: known, severities: SEVERITIES });
  const query = useInfiniteQuery(rulesQuery(filter));
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  // Only the service's own order, by name, can be shown page by page.
  useEffect(() => {
    if (sort !== "name") loadMore();
  }, [sort, loadMore]);
  const rules = useMemo(
    () => sortRules(query.data?.pages.flatMap((page) => page.rules) ?? [], sort),
    [query.data, sort],
  );
  const total = query.data?.pages[0]?.total ?? 0;

  const change = useCallback(
    (more: RuleSearch & { rule?: string | undefined; edit?: string | undefined }, replace = true) =>
      void navigate({ replace, search: (previous) => ({ ...previous, ...more }) }),
    [navigate],
  );
  const [currentName, setCurrent] = useState(search.rule);
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const open = (rule: Rule) => {
    clearTimeout(resting.current);
    setCurrent(rule.name);
    change({ rule: rule.name }, search.rule !== undefined);
  };
  const close = () => change({ rule: undefined });
  const move = (by: 1 | -1) => {
    const index = rules.findIndex((rule) => isRule(rule, currentName));
    const next = rules[index < 0 ? 0 : Math.min(Math.max(index + by, 0), rules.length - 1)];
    if (next === undefined) return;
    setCurrent(next.name);
    clearTimeout(resting.current);
    if (search.rule !== undefined) resting.current = setTimeout(() => change({ rule: next.name }), REST_MS);
  };
  const current = rules.find((rule) => isRule(rule, currentName));
  const edit = (target: string) => change({ edit: target }, false);
  useKeys("list", {
    next: () => move(1),
    previous: () => move(-1),
    ...(current !== undefined && { open: () => open(current) }),
  });
  useKeys("rules", {
    ...(mayWrite && { create: () => edit("new") }),
    ...(mayWrite && current !== undefined && { toggle: () => switchTo(current, !current.enabled) }),
  });
  useKeys("everywhere", search.rule === undefined ? {} : { back: close });

  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const isOpen = search.rule !== undefined;
  return (
    <div
      className={`grid h-full min-h-0 ${isOpen ? "grid-cols-[minmax(0,1fr)_minmax(460px,560px)] max-lg:grid-cols-1" : "grid-cols-1"}`}
    >
      <div className="flex min-h-0 min-w-0 flex-col">
        <div className="flex items-center gap-3 px-4 pb-3">
          <FilterBar search={search} sources={sources} onChange={change} />
          <span className="shrink-0 text-xs text-ink3 max-md:hidden" role="status">
            {query.data !== undefined && count(total, "rule")}
          </span>
        </div>
        {query.error !== null && query.data === undefined ? (
          <Failure error={query.error} onRetry={() => void query.refetch()} />
        ) : query.data === undefined ? (
          <Skeleton className="mx-4 flex-1" />
        ) : rules.length === 0 ? (
          <Empty title={isFiltered ? "No rule matches" : "There are no rules"}>
            {isFiltered && (
              <Button
                onClick={() =>
                  change({ search: undefined, source: undefined, severity: undefined, enabled: undefined })
                }
              >
                Show all rules
              </Button>
            )}
          </Empty>
        ) : (
          <RuleList
            rules={rules}
            total={total}
            sort={sort}
            onSort={(next) => change({ sort: next === "name" ? undefined : next })}
            currentId={current?.id}
            open={search.rule}
            isDimmed={query.isPlaceholderData}
            switchingId={switchingId}
            onOpen={open}
            onSwitch={switchTo}
            onNearEnd={loadMore}
          />
        )}
        <KeyHints hints={HINTS} />
      </div>
      {search.rule !== undefined && (
        <RulePanel
          reference={search.rule}
          listed={rules.find((rule) => isRule(rule, search.rule))}
          switchingId={switchingId}
          onSwitch={switchTo}
          onEdit={edit}
          onClose={close}
        />
      )}
    </div>
  );
}
