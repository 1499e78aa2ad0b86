import { MEASURES, type Measure, type Traffic } from "../../model/flow-query.ts";
import { fromLimbs, LIMB_MIN } from "./flow-documents.ts";
import type { Clause } from "./flow-filter.ts";

// Exact sums of counters. OpenSearch adds up doubles, so that a sum is exact if it is below 2^53; the others are asked for again,
// by limbs.

/** A bucket of an aggregation. */
export interface SumBucket {
  readonly key?: string | number | bigint | undefined;
  readonly doc_count: number;
  readonly [aggregation: string]: unknown;
}

type Sums = Pick<Traffic, "bytes" | "packets" | "flowCount">;

const sum = (field: string): Clause => ({ sum: { field } });

const PLAIN: Clause = Object.fromEntries(MEASURES.map((measure) => [measure, sum(measure)]));

const BY_LIMBS: Clause = Object.fromEntries(
  MEASURES.flatMap((measure) => [
    [`${measure}_small`, { filter: { range: { [measure]: { lt: LIMB_MIN } } }, aggs: { sum: sum(measure) } }],
    ...["low", "middle", "high"].map((limb) => [`${measure}_${limb}`, sum(`${measure}_${limb}`)]),
  ]),
);

const EXACT_MAX = 2 ** 53;

export const valueOf = (bucket: SumBucket, name: string): number =>
  Number((bucket[name] as { value: number | bigint | null }).value ?? 0);

/** The aggregations of a question, and how its answer is read. */
export class SumReader {
  readonly aggs: Clause;
  readonly #isByLimbs: boolean;
  /** True once a sum was read that may have been rounded. */
  isRounded = false;

  constructor(isByLimbs: boolean) {
    this.#isByLimbs = isByLimbs;
    this.aggs = isByLimbs ? BY_LIMBS : PLAIN;
  }

  read(bucket: SumBucket): Sums {
    return { bytes: this.#one(bucket, "bytes"), packets: this.#one(bucket, "packets"), flowCount: bucket.doc_count };
  }

  #one(bucket: SumBucket, measure: Measure): bigint {
    if (!this.#isByLimbs) {
      const value = valueOf(bucket, measure);
      if (value < EXACT_MAX) return BigInt(value);
      this.isRounded = true;
      return 0n;
    }
    const limb = (name: string) => BigInt(valueOf(bucket, `${measure}_${name}`));
    const small = BigInt(valueOf(bucket[`${measure}_small`] as SumBucket, "sum"));
    return small + fromLimbs(limb("low"), limb("middle"), limb("high"));
  }
}

/** Asks for sums, and again by limbs if one of them is too large for a double. */
export async function askForSums<Answer>(ask: (sums: SumReader) => Promise<Answer>): Promise<Answer> {
  const plain = new SumReader(false);
  const answer = await ask(plain);
  return plain.isRounded ? ask(new SumReader(true)) : answer;
}
