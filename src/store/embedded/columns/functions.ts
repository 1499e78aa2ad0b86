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
import { Automaton, CacheRoom } from "../../../model/automaton.ts";
import {
  compileCondition,
  compilePattern,
  OPERATORS,
  patternSubject,
  type FieldTest,
  type Operator,
} from "../../../model/condition.ts";
import type { Event, JsonValue } from "../../../model/event.ts";
import { fieldReader, OBJECT } from "../../../model/field.ts";
import { parseHours, withinHours } from "../../../model/hours.ts";
import type { Purse } from "../../../model/nfa.ts";
import { foldCase } from "../../../lib/text.ts";
import { decodeValue, encodeValue } from "./large-integer.ts";
import { containsAny } from "./literal-search.ts";
import { REST_CHARACTERS_MAX } from "./rows.ts";
import { listOf } from "./value.ts";

// What the engine has no words for it asks of us: the functions here are the meaning of a condition itself, called for
// each row. Their last argument says what is asked, and is the same for all rows of a question. They run on the thread
// that serves every question, so that each call is given up when it takes too long.

/** How long a call for the rows of one vector may take. */
const CALL_MS_MAX = 2000;
/** What the patterns of a call may take, in steps of about a nanosecond. */
const CALL_STEPS_MAX = 2e9;
/** In the message of the engine's error where a call was given up. */
export const FUNCTION_TOO_SLOW = "a function of the columns takes too long";

/** A test without the field: what it says of one value. */
export type TestOfValue = Pick<FieldTest, "operator" | "value" | "ignoreCase">;

const QUESTIONS_REMEMBERED_MAX = 1000;
/** Of all questions together. What one is compiled to takes up to 256 bytes for each of its characters. */
const QUESTION_CHARACTERS_REMEMBERED_MAX = 500_000;
/** Of all questions together. */
const ANSWERS_REMEMBERED_MAX = 200_000;
const REMEMBERED_CHARACTERS_MAX = 100;

/** Null arguments have been answered. */
type Answer<Args extends unknown[], Result> = (...args: Args) => Result;

/** The event of a row, out of the journal. */
export type ReadEvent = (timestampMs: number, seq: number) => Event | undefined;

export function registerFunctions(connection: DuckDBConnection, readEvent: ReadEvent): void {
  /** A test on an event that is too large for the columns. */
  registerTest<[bigint, bigint]>(connection, "event_holds", [BIGINT, BIGINT], (question) => {
    const holds = testOfEvent(parseExact(question) as FieldTest);
    return (ts, seq) => {
      const event = readEvent(Number(ts), Number(seq));
      return event !== undefined && holds(event);
    };
  });
  /** The values of a field, as a list in JSON, of an event that is too large for the columns. */
  register<[bigint, bigint], string | null>(
    connection,
    { name: "event_values", types: [BIGINT, BIGINT], returns: VARCHAR, ofNull: null },
    (field) => {
      const read = fieldReader(field);
      return (ts, seq) => {
        const event = readEvent(Number(ts), Number(seq));
        const values = event ? read(event).map((value) => (value === OBJECT ? null : encodeValue(value))) : [];
        const json = JSON.stringify(values);
        // What would be too long in `rest` is too long here as well.
        return values.length === 0 || json.length > REST_CHARACTERS_MAX ? null : json;
      };
    },
  );
  /** A test on one text. */
  registerTest<[string]>(connection, "text_holds", [VARCHAR], (question) => {
    const holds = testOfValue(parseExact(question) as TestOfValue);
    return remembering(holds);
  });
  /** A test on every value that stands in `rest`. */
  registerTest<[string]>(connection, "rest_holds", [VARCHAR], (question) => {
    const holds = testOfValue(parseExact(question) as TestOfValue);
    return (rest) => restValues(rest).some(holds);
  });
  /** The same on those values in `rest` that belong to `raw`. */
  registerTest<[string]>(connection, "raw_rest_holds", [VARCHAR], (question) => {
    const holds = testOfValue(parseExact(question) as TestOfValue);
    return (rest) => restValues(rest, "raw.").some(holds);
  });
  /** How the values of two fields stand to each other; both as JSON. */
  registerTest<[string, string]>(connection, "fields_relate", [VARCHAR, VARCHAR], (question) => {
    const { operator, ignoreCase } = parseExact(question) as TestOfValue;
    const holds = testOfEvent({ kind: "test", field: "raw.a", operator, value: "raw.b", ignoreCase });
    const valueOf = (json: string) => decodeValue(JSON.parse(json) as JsonValue);
    return (a, b) => holds({ raw: { a: valueOf(a), b: valueOf(b) } } as unknown as Event);
  });
  /** Whether a time lies in these hours. */
  registerTest<[bigint]>(connection, "in_hours", [BIGINT], (question) => {
    const hours = parseHours(question);
    if ("fault" in hours) throw new Error(hours.fault);
    return (ms) => withinHours(hours, Number(ms));
  });
}

const remembered = new Set<Map<string, boolean>>();
let answersRemembered = 0;

function remembering(holds: (text: string) => boolean): (text: string) => boolean {
  const answers = new Map<string, boolean>();
  return (text) => {
    if (text.length > REMEMBERED_CHARACTERS_MAX) return holds(text);
    let answer = answers.get(text);
    if (answer === undefined) {
      answer = holds(text);
      if (++answersRemembered > ANSWERS_REMEMBERED_MAX) {
        for (const each of remembered) each.clear();
        remembered.clear();
        answersRemembered = 1;
      }
      answers.set(text, answer);
      remembered.add(answers);
    }
    return answer;
  };
}

