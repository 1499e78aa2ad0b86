import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { dateTime } from "../../components/time/format.ts";
import { Button, IconButton } from "../../components/ui/button.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import type { Rule } from "../../data/client.ts";
import { addException, refreshRules, removeException, type RuleException } from "../../data/rules.ts";
import { useMay } from "../../data/session.ts";
import { Conditions } from "./words.tsx";

interface ExceptionsProps {
  readonly rule: Rule;
  readonly nowMs: number;
}

/** What the rule lets pass, why, and until when. */
export function Exceptions({ rule, nowMs }: ExceptionsProps) {
  const client = useQueryClient();
  const mayWrite = useMay("rules:write");
  const [asked, setAsked] = useState<RuleException>();
  const restore = useMutation({
    mutationFn: ({ conditions, reason, expires_at }: RuleException) =>
      addException(rule.id, { conditions: conditions as never, reason, expires_at }),
    onSuccess: () => void refreshRules(client),
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  const remove = useMutation({
    mutationFn: (exception: RuleException) => removeException(rule.id, exception.id),
    onSuccess: (_, exception) => {
      setAsked(undefined);
      showToast(`Removed the exception “${exception.reason}”.`, { undo: () => restore.mutate(exception) });
      void refreshRules(client);
    },
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  if (rule.exceptions.length === 0) {
    return (
      <p className="text-sm text-ink3">
        None. An alert that is a false positive can make one: it then lets the same thing pass.
      </p>
    );
  }
  return (
    <>
      <ul className="divide-y divide-line rounded-lg border border-line">
        {rule.exceptions.map((exception) => {
          const hasEnded = exception.expires_at !== null && Date.parse(exception.expires_at) <= nowMs;
          return (
            <li key={exception.id} className="flex items-start gap-3 py-2 pr-2 pl-3">
              <div className="min-w-0 flex-1 space-y-1">
                <p className="text-sm font-medium break-words">{exception.reason}</p>
                <Conditions conditions={exception.conditions} />
                <p className="text-2xs text-ink3">
                  {exception.expires_at === null
                    ? "never ends"
                    : `${hasEnded ? "ended" : "until"} ${dateTime(exception.expires_at)}`}
                  , by {exception.author}, {dateTime(exception.created_at)}
                </p>
              </div>
              <IconButton
                icon="trash-2"
                label={mayWrite ? `Remove the exception ${exception.reason}` : "Your key lacks the scope rules:write."}
                disabled={!mayWrite}
                onClick={() => setAsked(exception)}
              />
            </li>
          );
        })}
      </ul>
      {asked !== undefined && (
        <Sheet
          open
          onClose={() => setAsked(undefined)}
          title="Remove this exception?"
          footer={
            <>
              <Button className="ml-auto" onClick={() => setAsked(undefined)}>
                Keep it
              </Button>
              <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate(asked)}>
                Remove
              </Button>
            </>
          }
        >
          <p className="mb-3 text-sm text-ink2">“{asked.reason}”: from now on the rule raises alerts for this again.</p>
          <Conditions conditions={asked.conditions} />
        </Sheet>
      )}
    </>
  );
}
