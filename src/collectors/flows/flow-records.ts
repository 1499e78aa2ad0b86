// Decoded flow records on their way to the windows, in columns: a million records a second rule out an object for each. Words of
// addresses and halves of counters are in memory order, so that whole columns can be copied as bytes.

export const BATCH_RECORDS = 4096;
const ADDRESS_WORDS = 4;

/** A NAT translation: source address, destination address, ports. An untranslated side is all zeros. */
export const NAT_WORDS = 9;
export const NAT_SRC_WORD = 0;
export const NAT_DST_WORD = 4;
/** Source port in the upper half, destination port in the lower; 0 if the exporter does not report it. */
export const NAT_PORTS_WORD = 8;

/** Bytes 8 to 11 of an IPv4-mapped address (00 00 ff ff), read as a native word. */
export const MAPPED_WORD = new Uint32Array(new Uint8Array([0, 0, 0xff, 0xff]).buffer)[0]!;

export class RecordBatch {
  count = 0;
  readonly exporter = new Uint16Array(BATCH_RECORDS);
  readonly src = new Uint32Array(BATCH_RECORDS * ADDRESS_WORDS);
  readonly dst = new Uint32Array(BATCH_RECORDS * ADDRESS_WORDS);
  /** Source port in the upper half, destination port in the lower. */
  readonly ports = new Uint32Array(BATCH_RECORDS);
  readonly protocol = new Uint8Array(BATCH_RECORDS);
  readonly version = new Uint8Array(BATCH_RECORDS);
  readonly tcpFlags = new Uint16Array(BATCH_RECORDS);
  /** Two words per record, the lower first. */
  readonly bytes = new Uint32Array(BATCH_RECORDS * 2);
  readonly packets = new Uint32Array(BATCH_RECORDS * 2);
  readonly firstSeen = new Float64Array(BATCH_RECORDS);
  readonly lastSeen = new Float64Array(BATCH_RECORDS);
  /** 1 for a record with a translation; otherwise its words in `nat` are undefined. */
  readonly isTranslated = new Uint8Array(BATCH_RECORDS);
  readonly nat = new Uint32Array(BATCH_RECORDS * NAT_WORDS);
  readonly #take: (batch: RecordBatch) => void;

  /** `take` receives the batch when it is full and with each flush; it must copy what it needs. */
  constructor(take: (batch: RecordBatch) => void) {
    this.#take = take;
  }

  /** Returns the row for the next record. */
  next(): number {
    if (this.count === BATCH_RECORDS) this.flush();
    this.isTranslated[this.count] = 0;
    return this.count++;
  }

  flush(): void {
    if (this.count > 0) this.#take(this);
    this.count = 0;
  }
}

const WORD = 2 ** 32;
const COUNTER_MAX = 2n ** 64n - 1n;

/** Multiplies a counter by its sampling rate: exact for integer rates, rounded otherwise. */
export function scaleCounter(counters: Uint32Array, record: number, rate: number): void {
  const low = counters[record * 2]!;
  const high = counters[record * 2 + 1]!;
  const product = (high * WORD + low) * rate;
  if (product <= Number.MAX_SAFE_INTEGER) setCounter(counters, record, Math.round(product));
  else {
    const exact = ((BigInt(high) << 32n) | BigInt(low)) * BigInt(Math.round(rate));
    setExactCounter(counters, record, exact > COUNTER_MAX ? COUNTER_MAX : exact);
  }
}

export function setCounter(counters: Uint32Array, record: number, value: number): void {
  counters[record * 2] = value >>> 0;
  counters[record * 2 + 1] = Math.floor(value / WORD);
}

export function setExactCounter(counters: Uint32Array, record: number, value: bigint): void {
  counters[record * 2] = Number(value & 0xffffffffn);
  counters[record * 2 + 1] = Number(value >> 32n);
}

export function exactCounter(counters: Uint32Array, record: number): bigint {
  return (BigInt(counters[record * 2 + 1]!) << 32n) | BigInt(counters[record * 2]!);
}
