import { useQuery } from "@tanstack/react-query";
import { Button } from "../../../components/ui/button.tsx";
import { Empty, Failure, Skeleton } from "../../../components/ui/states.tsx";
import { ruleQuery, type ReadRule } from "../../../data/rules.ts";
import { useMay } from "../../../data/session.ts";
import { duplicateOf, inputOf, NEW_RULE, type EditTarget } from "../rule-input.ts";
import type { Draft } from "./draft.ts";
import { EditorBody } from "./editor-body.tsx";

interface EditorProps {
  readonly target: EditTarget;
  /** With the name of the rule that was saved, if one was. */
  readonly onClose: (saved?: string) => void;
}

export default function Editor({ target, onClose }: EditorProps) {
  const mayWrite = useMay("rules:write");
  if (!mayWrite) {
    return (
      <main className="h-full">
        <h1 className="sr-only">Rules</h1>
        <Empty title="Your key may not change rules">
          <p className="mb-3">
            It needs the scope <code className="mono">rules:write</code>.
          </p>
          <Button onClick={() => onClose()}>Back to the rules</Button>
        </Empty>
      </main>
    );
  }
  if (target.kind === "new") return <EditorBody first={NEW_RULE as unknown as Draft} onClose={onClose} />;
  return <Existing id={target.id} isCopy={target.kind === "copy"} onClose={onClose} />;
}

interface ExistingProps {
  readonly id: string;
  readonly isCopy: boolean;
  readonly onClose: EditorProps["onClose"];
}

function Existing({ id, isCopy, onClose }: ExistingProps) {
  const read = useQuery({ ...ruleQuery(id), refetchOnMount: "always" });
  if (read.data === undefined || (read.isFetching && !read.isFetchedAfterMount)) {
    return (
      <main className="h-full p-4">
        <h1 className="sr-only">Rules</h1>
        {read.error === null ? (
          <Skeleton className="h-96" />
        ) : (
          <Failure error={read.error} onRetry={() => void read.refetch()} />
        )}
      </main>
    );
  }
  return <Loaded read={read.data} isCopy={isCopy} onClose={onClose} />;
}

/** A built-in rule cannot be changed; what is edited is a copy of it. */
function Loaded({ read, isCopy, onClose }: { read: ReadRule; isCopy: boolean; onClose: EditorProps["onClose"] }) {
  if (isCopy || read.rule.builtin) {
    return <EditorBody first={duplicateOf(read.rule) as unknown as Draft} copyOf={read.rule.name} onClose={onClose} />;
  }
  return <EditorBody first={inputOf(read.rule) as unknown as Draft} existing={read} onClose={onClose} />;
}
