import { useQueries, useQuery } from "@tanstack/react-query";
import { useSetRange } from "../../components/time/use-range.ts";
import { presetLabel } from "../../components/time/range.ts";
import { CopyButton } from "../../components/ui/copy.tsx";
import { Empty } from "../../components/ui/states.tsx";
import { anyEventQuery, eventTotalQuery, type EventQuestion } from "../../data/events.ts";
import { count } from "../../text/numbers.ts";
import { isEmptyFilter, without, type EventFilter } from "./address.ts";
import { fieldName } from "./filter-text.ts";
import { conditionText, conditionWords } from "./words.ts";

interface NothingProps {
  readonly question: EventQuestion;
  readonly filter: EventFilter;
  readonly onFilter: (filter: EventFilter) => void;
}

/** No row: nothing was ever stored, or which part of the question leaves nothing. */
export function Nothing({ question, filter, onFilter }: NothingProps) {
  const any = useQuery(anyEventQuery);
  if (any.data === undefined) return null;
  return any.data ? <NothingMatches question={question} filter={filter} onFilter={onFilter} /> : <NothingStored />;
}

function NothingStored() {
  const command = `curl ${location.origin}/v1/events -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" -d '{"type":"hello","source":"custom","data":{"user":"me"}}'`;
  return (
    <Empty title="No events yet">
      <p className="mb-3">What your devices report stands here. Send one yourself:</p>
      <p className="flex items-start rounded-md border border-line bg-panel py-2 pr-1 pl-3 text-left">
        <code className="mono min-w-0 flex-1 break-words text-ink2">{command}</code>
        <CopyButton text={command} label="Copy the command" />
      </p>
    </Empty>
  );
}

interface Way {
  readonly words: string;
  readonly filter: EventFilter;
}

/** Asked only while nothing matches: a few counts. */
const WAYS_MAX = 6;
const LONGEST = "90d";
const LONGEST_MS = 90 * 86_400_000;

/** Values of one field that are asked for go together: any of them is enough already. */
function waysOut(filter: EventFilter): Way[] {
  const ways: Way[] = [];
  const told = new Set<string>();
  for (const condition of filter.conditions) {
    const { field, operator } = condition;
    if (operator !== "=") {
      const words = operator.startsWith("!") ? `if it may be ${conditionWords(condition).value}` : "";
      ways.push({ words: words || `without ${conditionText(condition)}`, filter: without(filter, condition) });
    } else if (!told.has(field)) {
      told.add(field);
      const others = filter.conditions.filter((other) => other.field !== field || other.operator !== "=");
      ways.push({ words: `without the ${fieldName(field)}`, filter: { ...filter, conditions: others } });
    }
  }
  if (filter.words !== "") ways.push({ words: "without the words", filter: { ...filter, words: "" } });
  return ways.slice(0, WAYS_MAX);
}

function NothingMatches({ question, filter, onFilter }: NothingProps) {
  const setRange = useSetRange();
  const ways = waysOut(filter);
  const totals = useQueries({
    queries: ways.map((way) => eventTotalQuery({ ...question, ...way.filter })),
  });
  const nowMs = question.toMs;
  const longer = useQuery(
    eventTotalQuery({ ...question, fromMs: Math.min(question.fromMs, nowMs - LONGEST_MS), toMs: nowMs }),
  );
  return (
    <Empty title={isEmptyFilter(filter) ? "Nothing happened in this time" : "Nothing matches in this time"}>
      <ul className="space-y-1">
        {ways.map((way, index) => {
          const total = totals[index]?.data;
          return (
            total !== undefined &&
            total > 0 && (
              <li key={way.words}>
                <button type="button" className="h-6 text-accent underline" onClick={() => onFilter(way.filter)}>
                  {count(total, "event")} {way.words}
                </button>
              </li>
            )
          );
        })}
        {longer.data !== undefined && longer.data > 0 && (
          <li>
            <button type="button" className="h-6 text-accent underline" onClick={() => setRange({ range: LONGEST })}>
              {count(longer.data, "event")} in the {presetLabel(LONGEST).toLowerCase()}
            </button>
          </li>
        )}
      </ul>
    </Empty>
  );
}
