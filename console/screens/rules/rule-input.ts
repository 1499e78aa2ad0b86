import type { Rule } from "../../data/client.ts";
import type { RuleInput } from "../../data/rules.ts";

// A rule as it is sent, and what the address says about the editor.

const READ_ONLY = ["id", "builtin", "created_at", "updated_at", "stats"] as const;

/** The rule without what only the service decides, and without what has its default: the text stays short. */
export function inputOf(rule: Rule): RuleInput {
  const input: Record<string, unknown> = { ...rule };
  for (const field of READ_ONLY) delete input[field];
  for (const [field, value] of Object.entries(input)) {
    if (value === null || (Array.isArray(value) && value.length === 0 && field !== "conditions")) delete input[field];
  }
  if (rule.sequence === null || rule.sequence_order === "in_order") delete input["sequence_order"];
  const dedup: Record<string, unknown> = { ...rule.dedup };
  if (rule.dedup.by === null) delete dedup["by"];
  return { ...input, dedup } as unknown as RuleInput;
}

export const NEW_RULE: RuleInput = {
  name: "site.",
  description: "",
  severity: "medium",
  enabled: true,
  source: "any",
  conditions: [{ field: "type", equals: "" }],
  dedup: { period: "1h" },
  actions: [{ alert: { channels: [] } }],
};

/** A rule of one's own that starts as another. Its exceptions stay where they are. */
export function duplicateOf(rule: Rule): RuleInput {
  const input = inputOf({ ...rule, exceptions: [], origin: null });
  const name = `site.${rule.name.slice(rule.name.indexOf(".") + 1)}`;
  return { ...input, name: name === rule.name ? `${name}_copy` : name, enabled: true };
}

export const copyOf = (id: string) => `copy:${id}`;

export type EditTarget =
  | { readonly kind: "new" }
  | { readonly kind: "copy"; readonly id: string }
  | { readonly kind: "existing"; readonly id: string };

/** `edit=new`, `edit=copy:rule_…`, `edit=rule_…`. */
export function readEdit(edit: string | undefined): EditTarget | undefined {
  if (edit === undefined) return undefined;
  if (edit === "new") return { kind: "new" };
  return edit.startsWith("copy:") ? { kind: "copy", id: edit.slice("copy:".length) } : { kind: "existing", id: edit };
}
