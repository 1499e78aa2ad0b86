import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState, type RefObject } from "react";
import type { KeyHandlers } from "../../../app/keys.ts";
import { copyText } from "../../../components/ui/copy.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import type { Change, Target } from "../../../data/alert-changes.ts";
import { alertDetailQuery, type AlertFilters } from "../../../data/alerts.ts";
import type { AlertDetail } from "../../../data/client.ts";
import type { FilterTexts } from "../address.ts";
import { axisSearch } from "../detail/around-range.ts";
import type { BulkCommands } from "../list/bulk-bar.tsx";
import type { Selection } from "../selection.ts";
import type { AlertCommands } from "./commands.ts";
import { failureWords } from "../../../text/failure-words.ts";
import { useAlertWork } from "./use-alert-work.ts";
import type { OpenSheet } from "./work-sheets.tsx";

interface CommandOptions {
  readonly me: string | undefined;
  readonly refusal: string | undefined;
  readonly exceptionRefusal: string | undefined;
  readonly commentBox: RefObject<HTMLTextAreaElement | null>;
  /** Undefined: nothing is selected, and keys act on the target. */
  readonly selection:
    | { readonly selection: Selection; readonly count: number; readonly filters: AlertFilters }
    | undefined;
  /** The id of the alert that keys act on. */
  readonly target: string | undefined;
  readonly onDone: () => void;
  readonly onFilters: (changes: FilterTexts) => void;
}

function targetsOf(selection: Selection, filters: AlertFilters): Target[] {
  if (selection.kind === "all") return [{ filters }];
  const targets: Target[] = [];
  if (selection.ids.size > 0) targets.push({ ids: [...selection.ids] });
  if (selection.rules.size > 0) targets.push({ filters: { ...filters, rule_name: [...selection.rules] } });
  return targets;
}

/** What buttons and keys do, to the alert that is shown or to those that are selected. */
export function useCommands(options: CommandOptions) {
  const { me, refusal, exceptionRefusal, commentBox, selection, target, onDone, onFilters } = options;
  const client = useQueryClient();
  const navigate = useNavigate();
  const work = useAlertWork();
  const [sheet, setSheet] = useState<OpenSheet>();

  const refused = (why: string | undefined) => {
    if (why !== undefined) showToast(why, { isProblem: true });
    return why !== undefined;
  };
  const openFor = (alert: AlertDetail, kind: OpenSheet["kind"]) => {
    if (refused(kind === "exception" ? exceptionRefusal : refusal)) return;
    setSheet({ kind, alert, count: 1, send: (change) => work.one(alert, change) });
  };
  const acknowledge = (send: (change: Change) => Promise<boolean>, alert: AlertDetail | undefined, count: number) => {
    if (refused(refusal)) return;
    if (me === undefined) setSheet({ kind: "who", alert, count, send });
    else void send({ action: "acknowledge", assignee: me });
  };

  const commandsOf = (alert: AlertDetail): AlertCommands => ({
    acknowledge: () => acknowledge((change) => work.one(alert, change), alert, 1),
    resolve: () => openFor(alert, "resolve"),
    reopen: () => void (!refused(refusal) && work.one(alert, { action: "reopen" })),
    exception: () => openFor(alert, "exception"),
    assign: () => openFor(alert, "assign"),
    tag: () => openFor(alert, "tag"),
    analyse: () => void (!refused(refusal) && work.analyse(alert)),
    onAxis: () => void navigate({ to: "/axis", search: axisSearch(alert) as never }),
    openRule: () => void navigate({ to: "/rules", search: { rule: alert.rule.id } as never }),
    filterRule: () => onFilters({ rule_name: alert.rule_name }),
    filterTag: (tag) => onFilters({ tag }),
    copyLink: () => {
      const url = new URL("/alerts", location.origin);
      url.searchParams.set("alert", alert.id);
      void copyText(url.href).then((isCopied) =>
        showToast(isCopied ? "Copied a link to the alert" : "The browser did not allow copying", {
          isProblem: !isCopied,
        }),
      );
    },
    comment: (text) => work.one(alert, { action: "comment", comment: text }),
  });

  const sendMany = async (change: Change) => {
    const { selection: chosen, filters } = selection!;
    const isDone = await work.many(targetsOf(chosen, filters), change);
    if (isDone) onDone();
    return isDone;
  };
  const openMany = (kind: OpenSheet["kind"]) => () => {
    if (!refused(refusal)) setSheet({ kind, alert: undefined, count: selection!.count, send: sendMany });
  };
  const bulk: BulkCommands = {
    acknowledge: () => acknowledge(sendMany, undefined, selection!.count),
    resolve: openMany("resolve"),
    assign: openMany("assign"),
    comment: openMany("comment"),
    tag: openMany("tag"),
    reopen: () => void (!refused(refusal) && sendMany({ action: "reopen" })),
  };

  /** The alert may not have been read yet: the cursor is faster than the service. */
  const withTarget = (run: (commands: AlertCommands, alert: AlertDetail) => void) => () => {
    if (target === undefined) return;
    client.ensureQueryData(alertDetailQuery(target)).then(
      (alert) => run(commandsOf(alert), alert),
      (error: Error) => showToast(failureWords(error), { isProblem: true }),
    );
  };
  const act: KeyHandlers<"alert"> = selection
    ? { acknowledge: bulk.acknowledge, resolve: bulk.resolve, assign: bulk.assign, comment: bulk.comment }
    : {
        acknowledge: withTarget(({ acknowledge: run }) => run()),
        resolve: withTarget(({ resolve }, { status }) =>
          status === "resolved" ? showToast("The alert is resolved already") : resolve(),
        ),
        exception: withTarget(({ exception }, { status }) =>
          status === "resolved" ? showToast("The alert is resolved already: open it again first") : exception(),
        ),
        comment: () => commentBox.current?.focus(),
        assign: withTarget(({ assign }) => assign()),
        onAxis: withTarget(({ onAxis }) => onAxis()),
        copyLink: withTarget(({ copyLink }) => copyLink()),
      };

  return { sheet, closeSheet: () => setSheet(undefined), bulk, commandsOf, act };
}
