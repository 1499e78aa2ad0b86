import {
  BIGINT,
  BOOLEAN,
  DuckDBScalarFunction,
  VARCHAR,
  type DuckDBConnection,
  type DuckDBType,
  type DuckDBValue,
} from "@duckdb/node-api";
import { LRUCache } from "lru-cache";
import { parseExact } from "../../../lib/exact-json.ts";
import { Automaton, CacheMemoryLimit } from "../../../model/automaton.ts";
import {
  compileCondition,
  compilePattern,
  isNegation,
  OPERATORS,
  patternSubject,
  type FieldTest,
  type Operator,
} from "../../../model/condition.ts";
import type { Event, JsonValue } from "../../../model/event.ts";
import { fieldReader, OBJECT, type FieldValue } from "../../../model/field.ts";
import { parseHours, withinHours } from "../../../model/hours.ts";
import type { StepBudget } from "../../../model/nfa.ts";
import { foldCase } from "../../../lib/text.ts";
import { decodeValue, encodeValue } from "./large-integer.ts";
import { containsAny } from "./literal-search.ts";
import { EXTRA_CHARACTERS_MAX } from "./packed-rows.ts";
import { listOf, type FieldlessTest } from "./value-tests.ts";

// Scalar functions for tests that DuckDB's SQL cannot express: compiled conditions, called for each row. The last argument is
// the encoded test, the same for all rows of a query. The functions run on the thread that serves all queries, so that a
// call that takes too long is aborted.

/** The time limit of a call, which covers the rows of one vector. */
const CALL_MS_MAX = 2000;
/** The step limit of the patterns in a call; a step takes about a nanosecond. */
const CALL_STEPS_MAX = 2e9;
/** Characters of value pairs that are compared between two checks of the clock; each pair counts for some. */
const CHARACTERS_UNCHECKED_MAX = 1e6;
const PAIR_CHARACTERS = 32;
/** Part of DuckDB's error message when a call was aborted. */
export const FUNCTION_TOO_SLOW = "a scalar function of the columns takes too long";

const COMPILED_TESTS_MAX = 1000;
/** Total of all compiled tests. A compiled test takes up to 256 bytes for each of its characters. */
const COMPILED_TEST_CHARACTERS_MAX = 500_000;
/** Total of all tests. */
const CACHED_RESULTS_MAX = 200_000;
const CACHED_TEXT_CHARACTERS_MAX = 100;

/** Called for rows without null arguments. */
type ScalarFunctionBody<Args extends unknown[], Result> = (...args: Args) => Result;

/** Reads the event of a row from the journal. */
export type EventReader = (timestampMs: number, seq: number) => Event | undefined;

export function registerScalarFunctions(connection: DuckDBConnection, readEvent: EventReader): void {
  /** A test on an oversized event. */
  registerTest<[bigint, bigint]>(connection, "event_matches", [BIGINT, BIGINT], (encodedTest) => {
    const matches = eventPredicate(parseExact(encodedTest) as FieldTest);
    return (ts, seq) => {
      const event = readEvent(Number(ts), Number(seq));
      return event !== undefined && matches(event);
    };
  });
  /** The values of a field of an oversized event, as a JSON list. */
  register<[bigint, bigint], string | null>(
    connection,
    { name: "event_values", types: [BIGINT, BIGINT], returns: VARCHAR, nullResult: null },
    (field) => {
      const read = fieldReader(field);
      return (ts, seq) => {
        const event = readEvent(Number(ts), Number(seq));
        const values = event ? read(event).map((value) => (value === OBJECT ? null : encodeValue(value))) : [];
        const json = JSON.stringify(values);
        // A list that is too long for `rest` is too long here as well.
        return values.length === 0 || json.length > EXTRA_CHARACTERS_MAX ? null : json;
      };
    },
  );
  /** A test on one text. */
  registerTest<[string]>(connection, "text_matches", [VARCHAR], (encodedTest) => {
    const matches = valuePredicate(parseExact(encodedTest) as FieldlessTest);
    return cachingResults(matches);
  });
  /** A test on all values in `rest`. */
  registerTest<[string]>(connection, "extra_matches", [VARCHAR], (encodedTest) => {
    const matches = valuePredicate(parseExact(encodedTest) as FieldlessTest);
    return (extra) => extraValues(extra).some(matches);
  });
  /** A test on the values of `raw` in `rest`. */
  registerTest<[string]>(connection, "raw_extra_matches", [VARCHAR], (encodedTest) => {
    const matches = valuePredicate(parseExact(encodedTest) as FieldlessTest);
    return (extra) => extraValues(extra, "raw.").some(matches);
  });
  /** The comparison of two fields, both as JSON. */
  registerTest<[string, string]>(connection, "fields_match", [VARCHAR, VARCHAR], (encodedTest) => {
    const { operator, ignoreCase } = parseExact(encodedTest) as FieldlessTest;
    const matches = eventPredicate({ kind: "test", field: "raw.a", operator, value: "raw.b", ignoreCase });
    const valueOf = (json: string) => decodeValue(JSON.parse(json) as JsonValue);
    return (a, b) => matches({ raw: { a: valueOf(a), b: valueOf(b) } } as unknown as Event);
  });
  /** True when a time is within the hours. */
  registerTest<[bigint]>(connection, "in_hours", [BIGINT], (text) => {
    const hours = parseHours(text);
    if ("fault" in hours) throw new Error(hours.fault);
    return (ms) => withinHours(hours, Number(ms));
  });
}

