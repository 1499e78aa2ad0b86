import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Button } from "../../components/ui/button.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import type { Rule } from "../../data/client.ts";
import { deleteRule, refreshRules } from "../../data/rules.ts";

interface DeleteSheetProps {
  readonly rule: Rule;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteSheet({ rule, onClose, onDeleted }: DeleteSheetProps) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteRule(rule.id),
    onSuccess: () => {
      showToast(`Deleted the rule ${rule.name}.`);
      onDeleted();
      void refreshRules(client);
    },
  });
  return (
    <Sheet
      open
      onClose={onClose}
      title="Delete this rule?"
      footer={
        <>
          {remove.error !== null && (
            <p role="alert" className="text-xs text-critical">
              {remove.error.message}
            </p>
          )}
          <Button className="ml-auto" onClick={onClose}>
            Keep it
          </Button>
          <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
            Delete
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">
        <code className="mono text-ink">{rule.name}</code> stops looking for events, and its exceptions are lost. Its
        alerts stay. To stop it for a while, switch it off instead.
      </p>
    </Sheet>
  );
}
