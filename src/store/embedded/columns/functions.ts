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
import { compileCondition, type FieldTest } from "../../../model/condition.ts";
import type { Event, JsonValue } from "../../../model/event.ts";
import { fieldReader, OBJECT } from "../../../model/field.ts";
import { parseHours, withinHours } from "../../../model/hours.ts";
import { decodeValue, encodeValue } from "./large-integer.ts";
import { REST_CHARACTERS_MAX } from "./rows.ts";

// What the engine has no words for it asks of us: the functions here are the meaning of a condition itself, called for
// each row. Their last argument says what is asked, and is the same for all rows of a question.

/** A test without the field: what it says of one value. */
export type TestOfValue = Pick<FieldTest, "operator" | "value" | "ignoreCase">;

const QUESTIONS_REMEMBERED_MAX = 1000;
const ANSWERS_REMEMBERED_MAX = 20_000;
const REMEMBERED_CHARACTERS_MAX = 100;

/** Null arguments have been answered. */
type Answer<Args extends unknown[], Result> = (...args: Args) => Result;

/** The event of a row, out of the journal. */
export type ReadEvent = (timestampMs: number, seq: number) => Event | undefined;

export function registerFunctions(connection: DuckDBConnection, readEvent: ReadEvent): void {
  /** A test on an event that is too large for the columns. */
  registerTest<[bigint, bigint]>(connection, "event_holds", [BIGINT, BIGINT], (question) => {
    const holds = compileCondition(parseExact(question) as FieldTest);
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
    const answers = new Map<string, boolean>();
    return (text) => {
      if (text.length > REMEMBERED_CHARACTERS_MAX) return holds(text);
      let answer = answers.get(text);
      if (answer === undefined) {
        answer = holds(text);
        if (answers.size >= ANSWERS_REMEMBERED_MAX) answers.clear();
        answers.set(text, answer);
      }
      return answer;
    };
  });
  /** A test on every value that stands in `rest`. */
  registerTest<[string]>(connection, "rest_holds", [VARCHAR], (question) => {
    const holds = testOfValue(parseExact(question) as TestOfValue);
    return (rest) => restValues(rest).some(holds);
  });
  /** The same on those values in `rest` that belong to `raw`. */
  registerTest<[string]>(connection, "raw_rest_holds", [VARCHAR], (question) => {
    const holds = testOfValue(JSON.parse(question) as TestOfValue);
    return (rest) => restValues(rest, "raw.").some(holds);
  });
  /** How the values of two fields stand to each other; both as JSON. */
  registerTest<[string, string]>(connection, "fields_relate", [VARCHAR, VARCHAR], (question) => {
    const { operator, ignoreCase } = parseExact(question) as TestOfValue;
    const holds = compileCondition({ kind: "test", field: "raw.a", operator, value: "raw.b", ignoreCase });
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

/** The condition language itself says whether the test holds for a value: here that of a field that every event has once. */
function testOfValue(test: TestOfValue): (value: JsonValue) => boolean {
  const holds = compileCondition({ kind: "test", field: "type", ...test });
  return (value) => holds({ type: value } as unknown as Event);
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
  const questions = new LRUCache<string, Answer<Args, Result>>({ max: QUESTIONS_REMEMBERED_MAX });
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
        for (let row = 0; row < input.rowCount; row++) {
          const args = columns.map((column) => column.getItem(row));
          output.setItem(row, args.includes(null) ? ofNull : answer(...(args as Args)));
        }
        output.flush();
      },
    }),
  );
}
