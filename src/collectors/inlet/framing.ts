// A stream cut into messages (RFC 6587): each either says its length first ("123 <34>1 ...") or ends with a line feed or a
// NUL. Which of the two is told anew for each message, since there are senders that change their mind.

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const PRI_START = 0x3c;
const ZERO = 0x30;
/** A longer number in front of a message is not its length: nothing is skipped for hours because of it. */
const COUNT_DIGITS_MAX = 7;
const HELD_BYTES_MIN = 1024;

export interface FramingOptions {
  /** Longer messages are refused, and skipped up to their end. */
  readonly bytesMax: number;
  /** Whether a message may say its length. JSON lines do not. */
  readonly counted: boolean;
}

export interface FramedMessages {
  /** The bytes belong to the message only until this returns. */
  take(message: Buffer): void;
  /** `beginning` is as much of the message as is at hand. */
  refuse(reason: "too_long" | "cut_off", beginning: Buffer): void;
  /** A line with nothing in it; not told of the one behind a message, which may belong to how that ends. */
  pass(): void;
}

/** A number in front of a message, and how many bytes it takes itself. */
interface Length {
  readonly count: number;
  readonly headerBytes: number;
}

/** What the next message is like; undecided until more of it is here. */
type Start =
  | { readonly kind: "line" | "undecided" }
  | ({ readonly kind: "counted" } & Length)
  /** Only what stands behind so many bytes can say whether it is a length. */
  | ({ readonly kind: "doubtful" } & Length);

export class Framing {
  readonly #options: FramingOptions;
  readonly #messages: FramedMessages;
  /** Bytes of a message that is not whole yet. */
  #held: Buffer = Buffer.alloc(0);
  #heldBytes = 0;
  /** How many bytes the message that is being read has; undefined for a line. */
  #count: number | undefined;
  #isUndecided = false;
  /** What may be the length of the message that is held with it. */
  #doubtful: Length | undefined;
  #skipBytes = 0;
  #skipsLine = false;
  #wasCounted = false;
  /** Whether any message has said its length. */
  #hasCounted = false;
  #isBehindMessage = false;
  #ended = 0;

  constructor(options: FramingOptions, messages: FramedMessages) {
    this.#options = options;
    this.#messages = messages;
  }

  /** Whether a message has begun and not ended. */
  get isUnfinished(): boolean {
    return this.#heldBytes > 0 || this.#count !== undefined || this.#skipBytes > 0 || this.#skipsLine;
  }

  /** How many messages have ended, taken or not. */
  get ended(): number {
    return this.#ended;
  }

