import { useRef, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Check, TextField } from "../ui/fields.tsx";
import { Sheet } from "../ui/sheet.tsx";
import type { StoredView } from "../../data/views.ts";
import { useMay } from "../../data/session.ts";
import { failureWords } from "../../text/failure-words.ts";

export interface ViewDraft {
  readonly name: string;
  readonly shared: boolean;
}

interface ViewSheetProps {
  /** Undefined: a new one, of what is shown. */
  readonly view: StoredView | undefined;
  /** What a new view keeps. */
  readonly keeps: string;
  readonly onSave: (draft: ViewDraft) => Promise<void>;
  readonly onClose: () => void;
}

const NAME_CHARACTERS_MAX = 100;
const VIEWS_PER_KEY_MAX = 100;

export function ViewSheet({ view, keeps, onSave, onClose }: ViewSheetProps) {
  const input = useRef<HTMLInputElement>(null);
  const [name, setName] = useState(view?.name ?? "");
  const [isShared, setShared] = useState(view?.shared ?? false);
  const [fault, setFault] = useState<string>();
  const [isSaving, setSaving] = useState(false);
  const [mayWrite, mayManage] = [useMay("alerts:write"), useMay("keys:manage")];
  const submit = () => {
    setSaving(true);
    onSave({ name: name.trim(), shared: isShared }).catch((error: Error) => {
      setFault(failureWords(error));
      setSaving(false);
    });
  };
  return (
    <Sheet
      open
      onClose={onClose}
      title={view === undefined ? "Save this view" : "Rename or share"}
      initialFocus={input}
    >
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "" && !isSaving) submit();
        }}
      >
        <TextField
          ref={input}
          label="Name"
          required
          maxLength={NAME_CHARACTERS_MAX}
          value={name}
          onChange={({ target }) => setName(target.value)}
          fault={fault}
          hint={
            view === undefined
              ? `Keeps ${keeps}. The time stays yours to choose. A key can have ${VIEWS_PER_KEY_MAX} views.`
              : undefined
          }
        />
        <div>
          <Check label="Everybody sees it" checked={isShared} disabled={!mayWrite && !mayManage} onChange={setShared} />
        </div>
        {!mayWrite && !mayManage && (
          <p className="text-2xs text-ink3">To share a view, your key needs the scope alerts:write.</p>
        )}
        <Button type="submit" look="primary" disabled={name.trim() === "" || isSaving}>
          Save
        </Button>
      </form>
    </Sheet>
  );
}
