import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Counter, Gauge, type Registry } from "prom-client";
import type { Fault } from "../lib/fault.ts";
import { parseJson, withoutByteOrderMark, type JsonOptions } from "../lib/json.ts";
import { invalid, Problem } from "./problems.ts";
import { noRoom, Room, type Share } from "./room.ts";

// Bodies: read whole within a limit, unpacked within the same limit, and parsed strictly. All of them share one budget of
// memory, which counts what has arrived and not what was announced, and none may hold its part by not going on.

const unzip = promisify(gunzip);

export const JSON_TYPE = "application/json";
export const NDJSON_TYPE = "application/x-ndjson";
/** The names that go about for one value on each line: nobody has ever settled on one. */
export const NDJSON_TYPES: readonly string[] = [
  NDJSON_TYPE,
  "application/ndjson",
  "application/jsonl",
  "application/x-jsonlines",
  "application/jsonlines",
];
/** Levels of objects and arrays in a body, where nothing else is said. */
export const BODY_DEPTH_MAX = 32;
// What gzip adds to bytes that cannot be made smaller.
const GZIP_OVERHEAD_BYTES_MAX = 64 * 1024;

/** The client hung up before its request was complete: nobody is left to answer. */
export class ClientGone extends Error {
  constructor(options?: ErrorOptions) {
    super("the client closed the connection in the middle of its request", options);
    this.name = "ClientGone";
  }
}

export interface Body {
  readonly type: string;
  readonly bytes: Buffer;
}

export interface BodyRules {
  readonly bytesMax: number;
  readonly types: readonly string[];
  /** What a body is that does not say so; left out, it is refused. */
  readonly assumed?: string;
}

/** The least that must arrive of a body in each window of time until it is complete. */
export interface Pace {
  readonly windowMs: number;
  readonly bytesMin: number;
}

/** 1 KiB/s: slower than any line on which a request timeout could be met, faster than an upload that waits on purpose. */
const BODY_PACE: Pace = { windowMs: 10_000, bytesMin: 10 * 1024 };

/** For one request. */
export interface BodyReader {
  /** The body, unpacked; undefined when the request has none. */
  read(rules: BodyRules): Promise<Body | undefined>;
  /** Once the request is answered. */
  release(): void;
}

export interface BodiesOptions {
  /** Of all bodies in flight. */
  readonly bytesMax: number;
  readonly registry: Registry;
  readonly pace?: Pace | undefined;
}

/** Every body that is being read or worked on. */
export class Bodies {
  readonly #room: Room;
  readonly #pace: Pace;
  readonly #refused: Counter<"reason">;

