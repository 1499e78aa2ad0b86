import { useState } from "react";
import type { Draft } from "./draft.ts";
import type { YamlState } from "./yaml-view.tsx";

/** One rule with two views. The form changes the rule; the YAML changes its text, and the rule where the text can be read. */
export function useDraft(first: Draft) {
  const [rule, setRule] = useState(first);
  const [yaml, setYaml] = useState<YamlState>();
  return {
    rule,
    yaml,
    /** What keeps the YAML from being read. */
    problem: yaml?.problem,
    isChanged: JSON.stringify(rule) !== JSON.stringify(first) || yaml?.problem !== undefined,
    setRule,
    setYaml: (next: YamlState) => {
      setYaml(next);
      setRule(next.rule);
    },
  };
}
