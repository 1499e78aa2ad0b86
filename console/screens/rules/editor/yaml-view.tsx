import { useContext, useEffect, useRef } from "react";
import { readPath, type Draft } from "./draft.ts";
import { FaultContext } from "./fault-context.ts";
import { rangeOf, readYaml, updateYaml, writeYaml, type ReadYaml } from "./rule-yaml.ts";
import { openYamlEditor, type YamlEditor } from "./yaml-editor.ts";

/** The text, and the rule that it says; while it cannot be read, the rule is the last one that could. */
export interface YamlState {
  readonly text: string;
  readonly rule: Draft;
  readonly problem: string | undefined;
}

interface YamlViewProps {
  readonly rule: Draft;
  /** What was typed before, if the YAML was open already. */
  readonly yaml: YamlState | undefined;
  readonly onChange: (yaml: YamlState) => void;
}

/** A text that still says the rule stays as typed; otherwise the rule was changed in the form. */
function textOf(rule: Draft, yaml: YamlState | undefined): string {
  if (yaml === undefined) return writeYaml(rule);
  return yaml.rule === rule ? yaml.text : updateYaml(yaml.text, rule);
}

const lineOf = (text: string, at: number) => text.slice(0, at).split("\n").length;

function problemOf(text: string, { faults }: ReadYaml): string | undefined {
  const [first] = faults ?? [];
  return first && `Line ${lineOf(text, first.from)}: ${first.message}`;
}

export default function YamlView({ rule, yaml, onChange }: YamlViewProps) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<YamlEditor>(undefined);
  const faults = useContext(FaultContext);
  const current = useRef({ rule, yaml, onChange });
  useEffect(() => {
    current.current = { rule, yaml, onChange };
  });
  useEffect(() => {
    const shadow = host.current!.shadowRoot ?? host.current!.attachShadow({ mode: "open" });
    const first = textOf(current.current.rule, current.current.yaml);
    const showSyntax = (read: ReadYaml) => editor.current?.setFaults(read.faults ?? []);
    const opened = openYamlEditor({
      parent: shadow,
      text: first,
      label: "The rule as YAML",
      isReadOnly: false,
      onChange: (text) => {
        const read = readYaml(text);
        if (read.faults !== undefined || current.current.yaml?.problem !== undefined) showSyntax(read);
        const last = read.rule ?? current.current.rule;
        current.current.onChange({ text, rule: last, problem: problemOf(text, read) });
      },
    });
    editor.current = opened;
    const read = readYaml(first);
    if (read.faults !== undefined) showSyntax(read);
    if (current.current.yaml?.text !== first) {
      current.current.onChange({ text: first, rule: current.current.rule, problem: problemOf(first, read) });
    }
    opened.focus();
    return () => {
      opened.destroy();
      editor.current = undefined;
    };
  }, []);
  // What the service refuses is shown where it stands, until the next attempt.
  useEffect(() => {
    const text = current.current.yaml?.text;
    if (text === undefined || current.current.yaml?.problem !== undefined) return;
    editor.current?.setFaults(
      faults.map(({ field, message }) => ({ ...rangeOf(text, readPath(field)), message: `${field}: ${message}` })),
    );
  }, [faults]);
  return <div ref={host} className="h-full overflow-hidden rounded-xl border border-line bg-panel" />;
}
