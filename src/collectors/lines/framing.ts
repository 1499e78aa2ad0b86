// Splits a stream into messages (RFC 6587). A message either states its length first ("123 <34>1 ...") or ends with a line
// feed or a NUL. The method is detected for each message, since some senders mix them.

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const PRI_START = 0x3c;
const ZERO = 0x30;
/** A longer number is not taken for a length: skipping that many bytes would take hours. */
const COUNT_DIGITS_MAX = 7;
const HELD_BYTES_MIN = 1024;

export interface FramingOptions {
  /** Longer messages are refused and skipped. */
  readonly bytesMax: number;
  /** True if a message may state its length, which JSON lines do not. */
  readonly counted: boolean;
}

export interface MessageSink {
  /** Receives a message. The bytes are valid only until this returns. */
  take(message: Buffer): void;
  /** `head` is the part of the message at hand. */
  refuse(reason: "too_long" | "cut_off", head: Buffer): void;
  /** Receives an empty line, except directly after a message, where it may be part of the line end. */
  skipEmpty(): void;
}

/** A length in front of a message, and the bytes that it occupies itself. */
interface Length {
  readonly count: number;
  readonly headerBytes: number;
}

/** Framing of the next message; undecided until more of it has arrived. */
type Start =
  | { readonly kind: "line" | "undecided" }
  | ({ readonly kind: "counted" } & Length)
  /** Only the bytes after the presumed message can tell whether the number is a length. */
  | ({ readonly kind: "doubtful" } & Length);

export class MessageFraming {
  readonly #options: FramingOptions;
  readonly #sink: MessageSink;
  /** Bytes of an incomplete message. */
  #held: Buffer = Buffer.alloc(0);
  #heldBytes = 0;
  /** Length of the current message; undefined for a line. */
  #count: number | undefined;
  #isUndecided = false;
  /** Presumed length of the held message, which is held along with it. */
  #doubtful: Length | undefined;
  #skipBytes = 0;
  #skipsLine = false;
  #wasCounted = false;
  /** True once any message has stated its length. */
  #hasCounted = false;
  #followsMessage = false;
  #ended = 0;

  constructor(options: FramingOptions, sink: MessageSink) {
    this.#options = options;
    this.#sink = sink;
  }

  /** True while a message has begun and not ended. */
  get isIncomplete(): boolean {
    return this.#heldBytes > 0 || this.#count !== undefined || this.#skipBytes > 0 || this.#skipsLine;
  }

  /** Messages that have ended, accepted or not. */
  get ended(): number {
    return this.#ended;
  }

