import { useMutation, useQueryClient } from "@tanstack/react-query";
import { showToast } from "../../components/ui/toasts.tsx";
import type { Rule } from "../../data/client.ts";
import { noteRule, switchRule } from "../../data/rules.ts";

/** Switches a rule on or off at once; it can be undone. */
export function useRuleSwitch() {
  const client = useQueryClient();
  const mutation = useMutation({
    mutationFn: ({ rule, isOn }: { rule: Rule; isOn: boolean; isUndo?: boolean }) => switchRule(rule.id, isOn),
    onSuccess: (read, { rule, isOn, isUndo }) => {
      noteRule(client, read);
      const text = `Switched ${rule.name} ${isOn ? "on" : "off"}.`;
      if (isUndo === true) showToast(text);
      else showToast(text, { undo: () => mutation.mutate({ rule, isOn: !isOn, isUndo: true }) });
    },
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  return {
    switchTo: (rule: Rule, isOn: boolean) => mutation.mutate({ rule, isOn }),
    switchingId: mutation.isPending ? mutation.variables.rule.id : undefined,
  };
}
