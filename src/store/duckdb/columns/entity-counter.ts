import { foldCase } from "../../../lib/text.ts";
import type { DuckDBAppender } from "@duckdb/node-api";
import { ENTITY_KINDS, entitiesOf } from "../../../model/entity.ts";
import type { JsonObject } from "../../../model/event.ts";

// The entities of a number of events, counted where the events are at hand as objects: columns have no cheap way back to them.

/** Entities side by side, each once. */
export interface CountedEntities {
  /** Positions in ENTITY_KINDS. */
  readonly kinds: readonly number[];
  readonly values: readonly string[];
  readonly events: readonly number[];
  readonly firstMs: readonly number[];
  readonly lastMs: readonly number[];
}

interface MutableEntities extends CountedEntities {
  readonly kinds: number[];
  readonly values: string[];
  readonly events: number[];
  readonly firstMs: number[];
  readonly lastMs: number[];
}

const KIND_CODES = new Map(ENTITY_KINDS.map((kind, code) => [kind, code]));

export class EntityCounter {
  #counted: MutableEntities = noEntities();
  readonly #positions = ENTITY_KINDS.map(() => new Map<string, number>());

  get length(): number {
    return this.#counted.values.length;
  }

  add(raw: JsonObject, timestampMs: number): void {
    for (const { kind, value } of entitiesOf(raw)) {
      const code = KIND_CODES.get(kind)!;
      const { kinds, values, events, firstMs, lastMs } = this.#counted;
      const position = this.#positions[code]!.get(value);
      if (position === undefined) {
        this.#positions[code]!.set(value, values.length);
        kinds.push(code);
        values.push(value);
        events.push(1);
        firstMs.push(timestampMs);
        lastMs.push(timestampMs);
      } else {
        events[position]!++;
        if (timestampMs < firstMs[position]!) firstMs[position] = timestampMs;
        if (timestampMs > lastMs[position]!) lastMs[position] = timestampMs;
      }
    }
  }

  /** Takes all counts and starts over. */
  take(): CountedEntities {
    const counted = this.#counted;
    this.#counted = noEntities();
    for (const positions of this.#positions) positions.clear();
    return counted;
  }
}

function noEntities(): MutableEntities {
  return { kinds: [], values: [], events: [], firstMs: [], lastMs: [] };
}

/** Appends the entities of events of one day. */
export function appendEntities(appender: DuckDBAppender, day: number, counted: CountedEntities): void {
  const { kinds, values, events, firstMs, lastMs } = counted;
  const dayNumber = BigInt(day);
  for (const [position, value] of values.entries()) {
    appender.appendBigInt(dayNumber);
    appender.appendUTinyInt(kinds[position]!);
    const folded = foldCase(value);
    if (folded === value) appender.appendNull();
    else appender.appendVarchar(value);
    appender.appendVarchar(folded);
    appender.appendBigInt(BigInt(events[position]!));
    appender.appendBigInt(BigInt(firstMs[position]!));
    appender.appendBigInt(BigInt(lastMs[position]!));
    appender.endRow();
  }
}
