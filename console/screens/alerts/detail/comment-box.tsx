import { useState, type RefObject } from "react";
import { keyLabel, KEYS } from "../../../app/keys.ts";
import { Button } from "../../../components/ui/button.tsx";
import { Icon } from "../../../components/ui/icons.tsx";

interface CommentBoxProps {
  readonly box: RefObject<HTMLTextAreaElement | null>;
  /** Why nothing can be written. */
  readonly refusal: string | undefined;
  /** Resolves to false if it was not sent; the text stays. */
  readonly onSend: (text: string) => Promise<boolean>;
}

const ROWS_MAX = 8;

export function CommentBox({ box, refusal, onSend }: CommentBoxProps) {
  const [text, setText] = useState("");
  const [isSending, setSending] = useState(false);
  const send = async () => {
    if (text.trim() === "" || isSending) return;
    setSending(true);
    if (await onSend(text)) setText("");
    setSending(false);
  };
  return (
    <form
      className="flex items-end gap-2 border-t border-line px-5 py-2.5 focus-within:border-accent focus-within:shadow-[inset_0_1px_0_var(--accent)]"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Icon name="message-square" size={15} className="mb-1.5 text-ink3" />
      <textarea
        ref={box}
        aria-label="Comment"
        placeholder={refusal ?? "Write a comment. Markdown works."}
        disabled={refusal !== undefined}
        rows={Math.min(ROWS_MAX, text.split("\n").length)}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void send();
          } else if (event.key === "Escape") {
            event.preventDefault();
            event.currentTarget.blur();
          }
        }}
        className="min-h-7 min-w-0 flex-1 resize-none bg-transparent py-1 text-sm outline-none disabled:cursor-not-allowed"
      />
      {text === "" ? (
        <kbd aria-hidden className="mb-1.5 max-md:hidden">
          {keyLabel(KEYS.alert.comment.keys[0])}
        </kbd>
      ) : (
        <Button type="submit" look="primary" icon="send" disabled={isSending} title="Ctrl Enter">
          Send
        </Button>
      )}
    </form>
  );
}
