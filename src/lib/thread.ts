import { basename } from "node:path";
import { parentPort, Worker, type ResourceLimits } from "node:worker_threads";
import { enableExactJson, parseExact } from "./exact-json.ts";

// Runs blocking work in a worker thread, called like a function.

type Api = { [method: string]: (...args: never[]) => unknown };
type ThreadCall = { readonly call: number; readonly method: string; readonly args: unknown[] };
type ThreadReply = {
  readonly call: number;
  readonly value?: unknown;
  readonly json?: string;
  readonly failure?: ThreadFailure;
};
/** The message that asks a thread to exit by itself. */
const LEAVE = "leave";
/** The message of a thread whose code is loaded: a reply to no call. */
const LOADED = { call: -1 } satisfies ThreadReply;
type ThreadFailure = { name: string; message: string; stack?: string | undefined; details: Record<string, unknown> };

/** A value as JSON text, which crosses threads in half the time of many objects. The caller receives the value. */
export class JsonText<T> {
  readonly text: string;
  /** Exists only for the type checker. */
  declare readonly value: T;
  constructor(text: string) {
    this.text = text;
  }
}

export type ThreadResult<R> = Awaited<R> extends infer Value ? (Value extends JsonText<infer T> ? T : Value) : never;

/** The methods of an object in a thread, as the caller sees them. */
export type RemoteMethods<Part, Method extends keyof Part> = {
  readonly [M in Method]: Part[M] extends (...args: infer Args) => infer R
    ? (...args: Args) => Promise<ThreadResult<R>>
    : never;
};

/** An error that was thrown in a thread, with its plain fields in `details`. */
export class ThreadError extends Error {
  readonly details: Record<string, unknown>;
  constructor(failure: ThreadFailure) {
    super(failure.message);
    this.name = failure.name;
    if (failure.stack) this.stack = failure.stack;
    this.details = failure.details;
  }
}

/** For a thread whose death is a bug: crashes the process. Committed data is on the disk. */
export function endingProcess(what: string): (error: Error) => void {
  return (error) =>
    queueMicrotask(() => {
      throw new Error(`${what} died`, { cause: error });
    });
}

/** The heap of one thread, as V8 reports it. */
export interface ThreadHeap {
  readonly thread: string;
  readonly used: number;
  readonly total: number;
  readonly external: number;
}

/** V8 lets the young generation of each thread grow to 96 MB on a large machine. This is three semi-spaces of 8 MB, as in the main thread (main.mjs). */
const YOUNG_GENERATION_MB_MAX = 24;

const running = new Set<Worker>();
const SOURCE_FOLDER = new URL("..", import.meta.url).href;

/** The name of a thread in metrics and system tools: `columns` for columns-thread.ts. */
function threadName(file: URL): string {
  if (!file.href.startsWith(SOURCE_FOLDER)) return "other";
  return basename(file.pathname).replace(/-thread\.ts$/, "");
}

/** The heaps of all worker threads. V8 answers between two calls of a thread, or during its JavaScript. */
export async function threadHeaps(): Promise<ThreadHeap[]> {
  const heaps = await Promise.allSettled(
    Array.from(running, async (worker) => {
      const { threadName: thread } = worker;
      const { used_heap_size, total_heap_size, external_memory } = await worker.getHeapStatistics();
      return { thread: thread ?? "", used: used_heap_size, total: total_heap_size, external: external_memory };
    }),
  );
  // A thread that ended meanwhile has no heap.
  return heaps.flatMap((heap) => (heap.status === "fulfilled" ? [heap.value] : []));
}

export class Thread<T extends Api> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  readonly #gone: Promise<void>;
  readonly #loaded = Promise.withResolvers<void>();
  #next = 0;
  #dead: Error | undefined;

  /** `onDeath` is called if the thread ends unasked. */
  constructor(file: URL, workerData: unknown, onDeath: (error: Error) => void, resourceLimits: ResourceLimits = {}) {
    this.#worker = new Worker(file, {
      workerData,
      name: threadName(file),
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB_MAX, ...resourceLimits },
    });
    running.add(this.#worker);
    this.#worker.on("message", (answer: ThreadReply) => {
      if (answer.call === LOADED.call) return this.#loaded.resolve();
      const waiting = this.#waiting.get(answer.call);
      if (!waiting) return;
      this.#waiting.delete(answer.call);
      if (answer.failure) waiting.reject(new ThreadError(answer.failure));
      else waiting.resolve((answer.json === undefined ? answer.value : parseExact(answer.json)) as never);
    });
    let failure: Error | undefined;
    this.#worker.on("error", (error) => {
      failure = error instanceof Error ? error : new Error(String(error));
    });
    this.#gone = new Promise((resolve) => {
      this.#worker.on("exit", (code) => {
        running.delete(this.#worker);
        const asked = this.#dead !== undefined;
        this.#dead ??= failure ?? new Error(`the thread ended with code ${code}`);
        for (const { reject } of this.#waiting.values()) reject(this.#dead);
        this.#waiting.clear();
        if (!asked) onDeath(this.#dead);
        resolve();
      });
    });
  }

  call<M extends keyof T & string>(method: M, ...args: Parameters<T[M]>): Promise<ThreadResult<ReturnType<T[M]>>> {
    return this.callWith([], method, ...args);
  }

  /** Transfers these buffers of the arguments to the thread instead of copying them. */
  callWith<M extends keyof T & string>(
    buffers: readonly ArrayBuffer[],
    method: M,
    ...args: Parameters<T[M]>
  ): Promise<ThreadResult<ReturnType<T[M]>>> {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const call = this.#next++;
      this.#waiting.set(call, { resolve, reject });
      this.#worker.postMessage({ call, method, args } satisfies ThreadCall, buffers);
    });
  }

  /**
   * Lets the thread exit by itself once it has nothing left to do. A native engine that was just in use may abort the
   * process if its thread is terminated.
   */
  async leave(): Promise<void> {
    if (this.#dead) return this.#gone;
    this.#dead = new Error("the thread has been ended");
    this.#worker.postMessage(LEAVE);
    await this.#gone;
  }

  /** Terminates the thread. Await its calls first. */
  async end(): Promise<void> {
    this.#dead ??= new Error("the thread has been ended");
    // Termination while native code loads would crash the process.
    await Promise.race([this.#loaded.promise, this.#gone]);
    await this.#worker.terminate();
    await this.#gone;
  }
}

/** Called once in the thread's file: serves calls until the thread ends. */
export function serveThread(api: Api): void {
  enableExactJson();
  const port = parentPort!;
  const reply = (answer: ThreadReply) => port.postMessage(answer);
  const answer = (call: number, value: unknown) =>
    reply(value instanceof JsonText ? { call, json: value.text } : { call, value });
  port.on("message", (message: ThreadCall | typeof LEAVE) => {
    if (message === LEAVE) return port.close();
    const { call, method, args } = message;
    try {
      const value = api[method]!(...(args as never[]));
      if (value instanceof Promise) {
        value.then(
          (settled: unknown) => answer(call, settled),
          (error: unknown) => reply({ call, failure: describe(error) }),
        );
      } else answer(call, value);
    } catch (error) {
      reply({ call, failure: describe(error) });
    }
  });
  reply(LOADED);
}

function describe(error: unknown): ThreadFailure {
  if (!(error instanceof Error)) return { name: "Error", message: String(error), details: {} };
  const details: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(error)) {
    if (typeof value === "string" || typeof value === "number") details[key] = value;
  }
  return { name: error.name, message: error.message, stack: error.stack, details };
}
