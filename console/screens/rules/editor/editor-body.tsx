import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { Suspense, useRef, useState } from "react";
import { useKeys } from "../../../app/keys.ts";
import { Button, IconButton } from "../../../components/ui/button.tsx";
import { Segments } from "../../../components/ui/segments.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { Skeleton } from "../../../components/ui/states.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import { ApiError, type Fault } from "../../../data/client.ts";
import {
  createRule,
  noteRule,
  refreshRules,
  replaceRule,
  ruleQuery,
  simulateRule,
  type ReadRule,
  type RuleInput,
} from "../../../data/rules.ts";
import { count } from "../../../text/numbers.ts";
import { faultsOfRule, type Draft } from "./draft.ts";
import { FaultContext } from "./fault-context.ts";
import { RuleForm } from "./form.tsx";
import { TestsPanel } from "./tests-panel.tsx";
import { TryPanel } from "./try-panel.tsx";
import { useDraft } from "./use-draft.ts";
import { lazyPart } from "../../../components/ui/lazy-part.ts";

const YamlView = lazyPart(() => import("./yaml-view.tsx"));

interface EditorBodyProps {
  readonly first: Draft;
  /** The rule that is replaced; a new one is created without it. */
  readonly existing?: ReadRule;
  readonly copyOf?: string;
  readonly onClose: (saved?: string) => void;
}

const faultsIn = (error: Error): readonly Fault[] => (error instanceof ApiError ? faultsOfRule(error.faults) : []);

const editOf = (search: unknown) => (search as { edit?: string }).edit;

export function EditorBody({ first, existing, copyOf, onClose }: EditorBodyProps) {
  const client = useQueryClient();
  const draft = useDraft(first);
  const [view, setView] = useState<"form" | "yaml">("form");
  const [faults, setFaults] = useState<readonly Fault[]>([]);
  const [etag, setEtag] = useState(existing?.etag ?? null);
  const [isConflict, setConflict] = useState(false);
  const input = draft.rule as unknown as RuleInput;

  const attempt = useMutation({
    mutationFn: (rule: RuleInput) => simulateRule(rule),
    onSuccess: () => setFaults([]),
    onError: (error) => setFaults(faultsIn(error)),
  });
  const save = useMutation({
    mutationFn: () => (existing === undefined ? createRule(input) : replaceRule(existing.rule.id, input, etag)),
    onSuccess: (read) => {
      noteRule(client, read);
      void refreshRules(client);
      const warnings = read.warnings.map((warning) => ` But ${warning}.`).join("");
      showToast(`${existing === undefined ? "Created" : "Saved"} the rule ${read.rule.name}.${warnings}`);
      isSaved.current = true;
      onClose(read.rule.name);
    },
    onError: (error) => {
      const isTaken = error instanceof ApiError && error.status === 409;
      if (isTaken && existing !== undefined) setConflict(true);
      else setFaults(isTaken ? [{ field: "name", message: "is taken by another rule" }] : faultsIn(error));
    },
  });
  /** Takes the newest revision, so that the next save replaces it; what was typed stays. */
  const overwrite = async () => {
    const read = await client.fetchQuery({ ...ruleQuery(existing!.rule.id), staleTime: 0 });
    setEtag(read.etag);
    setConflict(false);
    save.reset();
    showToast("Now based on the newest version. Save to replace it.");
  };
  // However the editor is left, what was typed is not lost unasked.
  const isSaved = useRef(false);
  const mustAsk = () => draft.isChanged && !isSaved.current;
  const leaving = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      mustAsk() && (current.pathname !== next.pathname || editOf(current.search) !== editOf(next.search)),
    enableBeforeUnload: mustAsk,
    withResolver: true,
  });
  const close = () => onClose();
  useKeys("everywhere", { back: close });
  const general = save.error !== null && faults.length === 0 && !isConflict ? save.error.message : undefined;
  const heading =
    existing !== undefined ? existing.rule.name : copyOf === undefined ? "New rule" : `New rule, from ${copyOf}`;
  return (
    <FaultContext value={faults}>
      <main className="flex h-full min-h-0 flex-col">
        <div className="flex flex-wrap items-center gap-3 border-b border-line px-4 py-3">
          <IconButton icon="chevron-left" label="Back to the rules" bordered onClick={close} />
          <h1
            className={`min-w-0 truncate text-lg font-semibold tracking-tight ${existing === undefined ? "" : "mono"}`}
          >
            {heading}
          </h1>
          <Segments
            label="View"
            value={view}
            options={[
              { value: "form", label: "Form" },
              { value: "yaml", label: "YAML" },
            ]}
            onChange={setView}
          />
          <div className="ml-auto flex items-center gap-2">
            <Button onClick={close}>Cancel</Button>
            <Button
              look="primary"
              disabled={save.isPending || draft.problem !== undefined}
              title={draft.problem === undefined ? undefined : "The YAML cannot be read."}
              onClick={() => save.mutate()}
            >
              {existing === undefined ? "Create the rule" : "Save"}
            </Button>
          </div>
        </div>
        <div className="grid min-h-0 flex-1 grid-cols-[minmax(0,1fr)_minmax(380px,440px)] max-lg:block max-lg:overflow-y-auto">
          <div className="min-h-0 overflow-y-auto p-4 max-lg:overflow-visible" tabIndex={-1}>
            <div className={`mx-auto flex max-w-4xl flex-col gap-4 ${view === "yaml" ? "h-full min-h-96" : ""}`}>
              <Notice faults={faults} general={general} problem={view === "form" ? undefined : draft.problem} />
              {view === "yaml" ? (
                <div className="min-h-0 flex-1">
                  <Suspense fallback={<Skeleton className="h-full" />}>
                    <YamlView rule={draft.rule} yaml={draft.yaml} onChange={draft.setYaml} />
                  </Suspense>
                </div>
              ) : draft.problem === undefined ? (
                <RuleForm
                  rule={draft.rule}
                  isNameFixed={existing !== undefined}
                  onRule={draft.setRule}
                  onYaml={() => setView("yaml")}
                />
              ) : (
                <Unreadable problem={draft.problem} onBack={() => setView("yaml")} />
              )}
            </div>
          </div>
          <div className="min-h-0 space-y-8 overflow-y-auto border-l border-line bg-panel p-4 max-lg:border-t max-lg:border-l-0 max-lg:overflow-visible">
            <TryPanel
              rule={draft.rule}
              result={attempt.data}
              error={attempt.error}
              isPending={attempt.isPending}
              isStale={attempt.variables !== input}
              isBlocked={draft.problem !== undefined}
              onTry={() => attempt.mutate(input)}
            />
            <TestsPanel
              rule={draft.rule}
              isBlocked={draft.problem !== undefined}
              onRule={draft.setRule}
              onYaml={view === "form" ? () => setView("yaml") : undefined}
              onFaults={setFaults}
            />
          </div>
        </div>
        {leaving.status === "blocked" && <LeaveSheet onStay={leaving.reset} onLeave={leaving.proceed} />}
        {isConflict && (
          <ConflictSheet
            onClose={() => setConflict(false)}
            onOverwrite={() => void overwrite().catch((error: Error) => showToast(error.message, { isProblem: true }))}
            onDiscard={() => {
              isSaved.current = true;
              onClose(existing!.rule.name);
            }}
          />
        )}
      </main>
    </FaultContext>
  );
}

