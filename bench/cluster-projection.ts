import { compileCondition, type Condition } from "../src/model/condition.ts";
import { projectEvents } from "../src/detection/simulation/project-events.ts";
import type { Store } from "../src/store/ports/store.ts";
import { timed } from "./bench.ts";
import { PREFIX, type BenchEngines } from "./cluster-engines.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// What a simulation reads: the source addresses of all events of a type. The plain request returns the same events as one page.

const ROUNDS = 5;
const TYPE = "login_failure";
const condition: Condition = { kind: "test", field: "type", operator: "equals", value: TYPE, ignoreCase: false };
const PAGE_MAX = 10_000;

export async function compareProjection({ embedded, cluster, client }: BenchEngines): Promise<Measurement> {
  const project = async (store: Store) => {
    let count = 0;
    const query = { condition, fields: ["raw.src_ip"] };
    for await (const part of projectEvents(store.events, query, new AbortController().signal)) count += part.length;
    return count;
  };
  const took: Record<"cluster" | "plain" | "embedded", number[]> = { cluster: [], plain: [], embedded: [] };
  const matches = compileCondition(condition);
  let read = 0;
  let returned = 0;
  for (let round = 0; round <= ROUNDS; round++) {
    const ours = await timed(() => project(cluster));
    const one = await timed(() => project(embedded));
    const plain = await timed(() =>
      client.send<{ hits: { hits: { _source: { text: string } }[] } }>(
        { operation: "bench" },
        {
          method: "POST",
          path: `/${PREFIX}-events-2*/_search`,
          body: {
            size: PAGE_MAX,
            sort: [{ timestamp: "asc" }, { id: "asc" }],
            track_total_hits: false,
            query: { term: { type: TYPE } },
          },
        },
      ),
    );
    if (ours.value !== one.value) throw new Error(`projections differ: ${ours.value} and ${one.value} events`);
    read = ours.value;
    returned = plain.value.hits.hits.filter(({ _source }) => matches(JSON.parse(_source.text))).length;
    if (round === 0) continue;
    took.cluster.push(ours.ms);
    took.embedded.push(one.ms);
    took.plain.push(plain.ms);
  }
  const perEvent = (values: readonly number[], events: number) => (spreadOf(values).p50 * 1000) / Math.max(1, events);
  const [ours, plain] = [perEvent(took.cluster, read), perEvent(took.plain, returned)];
  return {
    name: `projection of ${read.toLocaleString("en")} events, as simulations read them`,
    result: `p50 ${ms(spreadOf(took.cluster).p50)}, ${ours.toFixed(1)} µs an event; embedded p50 ${ms(spreadOf(took.embedded).p50)}`,
    baseline: `${plain.toFixed(1)} µs an event in one plain search for ${returned.toLocaleString("en")}`,
    ratio: ours / plain,
    target: "",
    met: true,
    values: { cluster: ours, plain, embedded: perEvent(took.embedded, read) },
  };
}