const resultCaches = new Set<Map<string, boolean>>();
let resultsCached = 0;

function cachingResults(matches: (text: string) => boolean): (text: string) => boolean {
  const results = new Map<string, boolean>();
  return (text) => {
    if (text.length > CACHED_TEXT_CHARACTERS_MAX) return matches(text);
    let result = results.get(text);
    if (result === undefined) {
      result = matches(text);
      if (++resultsCached > CACHED_RESULTS_MAX) {
        for (const each of resultCaches) each.clear();
        resultCaches.clear();
        resultsCached = 1;
      }
      results.set(text, result);
      resultCaches.add(results);
    }
    return result;
  };
}

/** States of the automatons of the current call. */
const automatonStates = new CacheMemoryLimit();
/** The remaining steps of the current call. */
const stepBudget: StepBudget = { steps: CALL_STEPS_MAX };
let deadlineMs = Number.POSITIVE_INFINITY;

function throwIfLate(): void {
  if (performance.now() > deadlineMs) throw new Error(FUNCTION_TOO_SLOW);
}

/**
 * Compiles a test on an event. Operators that may take long on one event are evaluated in steps, between which the call can
 * be aborted; compileCondition does the others.
 */
function eventPredicate(test: FieldTest): (event: Event) => boolean {
  if (isNegation(test.operator)) {
    const read = fieldReader(test.field);
    const positive = eventPredicate({ ...test, operator: OPERATORS[test.operator].negationOf });
    return (event) => read(event).length > 0 && !positive(event);
  }
  const { relation } = OPERATORS[test.operator] as Operator;
  if (relation) {
    const fold = test.ignoreCase ? foldCase : (text: string) => text;
    const [read, readOther] = [fieldReader(test.field), fieldReader(test.value as string)];
    return (event) => {
      const others = foldedValues(readOther(event), fold);
      let characters = 0;
      return foldedValues(read(event), fold).some((value) =>
        others.some((other) => {
          characters += PAIR_CHARACTERS + (typeof value === "string" ? value.length : 0);
          if (characters > CHARACTERS_UNCHECKED_MAX) {
            throwIfLate();
            characters = 0;
          }
          return relation(value, other, identity);
        }),
      );
    };
  }
  if (!["regex", "glob", "contains"].includes(test.operator)) return compileCondition(test);
  const read = fieldReader(test.field);
  const matches = valuePredicate(test);
  return (event) => read(event).some((value) => typeof value === "string" && matches(value));
}

const identity = (text: string): string => text;

/** Folds each value once, not once per pair. */
function foldedValues(values: readonly FieldValue[], fold: (text: string) => string): readonly FieldValue[] {
  return values.map((value) => (typeof value === "string" ? fold(value) : value));
}