interface NoticeProps {
  readonly faults: readonly Fault[];
  readonly general: string | undefined;
  readonly problem: string | undefined;
}

/** All that is wrong, in one place; each also stands at its field or line. */
function Notice({ faults, general, problem }: NoticeProps) {
  if (faults.length === 0 && general === undefined && problem === undefined) return null;
  return (
    <div role="alert" className="rounded-lg border border-critical/60 bg-panel px-4 py-3 text-sm">
      {general !== undefined && <p>{general}</p>}
      {problem !== undefined && <p>{problem}</p>}
      {faults.length > 0 && (
        <>
          <p className="font-medium">{count(faults.length, "thing")} to mend</p>
          <ul className="mt-1 space-y-0.5 text-xs text-ink2">
            {faults.map(({ field, message }) => (
              <li key={`${field} ${message}`}>
                <code className="mono text-ink">{field}</code> {message}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function Unreadable({ problem, onBack }: { problem: string; onBack: () => void }) {
  return (
    <div role="alert" className="space-y-3 rounded-xl border border-line bg-panel p-6 text-center">
      <p className="text-base font-medium">The form cannot show this YAML</p>
      <p className="text-sm text-ink2">{problem}. Nothing of what you typed is lost.</p>
      <Button onClick={onBack}>Back to the YAML</Button>
    </div>
  );
}

function LeaveSheet({ onStay, onLeave }: { onStay: () => void; onLeave: () => void }) {
  return (
    <Sheet
      open
      onClose={onStay}
      title="Leave without saving?"
      footer={
        <>
          <Button className="ml-auto" onClick={onStay}>
            Stay
          </Button>
          <Button look="danger" onClick={onLeave}>
            Leave
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">What you changed is lost.</p>
    </Sheet>
  );
}

interface ConflictSheetProps {
  readonly onClose: () => void;
  readonly onOverwrite: () => void;
  readonly onDiscard: () => void;
}

function ConflictSheet({ onClose, onOverwrite, onDiscard }: ConflictSheetProps) {
  return (
    <Sheet
      open
      onClose={onClose}
      title="Somebody else changed this rule"
      footer={
        <>
          <Button className="ml-auto" onClick={onDiscard}>
            See theirs
          </Button>
          <Button look="danger" onClick={onOverwrite}>
            Keep mine
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">
        It was saved after you opened it. “Keep mine” replaces it when you save next; “See theirs” drops what you typed.
      </p>
    </Sheet>
  );
}
