import { useRef, useState } from "react";
import { Button } from "../../../components/ui/button.tsx";
import { TextField } from "../../../components/ui/fields.tsx";
import { Person } from "../../../components/ui/marks.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { isAddress, setMyAddress } from "../../../data/me.ts";
import { count } from "../../../text/numbers.ts";

interface AssignSheetProps {
  readonly count: number;
  readonly assignee: string | null;
  readonly me: string | undefined;
  /** Who else has alerts. */
  readonly people: readonly string[];
  readonly onAssign: (assignee: string | null) => Promise<boolean>;
  readonly onClose: () => void;
}

export function AssignSheet({ count: alerts, assignee, me, people, onAssign, onClose }: AssignSheetProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string>();
  const assign = (person: string | null) => void onAssign(person).then((isDone) => isDone && onClose());
  const others = [...new Set([...(me === undefined ? [] : [me]), ...people])].filter(
    (person) => isAddress(person) && person !== assignee,
  );
  return (
    <Sheet
      open
      onClose={onClose}
      title={alerts === 1 ? "Assign the alert" : `Assign ${count(alerts, "alert")}`}
      initialFocus={input}
    >
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          const address = text.trim();
          if (isAddress(address)) assign(address);
          else setFault("Must be an e-mail address.");
        }}
      >
        <div className="flex items-end gap-2">
          <div className="min-w-0 flex-1">
            <TextField
              ref={input}
              label="E-mail address"
              type="email"
              autoComplete="email"
              placeholder="eva@example.com"
              value={text}
              onChange={({ target }) => {
                setText(target.value);
                setFault(undefined);
              }}
              fault={fault}
            />
          </div>
          <Button type="submit" look="primary">
            Assign
          </Button>
        </div>
        {others.length > 0 && (
          <ul aria-label="People" className="space-y-0.5">
            {others.map((person) => (
              <li key={person}>
                <button
                  type="button"
                  onClick={() => assign(person)}
                  className="flex w-full items-center gap-3 rounded-md px-2 py-1.5 text-left text-sm hover:bg-hover"
                >
                  <Person name={person} />
                  <span className="min-w-0 truncate">{person}</span>
                  {person === me && <span className="text-2xs text-ink3">you</span>}
                </button>
              </li>
            ))}
          </ul>
        )}
        {assignee !== null && (
          <Button look="quiet" icon="x" onClick={() => assign(null)}>
            {alerts === 1 ? `Take it from ${assignee}` : "Take them from their assignees"}
          </Button>
        )}
      </form>
    </Sheet>
  );
}

interface WhoSheetProps {
  /** What goes on after the answer. */
  readonly verb: string;
  readonly onAnswer: (address: string | undefined) => void;
  readonly onClose: () => void;
}

/** Asked once, by a key that is not named after a person. */
export function WhoSheet({ verb, onAnswer, onClose }: WhoSheetProps) {
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string>();
  return (
    <Sheet open onClose={onClose} title="Who are you?" initialFocus={input}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          const address = text.trim();
          if (!isAddress(address)) {
            setFault("Must be an e-mail address.");
            return;
          }
          setMyAddress(address);
          onAnswer(address);
        }}
      >
        <p className="text-sm text-ink2">
          Alerts are assigned to e-mail addresses, and your key is not named after one. This browser remembers yours.
        </p>
        <TextField
          ref={input}
          label="Your e-mail address"
          type="email"
          autoComplete="email"
          value={text}
          onChange={({ target }) => {
            setText(target.value);
            setFault(undefined);
          }}
          fault={fault}
        />
        <div className="flex gap-2">
          <Button type="submit" look="primary">
            {verb}
          </Button>
          <Button look="quiet" onClick={() => onAnswer(undefined)}>
            {verb} without a name
          </Button>
        </div>
      </form>
    </Sheet>
  );
}