/** Compiles a test on one value, as a condition on a field that every event has once. */
function valuePredicate(test: FieldlessTest): (value: JsonValue) => boolean {
  if (test.operator === "regex") return regexPredicate(test);
  if (test.operator === "contains") return containsPredicate(test);
  const compile = (value: FieldlessTest["value"]) => {
    const matches = compileCondition({ ...test, kind: "test", field: "type", value });
    return (tested: JsonValue) => matches({ type: tested } as unknown as Event);
  };
  if (test.operator !== "glob") return compile(test.value);
  const globs = listOf(test).map(compile);
  return (value) =>
    globs.some((matches) => {
      throwIfLate();
      return matches(value);
    });
}

/** Searches for all values in one pass over the text. */
function containsPredicate(test: FieldlessTest): (value: JsonValue) => boolean {
  const fold = test.ignoreCase ? foldCase : (text: string) => text;
  const contains = containsAny(
    listOf(test).map((value) => fold(String(value))),
    throwIfLate,
  );
  return (value) => typeof value === "string" && contains(fold(value));
}

/** Uses automatons, which can be stopped within a text. */
function regexPredicate(test: FieldlessTest): (value: JsonValue) => boolean {
  const automata = listOf(test).map(
    (pattern) => new Automaton([compilePattern(String(pattern), test.ignoreCase)], automatonStates),
  );
  const found = new Uint8Array(1);
  return (value) =>
    typeof value === "string" &&
    automata.some((automaton) => {
      found[0] = 0;
      const isDecided = automaton.search(patternSubject(value), stepBudget, found);
      if (!isDecided && found[0] === 0) throw new Error(FUNCTION_TOO_SLOW);
      return found[0] === 1;
    });
}

/** The type and the colon at the start of a key in `rest`. */
const TYPE_CHARACTERS = "s:".length;

function extraValues(extra: string, pathStart = ""): JsonValue[] {
  const values: JsonValue[] = [];
  for (const [key, value] of Object.entries(JSON.parse(extra) as Record<string, JsonValue>)) {
    if (!key.startsWith(pathStart, TYPE_CHARACTERS)) continue;
    // A spread would fail: the list may be longer than the arguments of a call.
    if (key.startsWith("m:")) {
      for (const item of value as JsonValue[]) if (item !== null) values.push(decodeValue(item));
    } else if (!key.startsWith("o:")) values.push(decodeValue(value));
  }
  return values;
}

function registerTest<Args extends DuckDBValue[]>(
  connection: DuckDBConnection,
  name: string,
  types: readonly DuckDBType[],
  compile: (encodedTest: string) => ScalarFunctionBody<Args, boolean>,
): void {
  register(connection, { name, types, returns: BOOLEAN, nullResult: false }, compile);
}

interface Signature<Result> {
  readonly name: string;
  readonly types: readonly DuckDBType[];
  readonly returns: DuckDBType;
  /** The result for a row with a null argument. */
  readonly nullResult: Result;
}

function register<Args extends DuckDBValue[], Result extends boolean | string | null>(
  connection: DuckDBConnection,
  { name, types, returns, nullResult }: Signature<Result>,
  compile: (encodedTest: string) => ScalarFunctionBody<Args, Result>,
): void {
  const compiled = new LRUCache<string, ScalarFunctionBody<Args, Result>>({
    max: COMPILED_TESTS_MAX,
    maxSize: COMPILED_TEST_CHARACTERS_MAX,
    sizeCalculation: (_, encodedTest) => Math.max(1, encodedTest.length),
  });
  connection.registerScalarFunction(
    DuckDBScalarFunction.create({
      name,
      parameterTypes: [...types, VARCHAR],
      returnType: returns,
      mainFunction: (_info, input, output) => {
        if (input.rowCount === 0) return;
        const encodedTest = input.getColumnVector(types.length).getItem(0) as string;
        let evaluate = compiled.get(encodedTest);
        if (!evaluate) {
          evaluate = compile(encodedTest);
          compiled.set(encodedTest, evaluate);
        }
        const columns = types.map((_, i) => input.getColumnVector(i));
        deadlineMs = performance.now() + CALL_MS_MAX;
        stepBudget.steps = CALL_STEPS_MAX;
        // Otherwise the states of patterns of past queries would stay in memory.
        automatonStates.clear();
        for (let row = 0; row < input.rowCount; row++) {
          throwIfLate();
          const args = columns.map((column) => column.getItem(row));
          output.setItem(row, args.includes(null) ? nullResult : evaluate(...(args as Args)));
        }
        output.flush();
      },
    }),
  );
}