/** States of the automatons that the call under way uses. */
const cached = new CacheRoom();
/** What the call that is under way may still take. */
const purse: Purse = { steps: CALL_STEPS_MAX };
let until = Number.POSITIVE_INFINITY;

function giveUpIfLate(): void {
  if (performance.now() > until) throw new Error(FUNCTION_TOO_SLOW);
}

/**
 * What a test says of an event. The condition language itself knows; where its way may take long on one event, the same in
 * steps between which it can be given up.
 */
function testOfEvent(test: FieldTest): (event: Event) => boolean {
  const { relation } = OPERATORS[test.operator] as Operator;
  if (relation) {
    const fold = test.ignoreCase ? foldCase : (text: string) => text;
    const [read, readOther] = [fieldReader(test.field), fieldReader(test.value as string)];
    return (event) => {
      const others = readOther(event);
      return read(event).some((value) => {
        giveUpIfLate();
        return others.some((other) => relation(value, other, fold));
      });
    };
  }
  if (!["regex", "glob", "contains"].includes(test.operator)) return compileCondition(test);
  const read = fieldReader(test.field);
  const holds = testOfValue(test);
  return (event) => read(event).some((value) => typeof value === "string" && holds(value));
}

/** What a test says of one value: here that of a field that every event has once. */
function testOfValue(test: TestOfValue): (value: JsonValue) => boolean {
  if (test.operator === "regex") return regexOfValue(test);
  if (test.operator === "contains") return containsOfValue(test);
  const compile = (value: TestOfValue["value"]) => {
    const holds = compileCondition({ ...test, kind: "test", field: "type", value });
    return (tested: JsonValue) => holds({ type: tested } as unknown as Event);
  };
  if (test.operator !== "glob") return compile(test.value);
  const globs = listOf(test).map(compile);
  return (value) =>
    globs.some((holds) => {
      giveUpIfLate();
      return holds(value);
    });
}

/** In one pass over the text, however many values there are. */
function containsOfValue(test: TestOfValue): (value: JsonValue) => boolean {
  const fold = test.ignoreCase ? foldCase : (text: string) => text;
  const contains = containsAny(
    listOf(test).map((value) => fold(String(value))),
    giveUpIfLate,
  );
  return (value) => typeof value === "string" && contains(fold(value));
}

/** By an engine that can be stopped in the middle of a text. */
function regexOfValue(test: TestOfValue): (value: JsonValue) => boolean {
  const automata = listOf(test).map(
    (pattern) => new Automaton([compilePattern(String(pattern), test.ignoreCase)], cached),
  );
  const found = new Uint8Array(1);
  return (value) =>
    typeof value === "string" &&
    automata.some((automaton) => {
      found[0] = 0;
      const isDecided = automaton.search(patternSubject(value), purse, found);
      if (!isDecided && found[0] === 0) throw new Error(FUNCTION_TOO_SLOW);
      return found[0] === 1;
    });
}

/** The type and the colon that a key of `rest` begins with. */
const TYPE_CHARACTERS = "s:".length;

function restValues(rest: string, pathStart = ""): JsonValue[] {
  const values: JsonValue[] = [];
  for (const [key, value] of Object.entries(JSON.parse(rest) as Record<string, JsonValue>)) {
    if (!key.startsWith(pathStart, TYPE_CHARACTERS)) continue;
    // There may be more of them than a call can have arguments.
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
  compile: (question: string) => Answer<Args, boolean>,
): void {
  register(connection, { name, types, returns: BOOLEAN, ofNull: false }, compile);
}

interface Signature<Result> {
  readonly name: string;
  readonly types: readonly DuckDBType[];
  readonly returns: DuckDBType;
  /** What is said of a row that has no value for an argument. */
  readonly ofNull: Result;
}

function register<Args extends DuckDBValue[], Result extends boolean | string | null>(
  connection: DuckDBConnection,
  { name, types, returns, ofNull }: Signature<Result>,
  compile: (question: string) => Answer<Args, Result>,
): void {
  const questions = new LRUCache<string, Answer<Args, Result>>({
    max: QUESTIONS_REMEMBERED_MAX,
    maxSize: QUESTION_CHARACTERS_REMEMBERED_MAX,
    sizeCalculation: (_, question) => Math.max(1, question.length),
  });
  connection.registerScalarFunction(
    DuckDBScalarFunction.create({
      name,
      parameterTypes: [...types, VARCHAR],
      returnType: returns,
      mainFunction: (_info, input, output) => {
        if (input.rowCount === 0) return;
        const question = input.getColumnVector(types.length).getItem(0) as string;
        let answer = questions.get(question);
        if (!answer) {
          answer = compile(question);
          questions.set(question, answer);
        }
        const columns = types.map((_, i) => input.getColumnVector(i));
        until = performance.now() + CALL_MS_MAX;
        purse.steps = CALL_STEPS_MAX;
        // Patterns of questions long past would otherwise stay in memory with their states.
        cached.clear();
        for (let row = 0; row < input.rowCount; row++) {
          giveUpIfLate();
          const args = columns.map((column) => column.getItem(row));
          output.setItem(row, args.includes(null) ? ofNull : answer(...(args as Args)));
        }
        output.flush();
      },
    }),
  );
}
