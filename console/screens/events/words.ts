import { ENTITY_FIELD, isAnyValue, readEntityValue, unescaped, type Condition } from "../../data/event-conditions.ts";
import { ENTITY_WORD } from "../../components/entities/entity.ts";
import { DOMAIN_WORD, domainOf } from "../../text/domains.ts";
import { fieldName } from "./filter-text.ts";

// Conditions in words, for chips and sentences.

const OPERATOR_WORDS: Record<Condition["operator"], string> = {
  "=": "",
  "!=": "not",
  "~": "contains",
  "!~": "without",
  ">": ">",
  ">=": "≥",
  "<": "<",
  "<=": "≤",
};

/** `platform_network` is "Network"; a value of any other field is itself. */
export function valueWords(field: string, value: string): string {
  if (field !== "source") return value;
  const domain = domainOf(value);
  // An unknown source is not the site's own.
  return domain === "custom" && value !== "custom" ? value : DOMAIN_WORD[domain];
}

export interface ConditionWords {
  readonly field: string;
  readonly value: string;
  readonly isOut: boolean;
}

export function conditionWords({ field, operator, value }: Condition): ConditionWords {
  const isOut = operator.startsWith("!");
  const words = OPERATOR_WORDS[operator];
  const entity = field === ENTITY_FIELD ? readEntityValue(value) : undefined;
  if (entity !== undefined) {
    return { field: `${isOut ? "not " : ""}about ${ENTITY_WORD[entity.kind]}`, value: entity.value, isOut };
  }
  if (isAnyValue(value) && (operator === "=" || operator === "!=")) {
    return { field: fieldName(field), value: isOut ? "missing" : "any value", isOut: false };
  }
  const shown = operator === "=" || operator === "!=" ? valueWords(field, unescaped(value)) : value;
  return { field: `${fieldName(field)}${words === "" ? "" : ` ${words}`}`, value: shown, isOut };
}

export const conditionText = (condition: Condition) => {
  const { field, value } = conditionWords(condition);
  return `${field} ${value}`;
};
