import { useNavigate } from "@tanstack/react-router";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useKeys } from "../../app/keys.ts";
import { Failure } from "../../components/ui/states.tsx";
import { useMedia } from "../../components/ui/use-media.ts";
import { alertGroupsQuery } from "../../data/alert-groups.ts";
import { alertPageQuery, type AlertFilters } from "../../data/alerts.ts";
import { useMay } from "../../data/session.ts";
import type { FilterTexts, ListState } from "./address.ts";
import { AlertPanel, PanelSkeleton } from "./detail/alert-panel.tsx";
import { EmptyQueue } from "./empty-queue.tsx";
import { AlertList, ROW_HEIGHT, selectableOf } from "./list/alert-list.tsx";
import { BulkBar } from "./list/bulk-bar.tsx";
import { EarlierMatches } from "./list/earlier-matches.tsx";
import { AlertKeyHints } from "./list/key-hints.tsx";
import { groupFilters, useAlertList, type Question } from "./list/use-alert-list.ts";
import { useCursor } from "./list/use-cursor.ts";
import { useScoped } from "./list/use-scoped.ts";
import { NewPill } from "./live/new-pill.tsx";
import { useLiveAlerts } from "./live/use-live-alerts.ts";
import type { Seen } from "./live/waiting.ts";
import { isNothing, isSelected, NOTHING, selectedCount, withRow } from "./selection.ts";
import { stepFor } from "./steps.ts";
import { useCommands } from "./work/use-commands.ts";
import { WorkSheets } from "./work/work-sheets.tsx";

interface QueueProps {
  readonly head: ReactNode;
  readonly search: Readonly<Record<string, string | undefined>>;
  readonly state: ListState;
  readonly filters: AlertFilters;
  readonly range: { readonly fromMs: number; readonly toMs: number };
  readonly density: keyof typeof ROW_HEIGHT;
  readonly generation: number;
  readonly me: string | undefined;
  readonly nowMs: number;
  readonly onAskAgain: () => void;
  readonly onFilters: (changes: FilterTexts) => void;
}

/** Wide enough for the queue and an alert side by side. */
const WIDE = "(min-width: 1100px)";
const TRACK_STEPS_MAX = 62;

