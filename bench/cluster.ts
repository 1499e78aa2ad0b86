import { withEngines, type ClusterSizes } from "./cluster-engines.ts";
import { eventQuestions } from "./cluster-event-questions.ts";
import { flowQuestions } from "./cluster-flow-questions.ts";
import { compareProjection } from "./cluster-projection.ts";
import { compareQuestion } from "./cluster-questions.ts";
import { compareWrites } from "./cluster-writes.ts";
import { cellsOf, type Measurement } from "./figures.ts";

// The embedded store and a cluster on the same data, and what the service adds to a real OpenSearch.

const EVENTS = 1_000_000;
const FLOWS = 5_000_000;

export async function cluster({
  events = EVENTS,
  flows = FLOWS,
}: Partial<ClusterSizes>): Promise<readonly Measurement[]> {
  return withEngines({ events, flows }, async (engines) => {
    const measurements: Measurement[] = [];
    const add = (...more: readonly Measurement[]) => {
      measurements.push(...more);
      for (const each of more) process.stderr.write(`${cellsOf(each).join("  ")}\n`);
    };
    for (const question of [...eventQuestions(engines), ...flowQuestions(engines)])
      add(await compareQuestion(question, engines));
    add(await compareProjection(engines));
    add(...(await compareWrites(engines)));
    return measurements;
  });
}