  constructor({ bytesMax, registry, pace = BODY_PACE }: BodiesOptions) {
    const room = new Room(bytesMax);
    this.#room = room;
    this.#pace = pace;
    this.#refused = new Counter({
      name: "tocsin_http_bodies_refused_total",
      help: "Request bodies cut off: no_room, or too_slow",
      labelNames: ["reason"],
      registers: [registry],
    });
    for (const reason of ["no_room", "too_slow"]) this.#refused.inc({ reason }, 0);
    new Gauge({
      name: "tocsin_http_body_bytes",
      help: "Bytes of request bodies held in memory",
      registers: [registry],
      collect() {
        this.set(room.bytes);
      },
    });
  }

  reader(request: IncomingMessage, owners: readonly string[]): BodyReader {
    const share = this.#room.share(owners);
    return {
      read: async (rules) => {
        try {
          return await readBody(request, rules, { share, pace: this.#pace });
        } catch (error) {
          const code = error instanceof Problem ? error.code : undefined;
          if (code === "unavailable") this.#refused.inc({ reason: "no_room" });
          if (code === "request_timeout") this.#refused.inc({ reason: "too_slow" });
          throw error;
        }
      },
      release: () => share.release(),
    };
  }
}

interface Allowance {
  readonly share: Share;
  readonly pace: Pace;
}

async function readBody(request: IncomingMessage, rules: BodyRules, allowed: Allowance): Promise<Body | undefined> {
  if (!hasBody(request)) return undefined;
  const type = mediaType(request, rules);
  const packed = isPacked(request);
  const bytesMax = packed ? rules.bytesMax + GZIP_OVERHEAD_BYTES_MAX : rules.bytesMax;
  const bytes = await readBytes(request, { bytesMax, shownMax: rules.bytesMax, ...allowed });
  if (bytes.length === 0) return undefined;
  if (!packed) return { type, bytes };
  const unpacked = await unpack(bytes, rules.bytesMax);
  if (!allowed.share.take(unpacked.length)) throw noRoom();
  return { type, bytes: unpacked };
}

/** A body's JSON, and what is wrong with its text: that does not keep anyone from looking at the value as well. */
export function readJson(bytes: Buffer, options: JsonOptions): { value: unknown; faults: readonly Fault[] } {
  const result = parseJson(withoutByteOrderMark(bytes), options);
  if (result.kind === "malformed") throw new Problem("malformed_json", `the body is not JSON: ${result.message}`);
  return { value: result.value, faults: result.kind === "faults" ? result.faults : [] };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

function mediaType({ headers }: IncomingMessage, { types, assumed }: BodyRules): string {
  const wanted = types.join(" or ");
  const given = headers["content-type"] ?? assumed;
  if (given === undefined) throw new Problem("unsupported_media_type", `no content type; send ${wanted}`);
  const [type = "", ...parameters] = given.toLowerCase().split(";");
  if (!types.includes(type.trim())) {
    throw new Problem("unsupported_media_type", `${type.trim()} is not taken here; send ${wanted}`);
  }
  const charset = parameters.find((parameter) => parameter.trim().startsWith("charset="));
  if (charset && !/^charset="?utf-?8"?$/.test(charset.trim())) {
    throw new Problem("unsupported_media_type", "the only charset taken is utf-8");
  }
  return type.trim();
}

function isPacked({ headers }: IncomingMessage): boolean {
  const encoding = headers["content-encoding"]?.trim().toLowerCase();
  if (encoding === undefined || encoding === "" || encoding === "identity") return false;
  if (encoding === "gzip" || encoding === "x-gzip") return true;
  throw new Problem("unsupported_media_type", `the content encoding ${encoding} is not taken; send gzip or none`);
}

function tooLarge(bytesMax: number): Problem {
  return new Problem("payload_too_large", `the body is larger than ${bytesMax} bytes`);
}

function tooSlow({ windowMs, bytesMin }: Pace): Problem {
  const message = `less than ${bytesMin} bytes of the body arrived in ${windowMs / 1000} s: send it again, faster`;
  return new Problem("request_timeout", message, { headers: { Connection: "close" } });
}

interface ReadRules extends Allowance {
  readonly bytesMax: number;
  /** The limit as the client is told it. */
  readonly shownMax: number;
}

async function readBytes(request: IncomingMessage, { bytesMax, shownMax, share, pace }: ReadRules): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(shownMax);
  if (request.destroyed) throw new ClientGone();
  const chunks: Buffer[] = [];
  let length = 0;
  await new Promise<void>((resolve, reject) => {
    let isSettled = false;
    const settle = (outcome: () => void) => {
      isSettled = true;
      clearInterval(watch);
      request.off("data", take).off("end", end).off("error", fail).off("close", gone);
      outcome();
    };
    const refuse = (problem: Problem) => {
      // What is still to come is read and dropped by the server, so that the client gets to read the answer.
      settle(() => reject(problem));
      request.on("error", ignoreHangUp).resume();
    };
    const take = (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) refuse(tooLarge(shownMax));
      else if (!share.take(chunk.length)) refuse(noRoom());
      else chunks.push(chunk);
    };
    let lengthBefore = 0;
    const look = () => {
      if (isSettled) return;
      if (length - lengthBefore < pace.bytesMin) refuse(tooSlow(pace));
      lengthBefore = length;
    };
    // After the sockets have been read once more: what arrived while the process was busy counts.
    const watch = setInterval(() => setImmediate(look), pace.windowMs);
    const end = () => settle(resolve);
    const fail = (error: Error) => settle(() => reject(new ClientGone({ cause: error })));
    const gone = () => settle(() => reject(new ClientGone()));
    request.on("data", take).on("end", end).on("error", fail).on("close", gone);
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length);
}

async function unpack(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  try {
    return await unzip(bytes, { maxOutputLength: bytesMax });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(bytesMax);
    throw invalid([{ field: "body", message: "is not valid gzip" }]);
  }
}

/** Of a client that has its answer already. */
function ignoreHangUp(): void {}
