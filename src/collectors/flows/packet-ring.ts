// A ring buffer in shared memory that carries datagrams from the receiving to the decoding thread. The receiver never waits: a
// datagram that does not fit is dropped and counted.

const HEAD = 0;
const TAIL = 1;
const BUSY = 2;
const CONTROL_BYTES = 64;
/** Entry length, address length, payload length, port, time of receipt. */
const ENTRY_HEADER_BYTES = 24;
const ADDRESS_BYTES_MAX = 64;
/** In place of an entry length: the rest of the ring is unused, and the next entry is at its start. */
const SKIP = 0xffffffff;

export type RingMemory = SharedArrayBuffer;

export function createRing(bytes: number): RingMemory {
  return new SharedArrayBuffer(CONTROL_BYTES + Math.ceil(bytes / 8) * 8);
}

class RingEnd {
  protected readonly control: Int32Array;
  protected readonly bytes: Uint8Array;
  protected readonly view: DataView;
  readonly size: number;

  constructor(memory: RingMemory) {
    this.control = new Int32Array(memory, 0, CONTROL_BYTES / 4);
    this.bytes = new Uint8Array(memory, CONTROL_BYTES);
    this.view = new DataView(memory, CONTROL_BYTES);
    this.size = this.bytes.length;
  }

  get used(): number {
    const used = Atomics.load(this.control, HEAD) - Atomics.load(this.control, TAIL);
    return used < 0 ? used + this.size : used;
  }
}

export class RingWriter extends RingEnd {
  /** Returns false if the ring is full. */
  push(address: string, receivedMs: number, payload: Uint8Array, port = 0): boolean {
    const needed = Math.ceil((ENTRY_HEADER_BYTES + address.length + payload.length) / 8) * 8;
    const head = Atomics.load(this.control, HEAD);
    const tail = Atomics.load(this.control, TAIL);
    const toEnd = this.size - head;
    // One step always stays free, since a full ring would look empty.
    const free = (head >= tail ? this.size - head + tail : tail - head) - 8;
    if (address.length > ADDRESS_BYTES_MAX) return false;
    let at = head;
    if (needed > toEnd) {
      if (toEnd + needed > free) return false;
      this.view.setUint32(head, SKIP);
      at = 0;
    } else if (needed > free) return false;
    this.view.setUint32(at, needed);
    this.view.setUint32(at + 4, address.length);
    this.view.setUint32(at + 8, payload.length);
    this.view.setUint32(at + 12, port);
    this.view.setFloat64(at + 16, receivedMs);
    for (let index = 0; index < address.length; index++) {
      this.bytes[at + ENTRY_HEADER_BYTES + index] = address.charCodeAt(index);
    }
    this.bytes.set(payload, at + ENTRY_HEADER_BYTES + address.length);
    const next = at + needed;
    Atomics.store(this.control, HEAD, next === this.size ? 0 : next);
    return true;
  }

  /** Returns true if the reader sleeps and the caller has to wake it: exactly once each time it goes to sleep. */
  claimWakeUp(): boolean {
    return Atomics.exchange(this.control, BUSY, 1) === 0;
  }
}

export type TakeDatagram = (
  view: DataView,
  start: number,
  end: number,
  address: string,
  receivedMs: number,
  port: number,
) => void;

export class RingReader extends RingEnd {
  readonly #text: Buffer;
  #last = "";

  constructor(memory: RingMemory) {
    super(memory);
    this.#text = Buffer.from(memory, CONTROL_BYTES);
  }

  /** Passes up to `max` datagrams to `take`, as positions in the ring that are valid only until `take` returns. */
  read(max: number, take: TakeDatagram): number {
    let count = 0;
    let tail = Atomics.load(this.control, TAIL);
    while (count < max && tail !== Atomics.load(this.control, HEAD)) {
      const length = this.view.getUint32(tail);
      if (length === SKIP) {
        tail = 0;
        Atomics.store(this.control, TAIL, tail);
        continue;
      }
      const addressLength = this.view.getUint32(tail + 4);
      const start = tail + ENTRY_HEADER_BYTES + addressLength;
      const end = start + this.view.getUint32(tail + 8);
      const address = this.#addressAt(tail + ENTRY_HEADER_BYTES, start);
      take(this.view, start, end, address, this.view.getFloat64(tail + 16), this.view.getUint32(tail + 12));
      tail += length;
      if (tail === this.size) tail = 0;
      Atomics.store(this.control, TAIL, tail);
      count++;
    }
    return count;
  }

  /** Caches the last address, since packets arrive in bursts from one sender. */
  #addressAt(start: number, end: number): string {
    const last = this.#last;
    let same = last.length === end - start;
    for (let at = start; same && at < end; at++) same = this.bytes[at] === last.charCodeAt(at - start);
    if (!same) this.#last = this.#text.toString("latin1", start, end);
    return this.#last;
  }

  /** Goes to sleep; returns false if a datagram arrived at the same moment. */
  trySleep(): boolean {
    Atomics.store(this.control, BUSY, 0);
    const isEmpty = Atomics.load(this.control, HEAD) === Atomics.load(this.control, TAIL);
    return isEmpty || Atomics.exchange(this.control, BUSY, 1) === 1;
  }
}
