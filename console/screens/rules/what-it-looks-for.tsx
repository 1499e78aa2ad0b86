import type { Rule } from "../../data/client.ts";
import { count } from "../../text/numbers.ts";
import { firingWords } from "../../text/rules.ts";
import { Conditions } from "./words.tsx";

type Step = NonNullable<Rule["sequence"]>[number];

/** The conditions, the steps and the parts of a rule in words. */
export function WhatItLooksFor({ rule }: { rule: Rule }) {
  const inputs = rule.threshold?.inputs ?? [];
  return (
    <div className="space-y-4">
      {rule.conditions.length > 0 && (
        <>
          {rule.sequence !== null && <p className="text-sm text-ink2">In every step:</p>}
          <Conditions conditions={rule.conditions} />
        </>
      )}
      {rule.parts.map((part) => (
        <div key={part.name} className="rounded-lg border border-line p-3">
          <p className="text-sm font-medium">“{part.name}” happens:</p>
          <p className="mb-2 text-xs text-ink2">
            {firingWords({
              absence: null,
              window: part.window,
              threshold: part.threshold ?? null,
              sequence: part.sequence ?? null,
              sequence_order: part.sequence_order,
              sequence_min: part.sequence_min ?? null,
              group_by: part.group_by ?? null,
            })}
          </p>
          <Conditions conditions={part.conditions} />
          {part.sequence != null && <Steps steps={part.sequence} />}
        </div>
      ))}
      {inputs.map((input, index) => (
        // The inputs of a rule never change places.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index}>
          <p className="mb-1 text-2xs font-medium text-ink3">{index === 0 ? "Counts" : "and also"}</p>
          {input.part === undefined ? (
            <Conditions conditions={input.conditions ?? []} />
          ) : (
            <p className="text-sm">“{input.part}”</p>
          )}
        </div>
      ))}
      {rule.sequence !== null && <Steps steps={rule.sequence} />}
    </div>
  );
}

function Steps({ steps }: { steps: readonly Step[] }) {
  return (
    <ol className="divide-y divide-line rounded-lg border border-line">
      {steps.map((step, index) => (
        <li key={step.name} className="flex gap-3 p-3">
          <span
            aria-hidden
            className="grid size-5 shrink-0 place-items-center rounded-full bg-hover text-2xs font-semibold text-ink2"
          >
            {index + 1}
          </span>
          <div className="min-w-0 space-y-1.5">
            <p className="text-sm font-medium break-words">
              {step.absent === true && <span className="text-ink3">and not: </span>}
              {step.name}
              {step.count > 1 && <span className="font-normal text-ink2"> ({count(step.count, "time")})</span>}
            </p>
            {step.part === undefined ? (
              <Conditions conditions={step.conditions ?? []} />
            ) : (
              step.part !== step.name && <p className="text-sm text-ink2">“{step.part}”</p>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}
