import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../../components/ui/button.tsx";
import { SelectField, TextField } from "../../../components/ui/fields.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import { ApiError } from "../../../data/client.ts";
import { addEntries, refreshLists, type WatchListDetail } from "../../../data/lists.ts";
import { EXPIRIES, expiryOf } from "./expiry.ts";

interface NewEntryProps {
  readonly list: WatchListDetail;
  readonly disabledBecause: string | undefined;
}

const EXAMPLES = {
  any: "192.0.2.17, 192.0.2.0/24 or bad.example.org",
  addresses: "192.0.2.17 or 192.0.2.0/24",
  domains: "bad.example.org",
} as const;

export function NewEntry({ list, disabledBecause }: NewEntryProps) {
  const client = useQueryClient();
  const [value, setValue] = useState("");
  const [note, setNote] = useState("");
  const [days, setDays] = useState("");
  const add = useMutation({
    mutationFn: () =>
      addEntries(list.name, [
        { value: value.trim(), note: note.trim() === "" ? null : note.trim(), expires_at: expiryOf(days, Date.now()) },
      ]),
    onSuccess: ({ updated }) => {
      showToast(updated > 0 ? `${value.trim()} was on the list; changed it.` : `Added ${value.trim()}.`);
      setValue("");
      setNote("");
      void refreshLists(client);
    },
  });
  const faults = add.error instanceof ApiError ? add.error.faults : [];
  const faultOf = (field: string) => faults.find((fault) => fault.field.endsWith(`.${field}`))?.message;
  const general = add.error !== null && faults.length === 0 ? add.error.message : undefined;
  return (
    <form
      className="grid grid-cols-[minmax(0,1.2fr)_minmax(0,1fr)_130px_auto] items-start gap-2 max-lg:grid-cols-2"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim() !== "") add.mutate();
      }}
    >
      <TextField
        label="Address, network or domain"
        isLabelHidden
        className="mono"
        placeholder={EXAMPLES[list.kind]}
        spellCheck={false}
        value={value}
        onChange={({ target }) => setValue(target.value)}
        fault={faultOf("value") ?? general}
      />
      <TextField
        label="Note"
        isLabelHidden
        placeholder="Why it is here"
        value={note}
        onChange={({ target }) => setNote(target.value)}
        fault={faultOf("note")}
      />
      <SelectField label="How long" isLabelHidden value={days} onChange={setDays} options={EXPIRIES} />
      <Button
        type="submit"
        icon="plus"
        disabled={disabledBecause !== undefined || add.isPending}
        title={disabledBecause}
      >
        Add
      </Button>
    </form>
  );
}
