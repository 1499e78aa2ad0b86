import { useRef, useState } from "react";
import { Button } from "../../../components/ui/button.tsx";
import { TextArea, TextField } from "../../../components/ui/fields.tsx";
import { Icon } from "../../../components/ui/icons.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import type { Change } from "../../../data/alert-changes.ts";
import { count } from "../../../text/numbers.ts";

interface CommentSheetProps {
  readonly count: number;
  readonly onSend: (change: Change) => Promise<boolean>;
  readonly onClose: () => void;
}

/** One note for many alerts. */
export function CommentSheet({ count: alerts, onSend, onClose }: CommentSheetProps) {
  const box = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const send = async () => {
    if (text.trim() === "" || isSending) return;
    setSending(true);
    if (await onSend({ action: "comment", comment: text })) onClose();
    else setSending(false);
  };
  return (
    <Sheet open onClose={onClose} title={`Comment on ${count(alerts, "alert")}`} initialFocus={box}>
      <form
        className="space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        <TextArea
          ref={box}
          label="Comment"
          hint="Each of the alerts gets it. Markdown works; Ctrl Enter sends."
          rows={4}
          value={text}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
          }}
        />
        <Button type="submit" look="primary" disabled={text.trim() === "" || isSending}>
          Comment
        </Button>
      </form>
    </Sheet>
  );
}

interface TagSheetProps {
  readonly count: number;
  /** Those of the alert; of several alerts, those that some have. */
  readonly tags: readonly string[];
  readonly onChange: (change: Change) => Promise<boolean>;
  readonly onClose: () => void;
}

export function TagSheet({ count: alerts, tags, onChange, onClose }: TagSheetProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const add = async () => {
    const added = text.split(/[\s,]+/).filter((tag) => tag !== "");
    if (added.length > 0 && (await onChange({ action: "tag", tags: added }))) setText("");
  };
  return (
    <Sheet
      open
      onClose={onClose}
      title={alerts === 1 ? "Tags of the alert" : `Tag ${count(alerts, "alert")}`}
      initialFocus={input}
    >
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        {tags.length > 0 && (
          <ul aria-label="Tags" className="flex flex-wrap gap-1.5">
            {tags.map((tag) => (
              <li key={tag} className="inline-flex items-center rounded bg-hover pl-2 text-xs">
                {tag}
                <button
                  type="button"
                  aria-label={`Remove the tag ${tag}`}
                  onClick={() => void onChange({ action: "untag", tags: [tag] })}
                  className="grid size-6 place-items-center text-ink3 hover:text-ink"
                >
                  <Icon name="x" size={11} />
                </button>
              </li>
            ))}
          </ul>
        )}
        <div className="flex items-end gap-2">
          <div className="min-w-0 flex-1">
            <TextField
              ref={input}
              label="New tags"
              placeholder="guest-network"
              hint="Letters, digits and _ . : / @ + # -, separated by spaces"
              value={text}
              onChange={({ target }) => setText(target.value)}
            />
          </div>
        </div>
        <div className="flex gap-2">
          <Button type="submit" look="primary" disabled={text.trim() === ""}>
            Add
          </Button>
          <Button look="quiet" onClick={onClose}>
            Done
          </Button>
        </div>
      </form>
    </Sheet>
  );
}
