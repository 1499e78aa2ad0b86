import {
  BYTES,
  findField,
  NAT_DST_IPV4,
  NAT_DST_IPV6,
  NAT_DST_PORT,
  NAT_SRC_IPV4,
  NAT_SRC_IPV6,
  NAT_SRC_PORT,
  PACKETS,
  PLACES,
  REVERSE_BYTES,
  REVERSE_PACKETS,
  type Field,
} from "./fields.ts";

// A template says which fields follow each other in a record. It is turned once into a plan: where, from the beginning of
// a record, each thing stands that we read. Records are then read by the plan alone.

const TEMPLATE_FIELDS_MAX = 512;
/** No datagram holds a longer record. */
const RECORD_BYTES_MAX = 65_535;
/** Instead of a length: the record itself says how long the field is. */
const LENGTH_VARIABLE = 65_535;
const LENGTH_LONG = 255;
const NAT_PLACES = [NAT_SRC_IPV4, NAT_DST_IPV4, NAT_SRC_IPV6, NAT_DST_IPV6, NAT_SRC_PORT, NAT_DST_PORT] as const;
const ABSENT: readonly number[] = Array.from({ length: PLACES }, () => -1);

export interface TemplateField {
  readonly id: number;
  readonly enterprise: number;
  readonly length: number;
}

export interface CounterTotals {
  readonly bytes: boolean;
  readonly packets: boolean;
}

export interface Template {
  readonly id: number;
  readonly options: boolean;
  /** As it came, so that the same one sent again is known without another look. */
  readonly spec: Uint8Array;
  /** Of the whole record; where fields vary in length, the least it can be. */
  readonly recordBytes: number;
  /** By place: from the beginning of the record; below zero where the record has none. */
  readonly offsets: number[];
  readonly lengths: number[];
  /** By place: how the number is meant. */
  readonly times: readonly number[];
  /** Which of its counters count from the flow's beginning rather than since the last report. */
  readonly totals: CounterTotals;
  readonly hasReverse: boolean;
  readonly reverseTotals: CounterTotals;
  /** Some field is an address or a port after translation. */
  readonly hasNat: boolean;
  /** Where a field varies in length: lengths of all fields in their order, and which place each fills, or -1. */
  readonly varying: {
    readonly lengths: Uint16Array;
    readonly places: readonly number[];
    readonly known: readonly (Field | undefined)[];
  } | null;
}

/** Gives the plan, or in words why the template cannot be one. */
export function compileTemplate(
  id: number,
  options: boolean,
  fields: readonly TemplateField[],
  scopes: number,
  spec: Uint8Array,
): Template | string {
  if (fields.length > TEMPLATE_FIELDS_MAX) return `has ${fields.length} fields, more than ${TEMPLATE_FIELDS_MAX}`;
  const varies = fields.some(({ length }) => length === LENGTH_VARIABLE);
  const recordBytes = fields.reduce((sum, { length }) => sum + (length === LENGTH_VARIABLE ? 1 : length), 0);
  if (recordBytes === 0) return "describes records of no length";
  if (recordBytes > RECORD_BYTES_MAX) return `describes records of ${recordBytes} bytes, more than a packet holds`;

  const winners = Array.from<{ index: number; known: Field } | undefined>({ length: PLACES });
  fields.forEach(({ enterprise, id: fieldId, length }, index) => {
    // What v9 calls the type of a scope is no field number.
    const known = index < scopes ? undefined : findField(enterprise, fieldId);
    if (!known || length === 0) return;
    if (length !== LENGTH_VARIABLE && (length < known.lengthMin || length > known.lengthMax)) return;
    const before = winners[known.place];
    if (!before || known.rank > before.known.rank) winners[known.place] = { index, known };
  });
  // A responder's counters go with an initiator's; beside plain ones they would count the same traffic twice.
  const initiator = (place: number) => winners[place]?.known.rank === 7;
  if (winners[REVERSE_BYTES]?.known.rank === 7 && !initiator(BYTES)) winners[REVERSE_BYTES] = undefined;
  if (winners[REVERSE_PACKETS]?.known.rank === 7 && !initiator(PACKETS)) winners[REVERSE_PACKETS] = undefined;

  const isTotal = (place: number) => winners[place]?.known.total === true;

  // Plain arrays: small typed ones cost the garbage collector more than they save.
  const offsets = ABSENT.slice();
  const lengths = ABSENT.slice();
  const times = ABSENT.slice();
  const places = fields.map(() => -1);
  for (const [place, winner] of winners.entries()) {
    if (!winner) continue;
    places[winner.index] = place;
    times[place] = winner.known.time;
  }
  if (!varies) {
    let offset = 0;
    fields.forEach(({ length }, index) => {
      const place = places[index]!;
      if (place >= 0) [offsets[place], lengths[place]] = [offset, length];
      offset += length;
    });
  }
  return {
    id,
    options,
    spec,
    recordBytes,
    offsets,
    lengths,
    times,
    totals: { bytes: isTotal(BYTES), packets: isTotal(PACKETS) },
    reverseTotals: { bytes: isTotal(REVERSE_BYTES), packets: isTotal(REVERSE_PACKETS) },
    hasReverse: winners[REVERSE_BYTES] !== undefined || winners[REVERSE_PACKETS] !== undefined,
    hasNat: NAT_PLACES.some((place) => winners[place] !== undefined),
    varying: varies
      ? {
          lengths: Uint16Array.from(fields, ({ length }) => length),
          places,
          known: fields.map((_, index) => (places[index]! < 0 ? undefined : winners[places[index]!]!.known)),
        }
      : null,
  };
}

/** Finds the fields of one record whose lengths vary. Gives the record's length, or -1 where it does not fit. */
export function measureRecord(template: Template, view: DataView, at: number, end: number): number {
  const { lengths, places, known } = template.varying!;
  let position = at;
  for (let index = 0; index < lengths.length; index++) {
    let length = lengths[index]!;
    if (length === LENGTH_VARIABLE) {
      if (position >= end) return -1;
      length = view.getUint8(position++);
      if (length === LENGTH_LONG) {
        if (position + 2 > end) return -1;
        length = view.getUint16(position);
        position += 2;
      }
    }
    if (position + length > end) return -1;
    const place = places[index]!;
    if (place >= 0) {
      const { lengthMin, lengthMax } = known[index]!;
      const fits = length >= lengthMin && length <= lengthMax;
      template.offsets[place] = fits ? position - at : -1;
      template.lengths[place] = length;
    }
    position += length;
  }
  return position - at;
}
