import type { ConditionInput, Part } from "../model/rule.ts";
import type { ThresholdBounds } from "./comparisons.ts";

/** The fields of a rule over several events that a plain rule does not have. */
export interface Aggregate {
  readonly source: string;
  readonly conditions: ConditionInput[];
  readonly window: string;
  readonly threshold?: AggregateThreshold;
  readonly sequence?: AggregateStep[];
  readonly sequence_order?: "in_order" | "any";
  readonly sequence_min?: number;
  readonly group_by?: string | string[];
  readonly parts?: Part[];
}

export interface AggregateThreshold extends ThresholdBounds {
  readonly inputs?: AggregateInput[];
  readonly group_by?: string | string[];
  readonly distinct?: string | string[];
  readonly sum?: string;
  readonly avg?: string;
  readonly percentile?: { readonly of: string; readonly rank: number };
}

/** Events of a rule, or occurrences of a correlation. */
export interface AggregateInput {
  readonly conditions?: ConditionInput[];
  readonly part?: string;
  readonly group_by?: string | string[];
  readonly value?: string | string[];
}

export interface AggregateStep extends Omit<AggregateInput, "value"> {
  readonly name: string;
  readonly absent?: true;
}
