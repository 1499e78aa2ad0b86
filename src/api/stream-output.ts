import { Readable } from "node:stream";

/** The output buffer of one stream, whose client may be slow. */
export class StreamOutput extends Readable {
  #written = 0;
  #readBefore = 0;
  #stalledTicks = 0;
  #wake: (() => void) | undefined;

  constructor(bufferBytesMax: number) {
    super({ highWaterMark: bufferBytesMax, encoding: undefined });
  }

  override _read(): void {
    this.#wake?.();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wake?.();
    done(error);
  }

  write(text: string): void {
    if (this.destroyed || this.readableEnded) return;
    this.#written += Buffer.byteLength(text);
    this.push(text);
  }

  end(): void {
    if (!this.destroyed) this.push(null);
  }

  get isFull(): boolean {
    return this.readableLength >= this.readableHighWaterMark;
  }

  /** Resolves when the buffer is no longer full, or the client is gone. */
  async drained(): Promise<void> {
    while (this.isFull && !this.destroyed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#wake = undefined;
  }

  /** Called on every tick. Returns the number of consecutive ticks in which buffered output was not read at all. */
  stalledTicks(): number {
    const read = this.#written - this.readableLength;
    this.#stalledTicks = this.readableLength > 0 && read === this.#readBefore ? this.#stalledTicks + 1 : 0;
    this.#readBefore = read;
    return this.#stalledTicks;
  }
}