export function Queue(props: QueueProps) {
  const { search, state, filters, range, density, generation, me, nowMs } = props;
  const client = useQueryClient();
  const navigate = useNavigate({ from: "/alerts" });
  const isWide = useMedia(WIDE);
  const scroller = useRef<HTMLDivElement>(null);
  const commentBox = useRef<HTMLTextAreaElement>(null);
  const hasPushed = useRef(false);
  const [letIns, setLetIns] = useState(0);
  const [visible, setVisible] = useState({ start: 0, end: 20 });
  const onVisible = useCallback((start: number, end: number) => setVisible({ start, end }), []);

  const stepMs = stepFor(range.toMs - range.fromMs, TRACK_STEPS_MAX);
  // Searches do not know the events of an alert: such a list has no groups.
  const grouping = filters.event_id === undefined ? state.grouping : "none";
  const question = useMemo(
    (): Question => ({ filters, sort: state.sort, grouping, generation, letIns, stepMs }),
    [filters, state.sort, grouping, generation, letIns, stepMs],
  );
  const listKey = JSON.stringify([filters, state.sort, grouping, generation]);
  const { openRules, selection, setOpenRules, setSelection } = useScoped(listKey);

  const seen = useRef<Seen>(undefined);
  const live = useLiveAlerts(seen, listKey);
  const list = useAlertList(question, openRules, live.fresh, visible);
  const { layout } = list;
  const lastRow = grouping === "none" ? list.rowAt(layout.count - 1) : undefined;
  useEffect(() => {
    const last = lastRow?.kind === "alert" ? lastRow.alert : undefined;
    const { readAtMs } = list;
    seen.current = readAtMs === undefined ? undefined : { filters, sort: state.sort, readAtMs, lastRow: last };
  });

  const idAt = async (index: number): Promise<string | undefined> => {
    const row = list.rowAt(index);
    if (row?.kind === "alert") return row.alert.id;
    if (row?.kind !== "group") return undefined;
    const page = await client.fetchQuery(
      alertPageQuery(groupFilters(question, row.group.rule), state.sort, null, generation),
    );
    return page.alerts[0]?.id;
  };
  const show = async (index: number, isPushed: boolean) => {
    const id = await idAt(index);
    if (id === undefined || id === search["alert"]) return;
    hasPushed.current = isPushed;
    void navigate({ replace: !isPushed, search: (previous) => ({ ...previous, alert: id }) });
  };
  const cursor = useCursor({
    list,
    listKey,
    alertId: search["alert"],
    rowHeight: ROW_HEIGHT[density],
    scroller,
    onRest: (index) => void (isWide && show(index, false)),
  });
  const cursorRow = cursor.index < 0 ? undefined : list.rowAt(cursor.index);

  const toggleGroup = (rule: string) => {
    const next = new Set(openRules);
    if (!next.delete(rule)) next.add(rule);
    setOpenRules(next);
  };
  const open = (index: number) => {
    const row = list.rowAt(index);
    cursor.jumpTo(index);
    if (row?.kind === "group" && !isWide) toggleGroup(row.group.rule);
    else void show(index, !isWide);
  };
  const close = () => {
    if (hasPushed.current) history.back();
    else void navigate({ replace: true, search: (previous) => ({ ...previous, alert: undefined }) });
    hasPushed.current = false;
  };

  const loaded = () =>
    Array.from({ length: layout.count }, (_, index) => list.rowAt(index)).flatMap((row) => {
      const selectable = row && selectableOf(row);
      return selectable === undefined ? [] : [selectable];
    });
  const select = (index: number, isOn?: boolean) => {
    const row = list.rowAt(index);
    const selectable = row && selectableOf(row);
    if (selectable === undefined) return;
    setSelection((current) => withRow(current, selectable, isOn ?? !isSelected(current, selectable), loaded));
  };
  const selectTo = (index: number) => {
    const [low, high] = [Math.min(cursor.index, index), Math.max(cursor.index, index)];
    for (let each = Math.max(0, low); each <= high; each++) select(each, true);
    cursor.jumpTo(index);
  };
  const extend = (step: number) => {
    select(cursor.index, true);
    select(cursor.index + step, true);
    cursor.moveTo(cursor.index + step);
  };
  const groupSizes = new Map(list.groups.map(({ rule, count }) => [rule, count]));
  const selected = selectedCount(selection, list.total ?? 0, groupSizes);
  const hasSelection = !isNothing(selection);

  const letIn = async () => {
    if (live.waiting.isOverfull) {
      live.forget();
      props.onAskAgain();
      return;
    }
    live.letIn();
    if (grouping === "rule") {
      await client.refetchQueries({ queryKey: alertGroupsQuery(filters, stepMs, generation).queryKey });
      setLetIns((count) => count + 1);
    }
  };

  // On a wide window the first row is shown until another is chosen; on a phone, nothing is.
  const firstRule = cursorRow?.kind === "group" ? cursorRow.group.rule : null;
  const firstOfGroup = useQuery({
    ...alertPageQuery(groupFilters(question, firstRule), state.sort, null, generation),
    enabled: isWide && search["alert"] === undefined && firstRule !== null,
  });
  const firstId = cursorRow?.kind === "alert" ? cursorRow.alert.id : firstOfGroup.data?.alerts[0]?.id;
  const shownId = search["alert"] ?? (isWide ? firstId : undefined);
  const mayWrite = useMay("alerts:write");
  const mayExcept = useMay("rules:write");
  const refusal = mayWrite ? undefined : "Your key lacks the scope alerts:write.";
  const exceptionRefusal = refusal ?? (mayExcept ? undefined : "Your key lacks the scope rules:write.");
  const { sheet, closeSheet, bulk, commandsOf, act } = useCommands({
    me,
    refusal,
    exceptionRefusal,
    commentBox,
    selection: hasSelection ? { selection, count: selected, filters } : undefined,
    // An alert that a link or the way back has brought is not under the cursor.
    target: cursorRow?.kind === "alert" && (cursor.isAhead || shownId === undefined) ? cursorRow.alert.id : shownId,
    onDone: () => setSelection(NOTHING),
    onFilters: props.onFilters,
  });

  useKeys("list", {
    next: () => cursor.moveTo(cursor.index + 1),
    previous: () => cursor.moveTo(cursor.index - 1),
    first: () => cursor.moveTo(0),
    last: () => cursor.moveTo(layout.count - 1),
    extendDown: () => extend(1),
    extendUp: () => extend(-1),
    ...(cursorRow?.kind === "group" && { openGroup: () => toggleGroup(cursorRow.group.rule) }),
    ...(cursorRow?.kind === "alert" &&
      cursorRow.isInGroup && {
        openGroup: () => {
          cursor.jumpTo(layout.headOf(cursorRow.alert.rule_name));
          toggleGroup(cursorRow.alert.rule_name);
        },
      }),
    select: () => select(cursor.index),
    selectAll: () => setSelection(selection.kind === "all" ? NOTHING : { kind: "all" }),
    open: () => {
      if (cursorRow?.kind === "group") toggleGroup(cursorRow.group.rule);
      else open(cursor.index);
    },
  });
  useKeys("alert", act);
  const isCovered = !isWide && search["alert"] !== undefined;
  useKeys("everywhere", {
    ...((live.waiting.alerts.length > 0 || live.waiting.isOverfull) && { letIn: () => void letIn() }),
    ...(hasSelection ? { back: () => setSelection(NOTHING) } : isCovered && { back: close }),
  });

  const people = [...new Set(list.groups.flatMap(({ assignees }) => assignees))];
  const isEmpty = list.total === 0 && layout.count === 0;
  return (
    <main className="relative flex h-full">
      <section aria-label="Queue" inert={isCovered} className="flex min-h-0 min-w-0 flex-1 flex-col">
        {props.head}
        <NewPill waiting={live.waiting} onLetIn={() => void letIn()} />
        {list.error !== null ? (
          <Failure error={list.error} onRetry={list.retry} />
        ) : isEmpty ? (
          <div className="min-h-0 flex-1 overflow-y-auto border-t border-line">
            <EmptyQueue
              state={state}
              filters={filters}
              onChange={props.onFilters}
              onAllTime={() =>
                void navigate({
                  search: (previous) => ({ ...previous, from: undefined, to: undefined, range: "3650d" }),
                })
              }
            />
          </div>
        ) : (
          <AlertList
            list={list}
            filters={filters}
            cursor={cursor.place}
            selection={selection}
            tinted={live.tinted}
            density={density}
            range={range}
            stepMs={stepMs}
            nowMs={nowMs}
            scroller={scroller}
            onVisible={onVisible}
            onOpen={open}
            onToggle={toggleGroup}
            onSelect={(index, isRange) => (isRange ? selectTo(index) : select(index))}
            footer={<EarlierMatches filters={filters} total={list.total} />}
          />
        )}
        {hasSelection ? (
          <BulkBar
            selected={selected}
            total={list.total ?? 0}
            isAll={selection.kind === "all"}
            refusal={refusal}
            commands={bulk}
            onSelectAll={() => setSelection({ kind: "all" })}
            onClear={() => setSelection(NOTHING)}
          />
        ) : (
          <AlertKeyHints />
        )}
      </section>
      {(shownId !== undefined || (isWide && (list.isPending || firstOfGroup.isLoading))) && (
        <aside
          aria-label="The chosen alert"
          className={
            isWide
              ? "w-[clamp(440px,40vw,560px)] shrink-0 border-l border-line bg-panel"
              : "absolute inset-0 z-20 bg-panel"
          }
        >
          {shownId === undefined ? (
            <PanelSkeleton />
          ) : (
            <AlertPanel
              id={shownId}
              nowMs={nowMs}
              commandsOf={commandsOf}
              onBack={isWide ? undefined : close}
              commentBox={commentBox}
              refusal={refusal}
              exceptionRefusal={exceptionRefusal}
            />
          )}
        </aside>
      )}
      {sheet !== undefined && (
        <WorkSheets sheet={sheet} me={me} people={people} exceptionRefusal={exceptionRefusal} onClose={closeSheet} />
      )}
    </main>
  );
}
