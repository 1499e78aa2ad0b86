import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../../components/ui/button.tsx";
import { SelectField, TextArea } from "../../../components/ui/fields.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import { ApiError } from "../../../data/client.ts";
import { addEntries, refreshLists, type WatchListDetail } from "../../../data/lists.ts";
import { count, exact } from "../../../text/numbers.ts";
import { readEntryLines, refusedLines, type EntryLine } from "./entry-lines.ts";
import { EXPIRIES, expiryOf } from "./expiry.ts";

interface ImportEntriesSheetProps {
  readonly list: WatchListDetail;
  readonly onClose: () => void;
}

const REFUSED_SHOWN_MAX = 50;

/** Many entries as text. What is refused is named by its line, and the others can be added without it. */
export function ImportEntriesSheet({ list, onClose }: ImportEntriesSheetProps) {
  const client = useQueryClient();
  const [text, setText] = useState("");
  const [days, setDays] = useState("");
  const lines = readEntryLines(text);
  const add = useMutation({
    mutationFn: (sent: readonly EntryLine[]) => {
      const expires = expiryOf(days, Date.now());
      return addEntries(
        list.name,
        sent.map(({ value, note }) => ({ value, note, expires_at: expires })),
      );
    },
    onSuccess: ({ added, updated }) => {
      showToast(`Added ${count(added, "entry", "entries")}${updated === 0 ? "" : `, changed ${exact(updated)}`}.`);
      void refreshLists(client);
      onClose();
    },
  });
  const faults = add.error instanceof ApiError ? add.error.faults : [];
  const refused = refusedLines(add.variables ?? [], faults);
  const refusedNumbers = new Set(refused.map(({ line }) => line));
  const rest = lines.filter(({ line }) => !refusedNumbers.has(line));
  return (
    <Sheet
      open
      onClose={onClose}
      title={`Paste entries into ${list.name}`}
      footer={
        <>
          <div className="w-40">
            <SelectField label="How long" isLabelHidden value={days} onChange={setDays} options={EXPIRIES} />
          </div>
          <Button className="ml-auto" onClick={onClose}>
            Cancel
          </Button>
          <Button
            look="primary"
            disabled={rest.length === 0 || add.isPending}
            onClick={() => add.mutate(refused.length > 0 ? rest : lines)}
          >
            {refused.length > 0
              ? `Add the other ${exact(rest.length)}`
              : lines.length === 0
                ? "Add"
                : `Add ${count(lines.length, "entry", "entries")}`}
          </Button>
        </>
      }
    >
      <div className="space-y-3">
        <TextArea
          label="One entry a line"
          hint="Addresses, networks, ranges or domains. What stands behind # becomes the note."
          rows={12}
          className="mono text-xs"
          spellCheck={false}
          placeholder={"192.0.2.17 # scanner\n198.51.100.0/24\nbad.example.org"}
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            add.reset();
          }}
        />
        {add.error !== null && refused.length === 0 && (
          <p role="alert" className="text-sm text-critical">
            {add.error.message}
          </p>
        )}
        {refused.length > 0 && (
          <div role="alert" className="text-sm">
            <p className="font-medium">Nothing was added yet: {count(refused.length, "line")} cannot be read.</p>
            <ul className="mt-1 max-h-40 space-y-0.5 overflow-y-auto text-xs text-ink2" tabIndex={0}>
              {refused.slice(0, REFUSED_SHOWN_MAX).map(({ line, value, message }) => (
                <li key={line}>
                  Line {line}: <code className="mono text-ink">{value}</code> {message}
                </li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </Sheet>
  );
}
