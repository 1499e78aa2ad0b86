import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { showToast } from "../../../components/ui/toasts.tsx";
import { changeAlert, changeAlerts, undoChanges, type Change, type Target } from "../../../data/alert-changes.ts";
import { alertDetailQuery, type AlertPage } from "../../../data/alerts.ts";
import { answered, api, ApiError, OfflineError, type Alert, type AlertDetail } from "../../../data/client.ts";
import { recount, replaceAlert } from "../live/use-live-alerts.ts";
import { failureWords } from "../../../text/failure-words.ts";
import { afterChange, bulkWords, conflictWords, doneWords, leftWords, undoneWords } from "./outcome-words.ts";

// Changes by the reader: sent, shown, told, and taken back.

export interface AlertWork {
  /** Resolves to false if nothing was changed; the reader has been told why. */
  one(alert: Alert, change: Change): Promise<boolean>;
  many(targets: readonly Target[], change: Change): Promise<boolean>;
  /** Asks for a new score. */
  analyse(alert: Alert): Promise<void>;
}

/** An alert of a list, without what only its detail has. */
function summaryOf(detail: AlertDetail): Alert {
  const { related_events: _, timeline: __, match: ___, ...summary } = detail;
  return summary;
}

function show(client: QueryClient, id: string, detail: AlertDetail | undefined): void {
  if (detail === undefined) {
    void client.invalidateQueries({ queryKey: alertDetailQuery(id).queryKey });
    return;
  }
  client.setQueryData(alertDetailQuery(id).queryKey, detail);
  replaceAlert(client, summaryOf(detail));
}

async function tellRefusal(client: QueryClient, error: Error, id?: string): Promise<void> {
  if (id !== undefined && error instanceof ApiError && error.status === 409) {
    const detail = await client.fetchQuery({ ...alertDetailQuery(id), staleTime: 0 });
    replaceAlert(client, summaryOf(detail));
    showToast(conflictWords(detail, Date.now()), { isProblem: true });
    return;
  }
  const words =
    error instanceof OfflineError ? "The service cannot be reached. Nothing was changed." : failureWords(error);
  showToast(words, { isProblem: true });
}

/** The alerts of these ids that are in a list, as they are shown. */
function shownAlerts(client: QueryClient, ids: ReadonlySet<string>): ReadonlyMap<string, Alert> {
  const pages = client.getQueriesData<AlertPage>({ queryKey: ["alerts", "page"] });
  return new Map(
    pages.flatMap(([, page]) => page?.alerts.filter(({ id }) => ids.has(id)).map((alert) => [alert.id, alert]) ?? []),
  );
}

export function useAlertWork(): AlertWork {
  const client = useQueryClient();

  const one = async (asked: Alert, change: Change): Promise<boolean> => {
    // A sheet may have been open for a while.
    const alert: Alert = client.getQueryData(alertDetailQuery(asked.id).queryKey) ?? asked;
    try {
      const { detail, undoId } = await changeAlert(alert.id, change);
      show(client, alert.id, detail);
      recount(client);
      const exceptionId = detail?.timeline.findLast(({ kind }) => kind === "resolved")?.exception?.id;
      const hasException = change.action === "resolve" && change.exception !== undefined && exceptionId !== undefined;
      const exception = hasException ? { rule: detail!.rule.id, id: exceptionId } : undefined;
      showToast(doneWords(change, "the alert"), {
        ...(undoId !== undefined && { undo: () => void undo(alert.id, undoId, exception) }),
      });
      return true;
    } catch (error) {
      await tellRefusal(client, error as Error, alert.id);
      return false;
    }
  };

  const undo = async (id: string, undoId: string, exception?: { rule: string; id: string }) => {
    try {
      const { failedCount } = await undoChanges([undoId]);
      const detail = await client.fetchQuery({ ...alertDetailQuery(id), staleTime: 0 });
      show(client, id, detail);
      if (failedCount > 0) {
        recount(client);
        showToast(leftWords(detail, Date.now()), { isProblem: true });
        return;
      }
      if (exception !== undefined) {
        const path = { id: exception.rule, exception_id: exception.id };
        await answered(api.DELETE("/v1/rules/{id}/exceptions/{exception_id}", { params: { path } }));
      }
      recount(client);
      showToast("Taken back");
    } catch (error) {
      await tellRefusal(client, error as Error, id);
    }
  };

  const many = async (targets: readonly Target[], change: Change): Promise<boolean> => {
    try {
      const result = await changeAlerts(targets, change);
      const changed = new Set(result.succeeded);
      const before = shownAlerts(client, changed);
      client.setQueriesData<AlertPage>({ queryKey: ["alerts", "page"] }, (page) =>
        page && page.alerts.some(({ id }) => changed.has(id))
          ? { ...page, alerts: page.alerts.map((each) => (changed.has(each.id) ? afterChange(each, change) : each)) }
          : page,
      );
      recount(client);
      showToast(bulkWords(change, result), {
        isProblem: result.failedCount > 0,
        ...(result.undoIds.length > 0 && { undo: () => void undoMany(result.undoIds, change, before) }),
      });
      return result.succeededCount > 0;
    } catch (error) {
      await tellRefusal(client, error as Error);
      return false;
    }
  };

  const undoMany = async (undoIds: readonly string[], change: Change, before: ReadonlyMap<string, Alert>) => {
    try {
      const result = await undoChanges(undoIds);
      const left = new Set(result.failed.map(({ id }) => id));
      for (const [id, alert] of before) {
        if (!left.has(id)) replaceAlert(client, alert);
        void client.invalidateQueries({ queryKey: alertDetailQuery(id).queryKey });
      }
      recount(client);
      showToast(undoneWords(change, result), { isProblem: result.failedCount > 0 });
    } catch (error) {
      await tellRefusal(client, error as Error);
    }
  };

  const analyse = async (alert: Alert): Promise<void> => {
    try {
      await answered(api.POST("/v1/alerts/{id}/analyze", { params: { path: { id: alert.id } } }));
      await client.invalidateQueries({ queryKey: alertDetailQuery(alert.id).queryKey });
      showToast("Scored again");
    } catch (error) {
      await tellRefusal(client, error as Error);
    }
  };

  return { one, many, analyse };
}
