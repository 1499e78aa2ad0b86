import { write, writeSync } from "node:fs";

const GATHER_MS = 100;
const GATHER_CHARACTERS = 16 * 1024;
const WAITING_CHARACTERS_MAX = 1024 * 1024;
const BUSY_RETRY_MS = 20;
const BUSY_RETRIES_MAX = 100;

/**
 * Writes lines to a file descriptor without blocking the caller: buffers them, writes in the background and flushes when
 * the process exits. If the descriptor does not accept them (a full disk, a slow or closed reader), lines are dropped
 * and counted.
 */
export class LineWriter {
  readonly #fd: number;
  #waiting: string[] = [];
  #waitingCharacters = 0;
  /** The bytes in flight, and how many of them are written. */
  #chunk: Buffer = Buffer.alloc(0);
  #written = 0;
  #isWriting = false;
  #isScheduled = false;
  #lost = 0;
  readonly #onFlushed: (() => void)[] = [];

  readonly #onExit = () => this.flushSync();

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Dropped lines. */
  get lost(): number {
    return this.#lost;
  }

  write(line: string): void {
    if (this.#waitingCharacters + line.length > WAITING_CHARACTERS_MAX) {
      this.#lost++;
      return;
    }
    this.#waiting.push(line);
    this.#waitingCharacters += line.length;
    if (this.#isWriting || this.#isScheduled) return;
    this.#isScheduled = true;
    process.on("exit", this.#onExit);
    // Never within this call: a caller that writes a last line and then flushes must find it still buffered.
    if (this.#waitingCharacters >= GATHER_CHARACTERS) setImmediate(() => this.#writeWaiting());
    else setTimeout(() => this.#writeWaiting(), GATHER_MS).unref();
  }

  /** Calls back once all earlier lines are written or dropped. */
  flush(done: () => void = () => undefined): void {
    this.#onFlushed.push(done);
    if (!this.#isWriting) this.#writeWaiting();
  }

  flushSync(): void {
    // Leaves the chunk in flight to the background write, which alone knows its progress.
    const chunk = this.#take();
    let written = 0;
    for (let retries = 0; written < chunk.length && retries < BUSY_RETRIES_MAX; retries++) {
      try {
        written += writeSync(this.#fd, chunk, written);
      } catch (error) {
        if (!isBusy(error)) return this.#give(chunk.subarray(written));
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_RETRY_MS);
      }
    }
  }

  #writeWaiting(): void {
    this.#isScheduled = false;
    if (this.#isWriting) return;
    this.#chunk = this.#take();
    this.#written = 0;
    this.#goOn();
  }

  #goOn(): void {
    if (this.#written < this.#chunk.length) {
      this.#isWriting = true;
      write(this.#fd, this.#chunk, this.#written, (error, count) => this.#arrived(error, count));
      return;
    }
    this.#isWriting = false;
    if (this.#waiting.length > 0) return this.#writeWaiting();
    process.off("exit", this.#onExit);
    for (const done of this.#onFlushed.splice(0)) done();
  }

  #arrived(error: NodeJS.ErrnoException | null, count: number): void {
    if (isBusy(error)) {
      setTimeout(() => this.#goOn(), BUSY_RETRY_MS).unref();
      return;
    }
    if (error) {
      this.#give(this.#chunk.subarray(this.#written));
      this.#written = this.#chunk.length;
    } else this.#written += count;
    this.#goOn();
  }

  #take(): Buffer {
    const text = this.#waiting.join("");
    this.#waiting = [];
    this.#waitingCharacters = 0;
    return Buffer.from(text);
  }

  #give(up: Buffer): void {
    for (const byte of up) if (byte === 10) this.#lost++;
  }
}

function isBusy(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return code === "EAGAIN" || code === "EBUSY";
}
