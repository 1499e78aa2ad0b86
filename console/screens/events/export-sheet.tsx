import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ago, dateTime } from "../../components/time/format.ts";
import { useNow } from "../../components/time/use-range.ts";
import { Button, IconButton } from "../../components/ui/button.tsx";
import { SectionHeading } from "../../components/ui/heading.tsx";
import { Icon } from "../../components/ui/icons.tsx";
import { Segments } from "../../components/ui/segments.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { Failure, Skeleton } from "../../components/ui/states.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import {
  deleteExport,
  eventExportsQuery,
  eventTotalQuery,
  exportEvents,
  type EventExport,
  type EventQuestion,
  type ExportFormat,
} from "../../data/events.ts";
import { bytes, count, exact } from "../../text/numbers.ts";
import { fieldName } from "./filter-text.ts";

interface ExportSheetProps {
  readonly question: EventQuestion;
  readonly columns: readonly string[];
  readonly onClose: () => void;
}

const FORMATS: readonly { readonly value: ExportFormat; readonly label: string }[] = [
  { value: "csv", label: "CSV" },
  { value: "json", label: "JSON" },
  { value: "ndjson", label: "JSON lines" },
  { value: "parquet", label: "Parquet" },
];
const FIELD_CHOICES = [
  { value: "all", label: "All fields" },
  { value: "shown", label: "Time, type and the columns" },
] as const;
const ALWAYS = ["timestamp", "type", "severity", "source"];

/** The events of the question as a file, and the files that were made before. */
export function ExportSheet({ question, columns, onClose }: ExportSheetProps) {
  const client = useQueryClient();
  const [format, setFormat] = useState<ExportFormat>("csv");
  const [choice, setChoice] = useState<(typeof FIELD_CHOICES)[number]["value"]>("all");
  const total = useQuery(eventTotalQuery(question));
  const chosen = [...new Set([...ALWAYS, ...columns])];
  const refresh = () => client.invalidateQueries({ queryKey: eventExportsQuery.queryKey });
  const start = useMutation({
    mutationFn: () => exportEvents(question, format, choice === "all" ? undefined : chosen),
    onSuccess: refresh,
    onError: (error) => showToast(`Nothing was exported. ${error.message}`, { isProblem: true }),
  });
  return (
    <Sheet
      open
      onClose={onClose}
      title="Export events"
      footer={
        <>
          <p className="mr-auto text-sm text-ink2">
            {total.data === undefined ? "Counting…" : `${count(total.data, "row")} as far as is known now`}
          </p>
          <Button look="primary" icon="download" disabled={start.isPending} onClick={() => start.mutate()}>
            Export
          </Button>
        </>
      }
    >
      <div className="space-y-5">
        <div className="space-y-1.5">
          <p className="text-xs font-medium text-ink2">Format</p>
          <Segments label="Format" value={format} options={FORMATS} onChange={setFormat} />
        </div>
        <div className="space-y-1.5">
          <p className="text-xs font-medium text-ink2">Fields</p>
          <Segments label="Fields" value={choice} options={FIELD_CHOICES} onChange={setChoice} />
          {choice === "shown" && <p className="mono text-xs text-ink3">{chosen.map(fieldName).join(", ")}</p>}
        </div>
        <p className="text-xs text-ink3">
          {dateTime(question.fromMs)} to {dateTime(question.toMs)}, with the filters of the list. The file is kept for
          24 hours.
        </p>
        <section>
          <SectionHeading>Files of this key</SectionHeading>
          <Exports expectedRows={total.data} onDeleted={refresh} />
        </section>
      </div>
    </Sheet>
  );
}

function Exports({ expectedRows, onDeleted }: { expectedRows: number | undefined; onDeleted: () => void }) {
  const exports = useQuery(eventExportsQuery);
  const nowMs = useNow();
  const remove = useMutation({
    mutationFn: deleteExport,
    onSettled: onDeleted,
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  if (exports.error !== null && exports.data === undefined) return <Failure error={exports.error} />;
  if (exports.data === undefined) return <Skeleton className="h-24" />;
  if (exports.data.length === 0) return <p className="min-h-24 text-sm text-ink3">None yet.</p>;
  return (
    <ul className="min-h-24 divide-y divide-line">
      {exports.data.map((one) => (
        <li key={one.id} className="flex items-center gap-3 py-2 text-sm">
          <div className="min-w-0 flex-1">
            <p>
              {FORMATS.find(({ value }) => value === one.format)?.label}
              <span className="text-ink3"> · {ago(one.created_at, nowMs)}</span>
            </p>
            <Progress export={one} expectedRows={expectedRows} />
          </div>
          {one.status === "completed" && (
            <a
              href={one.download_url}
              download
              className="inline-flex h-8 items-center gap-2 rounded-md border border-line2/70 bg-raised px-3 text-sm font-medium hover:bg-hover"
            >
              <Icon name="download" size={14} />
              Download
            </a>
          )}
          <IconButton
            icon="x"
            label={one.status === "completed" || one.status === "failed" ? "Delete the file" : "Cancel the export"}
            onClick={() => remove.mutate(one.id)}
          />
        </li>
      ))}
    </ul>
  );
}

function Progress({ export: one, expectedRows }: { export: EventExport; expectedRows: number | undefined }) {
  switch (one.status) {
    case "failed":
      return <p className="text-xs text-critical">Failed: {one.error ?? "the service did not say why"}</p>;
    case "completed":
      return (
        <p className="text-xs text-ink3">
          {count(one.row_count ?? 0, "row")}, {bytes(one.size_bytes ?? 0)}
        </p>
      );
    default: {
      const share = one.row_count === null || !expectedRows ? undefined : Math.min(1, one.row_count / expectedRows);
      return (
        <div role="status" className="flex items-center gap-2 text-xs text-ink3">
          <progress
            aria-label="Progress of the export"
            className="h-1.5 w-32 accent-(--accent)"
            {...(share !== undefined && { value: share })}
          />
          {one.status === "pending" ? "waits its turn" : `${exact(one.row_count ?? 0)} rows so far`}
        </div>
      );
    }
  }
}
