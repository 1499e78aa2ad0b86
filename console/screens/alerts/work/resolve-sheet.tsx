import { useRef, useState } from "react";
import { keyLabel, KEYS, useKeys } from "../../../app/keys.ts";
import { Button } from "../../../components/ui/button.tsx";
import { Check, TextArea } from "../../../components/ui/fields.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { RESOLUTIONS, type Change, type Resolution } from "../../../data/alert-changes.ts";
import type { AlertDetail } from "../../../data/client.ts";
import { count } from "../../../text/numbers.ts";
import { RESOLUTION_WORDS } from "../detail/timeline-words.ts";
import { ExceptionForm, type DraftException } from "./exception-form.tsx";

interface ResolveSheetProps {
  /** The alert; undefined for several at once. */
  readonly alert: AlertDetail | undefined;
  readonly count: number;
  readonly startWithException: boolean;
  /** Why no exception can be made. */
  readonly exceptionRefusal: string | undefined;
  readonly onResolve: (change: Change) => Promise<boolean>;
  readonly onClose: () => void;
}

const HINTS: Record<Resolution, string> = {
  true_positive: "It was what the rule looks for.",
  false_positive: "The rule should not have fired.",
  benign: "It happened, and was allowed.",
  duplicate: "Another alert is about the same.",
};
const NAMES = ["first", "second", "third", "fourth"] as const;

const DAY_MS = 86_400_000;

function toException({ days, ...exception }: DraftException) {
  return { ...exception, expires_at: days === null ? null : new Date(Date.now() + days * DAY_MS).toISOString() };
}

export function ResolveSheet(props: ResolveSheetProps) {
  const { alert, startWithException, exceptionRefusal, onResolve, onClose } = props;
  const options = useRef<HTMLFieldSetElement>(null);
  const first = useRef<HTMLInputElement>(null);
  const [resolution, setResolution] = useState<Resolution>(startWithException ? "false_positive" : "true_positive");
  const [comment, setComment] = useState("");
  const [actions, setActions] = useState("");
  const [hasException, setHasException] = useState(startWithException);
  const [exception, setException] = useState<DraftException>();
  const [isSending, setSending] = useState(false);
  const choose = (next: Resolution) => {
    setResolution(next);
    options.current?.querySelector<HTMLInputElement>(`input[value=${next}]`)?.focus();
  };
  useKeys("resolving", Object.fromEntries(NAMES.map((name, i) => [name, () => choose(RESOLUTIONS[i]!)])), {
    inSheet: true,
  });
  const withException = resolution === "false_positive" && hasException && alert !== undefined;
  const isIncomplete = withException && exception === undefined;
  const send = async () => {
    if (isSending || isIncomplete) return;
    setSending(true);
    const lines = actions.split("\n").map((line) => line.trim());
    const taken = lines.filter((line) => line !== "");
    const isDone = await onResolve({
      action: "resolve",
      resolution,
      ...(comment.trim() !== "" && { comment }),
      ...(taken.length > 0 && alert !== undefined && { actions_taken: taken }),
      ...(withException && { exception: toException(exception!) }),
    });
    setSending(false);
    if (isDone) onClose();
  };
  return (
    <Sheet
      open
      onClose={onClose}
      title={alert === undefined ? `Resolve ${count(props.count, "alert")}` : "Resolve the alert"}
      initialFocus={first}
      footer={
        <>
          <Button type="submit" form="resolve" look="primary" hint="Enter" disabled={isSending || isIncomplete}>
            {withException ? "Resolve and make the exception" : "Resolve"}
          </Button>
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
        </>
      }
    >
      {/* Ctrl Enter sends from within a text. */}
      <form
        id="resolve"
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
        }}
      >
        {alert !== undefined && <p className="text-sm wrap-anywhere text-ink2">{alert.title}</p>}
        <fieldset ref={options}>
          <legend className="mb-1.5 text-xs font-medium text-ink2">It was</legend>
          <div className="grid grid-cols-2 gap-2 max-md:grid-cols-1">
            {RESOLUTIONS.map((value, i) => (
              <label
                key={value}
                className={`flex cursor-pointer items-start gap-2.5 rounded-lg border px-3 py-2 has-focus-visible:outline-2 has-focus-visible:outline-accent ${resolution === value ? "border-accent bg-accent-soft/60" : "border-line hover:border-line2"}`}
              >
                <input
                  ref={value === resolution ? first : undefined}
                  type="radio"
                  name="resolution"
                  value={value}
                  checked={resolution === value}
                  onChange={() => setResolution(value)}
                  className="mt-0.5 accent-(--accent)"
                />
                <span className="min-w-0 flex-1">
                  <span className="block text-sm font-medium first-letter:uppercase">{RESOLUTION_WORDS[value]}</span>
                  <span className="block text-2xs text-ink3">{HINTS[value]}</span>
                </span>
                <kbd aria-hidden>{keyLabel(KEYS.resolving[NAMES[i]!].keys[0])}</kbd>
              </label>
            ))}
          </div>
        </fieldset>
        {resolution === "false_positive" && alert !== undefined && (
          <div className="space-y-3 rounded-lg border border-line bg-app/50 p-3">
            <Check
              label="Make an exception, so that the rule ignores this from now on"
              checked={hasException && exceptionRefusal === undefined}
              disabled={exceptionRefusal !== undefined}
              onChange={setHasException}
            />
            {exceptionRefusal !== undefined && <p className="text-2xs text-ink3">{exceptionRefusal}</p>}
            {hasException && exceptionRefusal === undefined && <ExceptionForm alert={alert} onChange={setException} />}
          </div>
        )}
        <TextArea
          label="Comment"
          placeholder="What was it? Markdown works."
          rows={2}
          value={comment}
          onChange={({ target }) => setComment(target.value)}
        />
        {alert !== undefined && (
          <TextArea
            label="What was done"
            hint="One action per line."
            rows={2}
            value={actions}
            onChange={({ target }) => setActions(target.value)}
          />
        )}
      </form>
    </Sheet>
  );
}
