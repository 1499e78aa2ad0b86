import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../../components/ui/button.tsx";
import { SelectField, TextField } from "../../../components/ui/fields.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { ApiError } from "../../../data/client.ts";
import { createList, refreshLists, type NewList } from "../../../data/lists.ts";

interface NewListSheetProps {
  readonly onClose: () => void;
  readonly onMade: (name: string) => void;
}

export function NewListSheet({ onClose, onMade }: NewListSheetProps) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [kind, setKind] = useState<NonNullable<NewList["kind"]>>("any");
  const make = useMutation({
    mutationFn: () => createList({ name: name.trim(), description: description.trim(), kind }),
    onSuccess: (list) => {
      void refreshLists(client);
      onMade(list.name);
    },
  });
  const faults = make.error instanceof ApiError ? make.error.faults : [];
  const isTaken = make.error instanceof ApiError && make.error.status === 409;
  const faultOf = (field: string) => faults.find((fault) => fault.field === field)?.message;
  return (
    <Sheet
      open
      onClose={onClose}
      title="New watch list"
      footer={
        <>
          {make.error !== null && faults.length === 0 && !isTaken && (
            <p role="alert" className="text-xs text-critical">
              {make.error.message}
            </p>
          )}
          <Button className="ml-auto" onClick={onClose}>
            Cancel
          </Button>
          <Button look="primary" type="submit" form="new-list" disabled={make.isPending}>
            Create the list
          </Button>
        </>
      }
    >
      <form
        id="new-list"
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <TextField
          label="Name"
          hint="Lower case, such as blocked. Rules and events name the list by it."
          required
          className="mono"
          value={name}
          onChange={({ target }) => setName(target.value)}
          fault={isTaken ? "is taken by another list" : faultOf("name")}
        />
        <TextField
          label="Description"
          value={description}
          onChange={({ target }) => setDescription(target.value)}
          fault={faultOf("description")}
        />
        <SelectField
          label="Holds"
          value={kind}
          onChange={(value) => setKind(value as typeof kind)}
          options={[
            { value: "any", label: "addresses and domains" },
            { value: "addresses", label: "addresses and networks" },
            { value: "domains", label: "domains" },
          ]}
          fault={faultOf("kind")}
        />
      </form>
    </Sheet>
  );
}
