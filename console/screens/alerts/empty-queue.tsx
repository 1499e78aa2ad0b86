import { useQueries, useQuery } from "@tanstack/react-query";
import { Button } from "../../components/ui/button.tsx";
import { CopyButton } from "../../components/ui/copy.tsx";
import { Empty } from "../../components/ui/states.tsx";
import { alertCountQuery, type AlertFilters } from "../../data/alerts.ts";
import { count, exact } from "../../text/numbers.ts";
import type { FilterName, FilterTexts, ListState } from "./address.ts";
import { chipsOf } from "./filters/filter-text.ts";

interface EmptyQueueProps {
  readonly state: ListState;
  readonly filters: AlertFilters;
  readonly onChange: (changes: FilterTexts) => void;
  readonly onAllTime: () => void;
}

const TEST_EVENT = `curl -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" ${location.origin}/v1/events -d '{"type":"door_forced","source":"custom","severity":"high","raw":{"door":"Test"}}'`;

/** What would bring something here. */
export function EmptyQueue({ state, filters, onChange, onAllTime }: EmptyQueueProps) {
  const { from: _, to: __, time: ___, ...timeless } = filters;
  const everything = useQuery(alertCountQuery({}));
  const anyTime = useQuery(alertCountQuery(timeless));
  const chips = chipsOf(state.filters).filter(({ name }) => name !== "time");
  const without = useQueries({
    queries: chips.map(({ name }) => alertCountQuery(withoutFilter(filters, name))),
  });
  if (everything.data === 0) {
    return (
      <Empty title="No alerts yet">
        <p>A rule raises one when events match it. Send an event that does:</p>
        <div className="mt-2 flex items-start gap-1 rounded-md border border-line bg-panel p-2 text-left">
          <code className="mono min-w-0 flex-1 wrap-anywhere">{TEST_EVENT}</code>
          <CopyButton text={TEST_EVENT} label="Copy the command" />
        </div>
      </Empty>
    );
  }
  const isToDo = state.view?.id === "todo" && !state.isChanged;
  return (
    <Empty title={isToDo ? "Nothing to do" : "Nothing matches"}>
      {isToDo && <p>Every critical and high alert of this time is in somebody&apos;s hands or resolved.</p>}
      <div className="mt-2 flex flex-wrap justify-center gap-2">
        {chips.map(({ name, label, value }, i) => {
          const found = without[i]?.data ?? 0;
          return found === 0 ? null : (
            <Button key={name} onClick={() => onChange({ [name]: undefined })}>
              {exact(found)} without {label} {value}
            </Button>
          );
        })}
        {(anyTime.data ?? 0) > 0 && (
          <Button icon="clock-3" onClick={onAllTime}>
            {count(anyTime.data!, "alert")} at other times
          </Button>
        )}
      </div>
    </Empty>
  );
}

function withoutFilter(filters: AlertFilters, name: FilterName): AlertFilters {
  return Object.fromEntries(Object.entries(filters).filter(([each]) => each !== name));
}