  push(chunk: Buffer): void {
    let at = 0;
    const lineEnds = new LineEndFinder(chunk);
    while (at < chunk.length) {
      if (this.#skipBytes > 0) {
        const skipped = Math.min(this.#skipBytes, chunk.length - at);
        this.#skipBytes -= skipped;
        if (this.#skipBytes === 0) this.#ended++;
        at += skipped;
      } else if (this.#skipsLine) {
        const end = lineEnds.find(at);
        if (end < 0) return;
        this.#skipsLine = false;
        this.#ended++;
        at = end + 1;
      } else if (this.#count !== undefined) at = this.#readCounted(chunk, at, this.#count);
      else if (this.#doubtful !== undefined) at = this.#resolveDoubtful(chunk, at, this.#doubtful, lineEnds);
      else if (this.#heldBytes > 0 && !this.#isUndecided) at = this.#readLine(chunk, at, lineEnds);
      else at = this.#begin(chunk, at, lineEnds);
    }
  }

  /** Ends the stream. After an orderly end, a line that only lacks its line end is complete. */
  end(isOrderly: boolean): void {
    this.settle();
    if (this.#heldBytes === 0 && this.#count === undefined) return;
    const rest = this.#held.subarray(0, this.#heldBytes);
    if (isOrderly && this.#count === undefined) this.#take(rest);
    else this.#sink.refuse("cut_off", rest);
    this.#heldBytes = 0;
    this.#count = undefined;
    this.#doubtful = undefined;
  }

  /** Called when nothing more has arrived for a while: a message of exactly its presumed length is complete. */
  settle(): void {
    const length = this.#doubtful;
    if (length && this.#heldBytes === length.headerBytes + length.count) this.#takeDoubtful(length);
  }

  #begin(chunk: Buffer, at: number, lineEnds: LineEndFinder): number {
    if (this.#isUndecided) {
      // Digits from the end of the last chunk: add one byte at a time until they are decided.
      this.#hold(chunk.subarray(at, at + 1));
      const start = this.#startOf(this.#held, 0, this.#heldBytes);
      if (start.kind === "undecided") return at + 1;
      this.#isUndecided = false;
      if (start.kind === "counted") {
        const rest = Buffer.from(this.#held.subarray(start.headerBytes, this.#heldBytes));
        this.#heldBytes = 0;
        this.#beginCounted(start.count, rest);
        if (this.#count !== undefined) this.#hold(rest);
        else this.#skipBytes -= rest.length;
        return at + 1;
      }
      if (start.kind === "doubtful") {
        this.#doubtful = start;
        // The deciding byte belongs to the message.
        this.#heldBytes--;
        return at;
      }
      this.#wasCounted = false;
      // The deciding byte may be the line end.
      this.#heldBytes--;
      return this.#readLine(chunk, at, lineEnds);
    }
    const start = this.#startOf(chunk, at, chunk.length);
    if (start.kind === "undecided") {
      this.#isUndecided = true;
      this.#hold(chunk.subarray(at));
      return chunk.length;
    }
    if (start.kind === "counted") {
      this.#beginCounted(start.count, chunk.subarray(at + start.headerBytes));
      return at + start.headerBytes;
    }
    if (start.kind === "doubtful") {
      this.#doubtful = start;
      this.#hold(chunk.subarray(at, at + start.headerBytes));
      return at + start.headerBytes;
    }
    this.#wasCounted = false;
    return this.#readLine(chunk, at, lineEnds);
  }

  #beginCounted(count: number, head: Buffer): void {
    this.#wasCounted = true;
    this.#hasCounted = true;
    if (count <= this.#options.bytesMax) {
      this.#count = count;
      return;
    }
    this.#sink.refuse("too_long", head.subarray(0, count));
    this.#skipBytes = count;
  }

  /** The number was a length if no line ends within that many bytes, and a line end or another length follows them. */
  #resolveDoubtful(chunk: Buffer, at: number, length: Length, lineEnds: LineEndFinder): number {
    const wholeBytes = length.headerBytes + length.count;
    const missing = wholeBytes - this.#heldBytes;
    if (missing > 0) {
      const part = chunk.subarray(at, at + missing);
      if (part.includes(LINE_FEED) || part.includes(0)) return this.#readDoubtfulAsLine(chunk, at, lineEnds);
      this.#hold(part);
      return at + part.length;
    }
    const byte = chunk[at]!;
    const digits = -missing;
    if (digits === 0 ? byte === LINE_FEED || byte === 0 : byte === SPACE) {
      this.#takeDoubtful(length);
      return at;
    }
    const mayBeLength = isDigit(byte) && digits < COUNT_DIGITS_MAX && !(digits === 0 && byte === ZERO);
    if (!mayBeLength) return this.#readDoubtfulAsLine(chunk, at, lineEnds);
    this.#hold(chunk.subarray(at, at + 1));
    return at + 1;
  }

  #readDoubtfulAsLine(chunk: Buffer, at: number, lineEnds: LineEndFinder): number {
    this.#doubtful = undefined;
    this.#wasCounted = false;
    return this.#readLine(chunk, at, lineEnds);
  }

  /** Keeps the digits of the next presumed length, which are held after the message. */
  #takeDoubtful({ headerBytes, count }: Length): void {
    const wholeBytes = headerBytes + count;
    const digits = Buffer.from(this.#held.subarray(wholeBytes, this.#heldBytes));
    const message = this.#held.subarray(headerBytes, wholeBytes);
    this.#doubtful = undefined;
    this.#hasCounted = true;
    this.#heldBytes = 0;
    this.#take(message);
    this.#releaseLongBuffer();
    this.#isUndecided = digits.length > 0;
    this.#hold(digits);
  }

  #readCounted(chunk: Buffer, at: number, count: number): number {
    const end = at + count - this.#heldBytes;
    if (end > chunk.length) {
      this.#hold(chunk.subarray(at));
      return chunk.length;
    }
    this.#count = undefined;
    if (this.#heldBytes === 0) this.#take(chunk.subarray(at, end));
    else {
      this.#hold(chunk.subarray(at, end));
      this.#takeHeld();
    }
    return end;
  }

  #readLine(chunk: Buffer, at: number, lineEnds: LineEndFinder): number {
    const end = lineEnds.find(at);
    const stop = end < 0 ? chunk.length : end;
    if (this.#heldBytes + stop - at > this.#options.bytesMax) {
      if (this.#heldBytes === 0) this.#sink.refuse("too_long", chunk.subarray(at, stop));
      else this.#sink.refuse("too_long", this.#held.subarray(0, this.#heldBytes));
      this.#heldBytes = 0;
      this.#skipsLine = end < 0;
      if (end >= 0) this.#ended++;
      return end < 0 ? stop : end + 1;
    }
    if (end < 0) {
      this.#hold(chunk.subarray(at));
      return chunk.length;
    }
    if (this.#heldBytes === 0) this.#take(chunk.subarray(at, end));
    else {
      this.#hold(chunk.subarray(at, end));
      this.#takeHeld();
    }
    return end + 1;
  }

  /**
   * `123 <` is a length. Without the `<` it is one if the previous message had one. At the start of the stream, or if an earlier
   * message had one, it may be one. Otherwise it is a line that starts with a number.
   */
  #startOf(bytes: Buffer, start: number, end: number): Start {
    if (!this.#options.counted) return { kind: "line" };
    let at = start;
    let count = 0;
    while (at < end && at - start <= COUNT_DIGITS_MAX && isDigit(bytes[at]!)) count = count * 10 + bytes[at++]! - ZERO;
    const digits = at - start;
    if (digits > COUNT_DIGITS_MAX || (digits > 0 && bytes[start] === ZERO)) return { kind: "line" };
    if (at === end) return { kind: digits === 0 ? "line" : "undecided" };
    if (digits === 0 || bytes[at] !== SPACE) return { kind: "line" };
    const headerBytes = digits + 1;
    if (this.#wasCounted) return { kind: "counted", count, headerBytes };
    if (at + 1 === end) return { kind: "undecided" };
    if (bytes[at + 1] === PRI_START) return { kind: "counted", count, headerBytes };
    const mayBeCounted = (this.#hasCounted || this.#ended === 0) && count <= this.#options.bytesMax;
    return mayBeCounted ? { kind: "doubtful", count, headerBytes } : { kind: "line" };
  }

  #hold(bytes: Buffer): void {
    const needed = this.#heldBytes + bytes.length;
    if (needed > this.#held.length) {
      const capacity = Math.max(HELD_BYTES_MIN, needed, Math.min(2 * this.#held.length, this.#options.bytesMax));
      const grown = Buffer.allocUnsafe(capacity);
      this.#held.copy(grown, 0, 0, this.#heldBytes);
      this.#held = grown;
    }
    bytes.copy(this.#held, this.#heldBytes);
    this.#heldBytes = needed;
  }

  #takeHeld(): void {
    const message = this.#held.subarray(0, this.#heldBytes);
    this.#heldBytes = 0;
    this.#take(message);
    this.#releaseLongBuffer();
  }

  /** Frees the buffer of a long line, which would otherwise last as long as the connection. */
  #releaseLongBuffer(): void {
    if (this.#held.length > 16 * HELD_BYTES_MIN) this.#held = Buffer.alloc(0);
  }

  #take(message: Buffer): void {
    this.#ended++;
    const trimmed = withoutLineEnd(message);
    const isEmpty = trimmed.length === 0;
    if (!isEmpty) this.#sink.take(trimmed);
    else if (!this.#followsMessage) this.#sink.skipEmpty();
    this.#followsMessage = !isEmpty;
  }
}

/** Finds line ends in a chunk. Searches for the next NUL once, and not for every line before it. */
class LineEndFinder {
  readonly #chunk: Buffer;
  /** Position of the next NUL: -1 if there is none, -2 before the first search. */
  #nul = -2;

  constructor(chunk: Buffer) {
    this.#chunk = chunk;
  }

  /** Position of the line end after `from`; -1 if there is none. */
  find(from: number): number {
    if (this.#nul !== -1 && this.#nul < from) this.#nul = this.#chunk.indexOf(0, from);
    const lineFeed = this.#chunk.indexOf(LINE_FEED, from);
    if (this.#nul < 0) return lineFeed;
    return lineFeed < 0 ? this.#nul : Math.min(this.#nul, lineFeed);
  }
}

/** The bytes without trailing line ends and NULs. */
export function withoutLineEnd(message: Buffer): Buffer {
  let end = message.length;
  while (end > 0 && isEnd(message[end - 1]!)) end--;
  return end === message.length ? message : message.subarray(0, end);
}

function isEnd(byte: number): boolean {
  return byte === LINE_FEED || byte === CARRIAGE_RETURN || byte === 0;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39;
}

const PRI_LINE = /^<\d{1,3}>/;

/** Splits a datagram. It is one message, unless every line in it has its own priority: some senders pack several. */
export function messagesOfDatagram(datagram: Buffer): Buffer[] {
  const whole = withoutLineEnd(datagram);
  if (!whole.includes(LINE_FEED)) return whole.length > 0 ? [whole] : [];
  const lines: Buffer[] = [];
  for (let start = 0; start < whole.length;) {
    // Empty lines are skipped byte by byte, as there may be many.
    if (isEnd(whole[start]!)) {
      start++;
      continue;
    }
    const lineFeed = whole.indexOf(LINE_FEED, start);
    const end = lineFeed < 0 ? whole.length : lineFeed;
    const line = withoutLineEnd(whole.subarray(start, end));
    if (!PRI_LINE.test(line.toString("latin1", 0, 5))) return [whole];
    lines.push(line);
    start = end + 1;
  }
  return lines;
}
