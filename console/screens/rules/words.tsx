import { Fragment } from "react";
import { conditionWords, type ConditionWords, type Phrase } from "../../text/conditions.ts";

/** Words in which the values of events stand out. */
function PhraseText({ phrase }: { phrase: Phrase }) {
  return phrase.map((part, index) => (
    // The parts of a phrase never change places.
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={index}>
      {typeof part === "string" ? part : <strong className="font-medium break-words text-ink">{part.value}</strong>}
    </Fragment>
  ));
}

function Items({ items }: { items: readonly ConditionWords[] }) {
  return (
    <ul className="space-y-1.5">
      {items.map(({ phrase, inner }, index) => (
        <li
          // Conditions never change places while they are read.
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          className="relative pl-4 before:absolute before:top-[0.6em] before:left-0.5 before:size-1 before:rounded-full before:bg-ink3"
        >
          <PhraseText phrase={phrase} />
          {inner !== undefined && (
            <div className="mt-1.5 border-l border-line pl-3">
              <Items items={inner} />
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Conditions in plain English, one under the other. */
export function Conditions({ conditions }: { conditions: readonly unknown[] }) {
  return (
    <div className="text-sm text-ink2">
      <Items items={conditions.map(conditionWords)} />
    </div>
  );
}