  push(chunk: Buffer): void {
    let at = 0;
    const nul = new NextNul(chunk);
    while (at < chunk.length) {
      if (this.#skipBytes > 0) {
        const skipped = Math.min(this.#skipBytes, chunk.length - at);
        this.#skipBytes -= skipped;
        if (this.#skipBytes === 0) this.#ended++;
        at += skipped;
      } else if (this.#skipsLine) {
        const end = nul.orLineFeed(at);
        if (end < 0) return;
        this.#skipsLine = false;
        this.#ended++;
        at = end + 1;
      } else if (this.#count !== undefined) at = this.#readCounted(chunk, at, this.#count);
      else if (this.#doubtful !== undefined) at = this.#weigh(chunk, at, this.#doubtful, nul);
      else if (this.#heldBytes > 0 && !this.#isUndecided) at = this.#readLine(chunk, at, nul);
      else at = this.#begin(chunk, at, nul);
    }
  }

  /** The stream is over. In good order, a line that lacks nothing but its end is whole. */
  end(inOrder: boolean): void {
    this.settle();
    if (this.#heldBytes === 0 && this.#count === undefined) return;
    const rest = this.#held.subarray(0, this.#heldBytes);
    if (inOrder && this.#count === undefined) this.#take(rest);
    else this.#messages.refuse("cut_off", rest);
    this.#heldBytes = 0;
    this.#count = undefined;
    this.#doubtful = undefined;
  }

  /** Nothing more has come for a while: what is just as long as it may have said is whole. */
  settle(): void {
    const length = this.#doubtful;
    if (length && this.#heldBytes === length.headerBytes + length.count) this.#takeDoubtful(length);
  }

  #begin(chunk: Buffer, at: number, nul: NextNul): number {
    if (this.#isUndecided) {
      // A few digits at the end of the last chunk: one byte more each time, until it is clear what they are.
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
        // The byte that decided is the message's.
        this.#heldBytes--;
        return at;
      }
      this.#wasCounted = false;
      // The byte that decided may be the line's end.
      this.#heldBytes--;
      return this.#readLine(chunk, at, nul);
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
    return this.#readLine(chunk, at, nul);
  }

  #beginCounted(count: number, beginning: Buffer): void {
    this.#wasCounted = true;
    this.#hasCounted = true;
    if (count <= this.#options.bytesMax) {
      this.#count = count;
      return;
    }
    this.#messages.refuse("too_long", beginning.subarray(0, count));
    this.#skipBytes = count;
  }

  /** It was a length if no line ends before so many bytes, and a line end or another length stands behind them. */
  #weigh(chunk: Buffer, at: number, length: Length, nul: NextNul): number {
    const wholeBytes = length.headerBytes + length.count;
    const missing = wholeBytes - this.#heldBytes;
    if (missing > 0) {
      const part = chunk.subarray(at, at + missing);
      if (part.includes(LINE_FEED) || part.includes(0)) return this.#readDoubtfulAsLine(chunk, at, nul);
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
    if (!mayBeLength) return this.#readDoubtfulAsLine(chunk, at, nul);
    this.#hold(chunk.subarray(at, at + 1));
    return at + 1;
  }

  #readDoubtfulAsLine(chunk: Buffer, at: number, nul: NextNul): number {
    this.#doubtful = undefined;
    this.#wasCounted = false;
    return this.#readLine(chunk, at, nul);
  }

  /** Digits of the next length that are held behind it stay. The next one is weighed like this one. */
  #takeDoubtful({ headerBytes, count }: Length): void {
    const wholeBytes = headerBytes + count;
    const digits = Buffer.from(this.#held.subarray(wholeBytes, this.#heldBytes));
    const message = this.#held.subarray(headerBytes, wholeBytes);
    this.#doubtful = undefined;
    this.#hasCounted = true;
    this.#heldBytes = 0;
    this.#take(message);
    this.#forgetLongRoom();
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

  #readLine(chunk: Buffer, at: number, nul: NextNul): number {
    const end = nul.orLineFeed(at);
    const stop = end < 0 ? chunk.length : end;
    if (this.#heldBytes + stop - at > this.#options.bytesMax) {
      if (this.#heldBytes === 0) this.#messages.refuse("too_long", chunk.subarray(at, stop));
      else this.#messages.refuse("too_long", this.#held.subarray(0, this.#heldBytes));
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
   * `123 <` is a length. Without the `<` it is one where the message before had one with it; and it may be one at the beginning of
   * the stream, or where others were. A line may begin with a number.
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
      const room = Math.max(HELD_BYTES_MIN, needed, Math.min(2 * this.#held.length, this.#options.bytesMax));
      const grown = Buffer.allocUnsafe(room);
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
    this.#forgetLongRoom();
  }

  /** One long line does not keep its room for as long as the connection lives. */
  #forgetLongRoom(): void {
    if (this.#held.length > 16 * HELD_BYTES_MIN) this.#held = Buffer.alloc(0);
  }

  #take(message: Buffer): void {
    this.#ended++;
    const trimmed = withoutEnd(message);
    const isEmpty = trimmed.length === 0;
    if (!isEmpty) this.#messages.take(trimmed);
    else if (!this.#isBehindMessage) this.#messages.pass();
    this.#isBehindMessage = !isEmpty;
  }
}

/** The next NUL is looked for once, and not once for each line before it. */
class NextNul {
  readonly #chunk: Buffer;
  #at = -2;

  constructor(chunk: Buffer) {
    this.#chunk = chunk;
  }

  /** Where the line that begins here ends; below zero where it does not. */
  orLineFeed(from: number): number {
    if (this.#at !== -1 && this.#at < from) this.#at = this.#chunk.indexOf(0, from);
    const lineFeed = this.#chunk.indexOf(LINE_FEED, from);
    if (this.#at < 0) return lineFeed;
    return lineFeed < 0 ? this.#at : Math.min(this.#at, lineFeed);
  }
}

/** The bytes without line ends and NULs behind them. */
export function withoutEnd(message: Buffer): Buffer {
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

/** A datagram is one message, unless each of its lines has a priority of its own: some senders put several into one. */
export function messagesOfDatagram(datagram: Buffer): Buffer[] {
  const whole = withoutEnd(datagram);
  if (!whole.includes(LINE_FEED)) return whole.length > 0 ? [whole] : [];
  const lines: Buffer[] = [];
  for (let start = 0; start < whole.length;) {
    // It may be full of empty lines: they are passed over by the byte.
    if (isEnd(whole[start]!)) {
      start++;
      continue;
    }
    const lineFeed = whole.indexOf(LINE_FEED, start);
    const end = lineFeed < 0 ? whole.length : lineFeed;
    const line = withoutEnd(whole.subarray(start, end));
    if (!PRI_LINE.test(line.toString("latin1", 0, 5))) return [whole];
    lines.push(line);
    start = end + 1;
  }
  return lines;
}
