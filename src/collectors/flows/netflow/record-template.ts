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
  SLOT_COUNT,
  REVERSE_BYTES,
  REVERSE_PACKETS,
  type FieldMapping,
} from "./netflow-fields.ts";

// A template lists the fields of a record in order. It is compiled once into the offset of each slot that is read; records are
// then read by these offsets alone.

const TEMPLATE_FIELDS_MAX = 512;
/** The maximum size of a datagram. */
const RECORD_BYTES_MAX = 65_535;
/** The field has a variable length, which each record gives. */
const LENGTH_VARIABLE = 65_535;
const LENGTH_LONG = 255;
const NAT_SLOTS = [NAT_SRC_IPV4, NAT_DST_IPV4, NAT_SRC_IPV6, NAT_DST_IPV6, NAT_SRC_PORT, NAT_DST_PORT] as const;
const NO_OFFSETS: readonly number[] = Array.from({ length: SLOT_COUNT }, () => -1);

export interface TemplateField {
  readonly id: number;
  readonly enterprise: number;
  readonly length: number;
}

export interface TotalCounters {
  readonly bytes: boolean;
  readonly packets: boolean;
}

export interface RecordTemplate {
  readonly id: number;
  readonly options: boolean;
  /** The template as received, to recognise it when it is sent again. */
  readonly spec: Uint8Array;
  /** The length of a record; with variable-length fields, the minimum. */
  readonly recordBytes: number;
  /** By slot: the offset in the record; negative if the record has no such field. */
  readonly offsets: number[];
  readonly lengths: number[];
  /** By slot: the unit of a time field. */
  readonly times: readonly number[];
  /** The counters that are totals, as opposed to deltas. */
  readonly totals: TotalCounters;
  readonly hasReverse: boolean;
  readonly reverseTotals: TotalCounters;
  /** True if a field is an address or a port after NAT. */
  readonly hasNat: boolean;
  /** Set if a field has a variable length. By field: its length, and the slot that it fills, or -1. */
  readonly varying: {
    readonly lengths: Uint16Array;
    readonly slots: readonly number[];
    readonly known: readonly (FieldMapping | undefined)[];
  } | null;
}

/** Returns the compiled template, or the reason why the template is invalid. */
export function compileTemplate(
  id: number,
  options: boolean,
  fields: readonly TemplateField[],
  scopes: number,
  spec: Uint8Array,
): RecordTemplate | string {
  if (fields.length > TEMPLATE_FIELDS_MAX) {
    return `has ${fields.length} fields, more than the limit of ${TEMPLATE_FIELDS_MAX}`;
  }
  const varies = fields.some(({ length }) => length === LENGTH_VARIABLE);
  const recordBytes = fields.reduce((sum, { length }) => sum + (length === LENGTH_VARIABLE ? 1 : length), 0);
  if (recordBytes === 0) return "describes records without length";
  if (recordBytes > RECORD_BYTES_MAX) return `describes records of ${recordBytes} bytes, more than a packet can hold`;

  const winners = Array.from<{ index: number; known: FieldMapping } | undefined>({ length: SLOT_COUNT });
  fields.forEach(({ enterprise, id: fieldId, length }, index) => {
    // The scope types of v9 are not field numbers.
    const known = index < scopes ? undefined : findField(enterprise, fieldId);
    if (!known || length === 0) return;
    if (length !== LENGTH_VARIABLE && (length < known.lengthMin || length > known.lengthMax)) return;
    const before = winners[known.slot];
    if (!before || known.rank > before.known.rank) winners[known.slot] = { index, known };
  });
  // Responder counters belong to initiator counters; next to plain counters they would count the same traffic twice.
  const isInitiator = (slot: number) => winners[slot]?.known.rank === 7;
  if (winners[REVERSE_BYTES]?.known.rank === 7 && !isInitiator(BYTES)) winners[REVERSE_BYTES] = undefined;
  if (winners[REVERSE_PACKETS]?.known.rank === 7 && !isInitiator(PACKETS)) winners[REVERSE_PACKETS] = undefined;

  const isTotal = (slot: number) => winners[slot]?.known.total === true;

  // Plain arrays: small typed arrays cost the garbage collector more than they save.
  const offsets = NO_OFFSETS.slice();
  const lengths = NO_OFFSETS.slice();
  const times = NO_OFFSETS.slice();
  const slots = fields.map(() => -1);
  for (const [slot, winner] of winners.entries()) {
    if (!winner) continue;
    slots[winner.index] = slot;
    times[slot] = winner.known.time;
  }
  if (!varies) {
    let offset = 0;
    fields.forEach(({ length }, index) => {
      const slot = slots[index]!;
      if (slot >= 0) [offsets[slot], lengths[slot]] = [offset, length];
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
    hasNat: NAT_SLOTS.some((slot) => winners[slot] !== undefined),
    varying: varies
      ? {
          lengths: Uint16Array.from(fields, ({ length }) => length),
          slots,
          known: fields.map((_, index) => (slots[index]! < 0 ? undefined : winners[slots[index]!]!.known)),
        }
      : null,
  };
}

/** Sets the offsets and lengths for one record of variable length. Returns the record's length, or -1 if it does not fit. */
export function measureRecord(template: RecordTemplate, view: DataView, at: number, end: number): number {
  const { lengths, slots, known } = template.varying!;
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
    const slot = slots[index]!;
    if (slot >= 0) {
      const { lengthMin, lengthMax } = known[index]!;
      const fits = length >= lengthMin && length <= lengthMax;
      template.offsets[slot] = fits ? position - at : -1;
      template.lengths[slot] = length;
    }
    position += length;
  }
  return position - at;
}
