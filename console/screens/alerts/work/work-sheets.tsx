import { useQuery } from "@tanstack/react-query";
import { alertDetailQuery } from "../../../data/alerts.ts";
import type { Change } from "../../../data/alert-changes.ts";
import type { AlertDetail } from "../../../data/client.ts";
import { AssignSheet, WhoSheet } from "./assign-sheet.tsx";
import { ResolveSheet } from "./resolve-sheet.tsx";
import { CommentSheet, TagSheet } from "./text-sheets.tsx";

/** What is done, and to how many. */
export interface OpenSheet {
  readonly kind: "resolve" | "exception" | "assign" | "tag" | "comment" | "who";
  /** Undefined for several alerts. */
  readonly alert: AlertDetail | undefined;
  readonly count: number;
  readonly send: (change: Change) => Promise<boolean>;
}

interface WorkSheetsProps {
  readonly sheet: OpenSheet;
  readonly me: string | undefined;
  readonly people: readonly string[];
  readonly exceptionRefusal: string | undefined;
  readonly onClose: () => void;
}

export function WorkSheets({ sheet, me, people, exceptionRefusal, onClose }: WorkSheetsProps) {
  const { kind, count, send } = sheet;
  const latest = useQuery({ ...alertDetailQuery(sheet.alert?.id ?? ""), enabled: sheet.alert !== undefined });
  const alert = sheet.alert && (latest.data ?? sheet.alert);
  switch (kind) {
    case "resolve":
    case "exception":
      return (
        <ResolveSheet
          alert={alert}
          count={count}
          startWithException={kind === "exception"}
          exceptionRefusal={exceptionRefusal}
          onResolve={send}
          onClose={onClose}
        />
      );
    case "assign":
      return (
        <AssignSheet
          count={count}
          assignee={alert === undefined ? "their assignees" : alert.assignee}
          me={me}
          people={people}
          onAssign={(assignee) => send({ action: "assign", assignee })}
          onClose={onClose}
        />
      );
    case "tag":
      return <TagSheet count={count} tags={alert?.tags ?? []} onChange={send} onClose={onClose} />;
    case "comment":
      return <CommentSheet count={count} onSend={send} onClose={onClose} />;
    case "who":
      return (
        <WhoSheet
          verb="Acknowledge"
          onAnswer={(address) => {
            onClose();
            void send({ action: "acknowledge", ...(address !== undefined && { assignee: address }) });
          }}
          onClose={onClose}
        />
      );
    default:
      return kind satisfies never;
  }
}
