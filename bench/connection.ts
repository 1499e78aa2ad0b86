import { connect, type Socket } from "node:net";

// A minimal client: prebuilt requests, one at a time per connection.
// On a machine with few cores a heavier client would measure itself.

export interface Reply {
  readonly status: number;
  readonly body: Buffer;
}

export interface RequestParts {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly key: string;
  readonly body?: string;
}

export function requestBytes({ method, path, key, body }: RequestParts): Buffer {
  const head = `${method} ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${key}\r\n`;
  if (body === undefined) return Buffer.from(`${head}\r\n`);
  const bytes = Buffer.from(body);
  return Buffer.concat([
    Buffer.from(`${head}content-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`),
    bytes,
  ]);
}

export class Connection {
  readonly #socket: Socket;
  #received: Buffer[] = [];
  #waiting: PromiseWithResolvers<Reply> | undefined;
  #needed = 0;
  #have = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    const lost = (error?: Error) => this.#waiting?.reject(error ?? new Error("the server hung up"));
    socket.on("error", lost);
    socket.on("close", () => lost());
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new Connection(socket));
      });
    });
  }

  send(request: Buffer): Promise<Reply> {
    this.#waiting = Promise.withResolvers<Reply>();
    this.#socket.write(request);
    return this.#waiting.promise;
  }

  /** Sends a request and returns `data` of the envelope, or throws with the server's error. */
  async request<T>(parts: RequestParts): Promise<T> {
    const { status, body } = await this.send(requestBytes(parts));
    if (status >= 300) throw new Error(`${parts.method} ${parts.path}: ${status} ${body.toString().slice(0, 500)}`);
    return JSON.parse(body.toString()) as T;
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(bytes: Buffer): void {
    this.#received.push(bytes);
    this.#have += bytes.length;
    if (this.#have < this.#needed) return;
    const all = this.#received.length === 1 ? bytes : Buffer.concat(this.#received);
    const headEnd = all.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = all.toString("latin1", 0, headEnd);
    const length = /\r\ncontent-length: (\d+)/i.exec(head);
    if (!length) throw new Error(`the response has no content-length: ${head}`);
    this.#needed = headEnd + 4 + Number(length[1]);
    if (this.#have < this.#needed) {
      this.#received = [all];
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#received = [];
    this.#have = 0;
    const needed = this.#needed;
    this.#needed = 0;
    waiting?.resolve({ status: Number(head.slice(9, 12)), body: all.subarray(headEnd + 4, needed) });
  }
}
