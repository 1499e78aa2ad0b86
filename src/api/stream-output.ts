import { Readable } from "node:stream";

/** Text on its way to one reader, who may be slow. */
export class StreamOutput extends Readable {
  #given = 0;
  #takenBefore = 0;
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

  give(text: string): void {
    if (this.destroyed || this.readableEnded) return;
    this.#given += Buffer.byteLength(text);
    this.push(text);
  }

  end(): void {
    if (!this.destroyed) this.push(null);
  }

  get isFull(): boolean {
    return this.readableLength >= this.readableHighWaterMark;
  }

  /** Resolves when there is room again, or nobody reads any more. */
  async room(): Promise<void> {
    while (this.isFull && !this.destroyed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.#wake = undefined;
  }

  /** Called at regular times: how many of them in a row have found text waiting, and none of it taken since the last. */
  stalledTicks(): number {
    const taken = this.#given - this.readableLength;
    this.#stalledTicks = this.readableLength > 0 && taken === this.#takenBefore ? this.#stalledTicks + 1 : 0;
    this.#takenBefore = taken;
    return this.#stalledTicks;
  }
}
