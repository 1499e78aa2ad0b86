import { parseExact } from "../../lib/exact-json.ts";
import type { Scalar } from "../../model/condition.ts";
import type { Event } from "../../model/event.ts";
import { fieldReader, OBJECT } from "../../model/field.ts";
import type { TimeRange } from "../../model/query.ts";
import type { EventEngine } from "../../store/ports/event-engine.ts";
import type { ProjectedColumn, ProjectedEvents, Projection } from "../../store/ports/projection.ts";
import { compilePredicate } from "../matching/compile-condition.ts";
import { EventFacts } from "../matching/event-facts.ts";
import { RulePatterns } from "../matching/rule-patterns.ts";

/** The projection of an engine that has none of its own is made from its scan. */
export function projectEvents(
  engine: Pick<EventEngine, "project" | "scan">,
  query: Projection & TimeRange,
  signal: AbortSignal,
): AsyncIterable<ProjectedEvents> {
  return engine.project ? engine.project(query, signal) : projectByScan(engine, query, signal);
}

export async function* projectByScan(
  engine: Pick<EventEngine, "scan">,
  { fields, tests = [], ...query }: Projection & TimeRange,
  signal: AbortSignal,
): AsyncIterable<ProjectedEvents> {
  const readers = fields.map(fieldReader);
  const facts = new EventFacts();
  const patterns = new RulePatterns();
  const predicates = tests.map((test) => compilePredicate(test, { facts, patterns, releases: [] }));
  let seq = 0;
  for await (const texts of engine.scan(query, signal)) {
    const events = texts.map((text) => parseExact(text) as Event);
    yield {
      length: events.length,
      seqs: Float64Array.from(events, () => ++seq),
      timesMs: Float64Array.from(events, ({ timestamp }) => Date.parse(timestamp)),
      passed: Int32Array.from(events, (event) => {
        facts.setEvent(event);
        patterns.startEvent();
        return predicates.reduce((bits, holds, n) => (holds() ? bits | (1 << n) : bits), 0);
      }),
      columns: readers.map((read) => projectColumn(events, read)),
    };
  }
}

const NO_VALUES: readonly Scalar[] = [];

function projectColumn(events: readonly Event[], read: ReturnType<typeof fieldReader>): ProjectedColumn {
  const values: (readonly Scalar[])[] = [NO_VALUES];
  const numbers = Int32Array.from(events, (event) => {
    const found = new Set(read(event).filter((value): value is Scalar => value !== OBJECT));
    return found.size === 0 ? 0 : values.push([...found]) - 1;
  });
  return { numbers, values };
}
