import type { Store } from "../src/store/ports/store.ts";
import { timed } from "./bench.ts";
import { PREFIX, type BenchEngines } from "./cluster-engines.ts";
import { ms, spreadOf, type Measurement } from "./figures.ts";

// A question to the embedded store, to the cluster, and to OpenSearch without us. The three take turns, so that other load on the
// machine affects all.

export interface ClusterQuestion {
  readonly name: string;
  readonly kind: "events" | "flows";
  /** The range starts so much later each time: a question that was asked before is answered from a cache. */
  readonly ask: (store: Store, shiftMs: number) => Promise<unknown>;
  /** The plain search that asks the same. */
  readonly body: (shiftMs: number) => object;
  readonly ratioMax: number;
}

const ROUNDS = 11;
/** Rounds that read files and compile. */
const WARM_UP = 3;
const SHIFT_MS = 1000;

export async function compareQuestion(
  { name, kind, ask, body, ratioMax }: ClusterQuestion,
  { embedded, cluster, client }: BenchEngines,
): Promise<Measurement> {
  const plainly = (shiftMs: number) =>
    client.send(
      { operation: "bench", isQuery: true },
      { method: "POST", path: `/${PREFIX}-${kind}-2*/_search`, body: body(shiftMs) },
    );
  const runs = {
    cluster: (shiftMs: number) => ask(cluster, shiftMs),
    plain: plainly,
    embedded: (shiftMs: number) => ask(embedded, shiftMs),
  };
  const took: Record<keyof typeof runs, number[]> = { cluster: [], plain: [], embedded: [] };
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    const names = Object.keys(runs) as (keyof typeof runs)[];
    for (const [nth, each] of (round % 2 === 0 ? names : names.toReversed()).entries()) {
      // No two ask for the same range.
      const shiftMs = (3 * round + nth) * SHIFT_MS;
      const { ms: spent } = await timed(() => runs[each](shiftMs));
      if (round >= WARM_UP) took[each].push(spent);
    }
  }
  const [ours, plain, one] = [spreadOf(took.cluster), spreadOf(took.plain), spreadOf(took.embedded)];
  const ratio = ours.p50 / plain.p50;
  return {
    name,
    result: `p50 ${ms(ours.p50)}; p95 ${ms(ours.p95)}; embedded p50 ${ms(one.p50)}`,
    baseline: `p50 ${ms(plain.p50)} as one plain search`,
    ratio,
    target: `at most ${ratioMax}`,
    met: ratio <= ratioMax,
    values: { cluster: ours.p50, clusterP95: ours.p95, plain: plain.p50, embedded: one.p50 },
  };
}
