import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { Counter, Gauge, type Registry } from "prom-client";
import type { Fault } from "../lib/fault.ts";
import { parseJson, withoutByteOrderMark, type JsonOptions } from "../lib/json.ts";
import { invalid, Problem } from "./problems.ts";
import { memoryExhausted, MemoryBudget, type MemoryShare } from "./memory-budget.ts";

// Request bodies are read up to a limit, decompressed up to the same limit, and parsed strictly. They share one memory budget,
// which counts received bytes, not the announced length. A stalled upload is cut off.

const unzip = promisify(gunzip);

export const JSON_TYPE = "application/json";
export const NDJSON_TYPE = "application/x-ndjson";
/** Media types in use for newline-delimited JSON; there is no standard one. */
export const NDJSON_TYPES: readonly string[] = [
  NDJSON_TYPE,
  "application/ndjson",
  "application/jsonl",
  "application/x-jsonlines",
  "application/jsonlines",
];
/** The default maximum nesting of objects and arrays in a body. */
export const BODY_DEPTH_MAX = 32;
// The overhead of gzip on incompressible bytes.
const GZIP_OVERHEAD_BYTES_MAX = 64 * 1024;

/** The client disconnected before its request was complete, so there is nobody to respond to. */
export class ClientDisconnected extends Error {
  constructor(options?: ErrorOptions) {
    super("the client disconnected in the middle of its request", options);
    this.name = "ClientDisconnected";
  }
}

export interface Body {
  readonly type: string;
  readonly bytes: Buffer;
}

export interface BodyRules {
  readonly bytesMax: number;
  readonly types: readonly string[];
  /** The type of a body without a content type. Without a default such a body is refused. */
  readonly defaultType?: string;
}

/** The bytes that must arrive in each time window until the body is complete. */
export interface MinimumRate {
  readonly windowMs: number;
  readonly bytesMin: number;
}

/** 1 KiB/s: below any connection that can meet the request timeout, above an upload that stalls on purpose. */
const BODY_RATE_MIN: MinimumRate = { windowMs: 10_000, bytesMin: 10 * 1024 };

/** Reads the body of one request. */
export interface BodyReader {
  /** The decompressed body; undefined if the request has none. */
  read(rules: BodyRules): Promise<Body | undefined>;
  /** Returns the memory; called once the request is answered. */
  release(): void;
}

export interface RequestBodiesOptions {
  /** The limit for all bodies in flight. */
  readonly bytesMax: number;
  readonly registry: Registry;
  readonly rateMin?: MinimumRate | undefined;
}

/** All request bodies in flight. */
export class RequestBodies {
  readonly #budget: MemoryBudget;
  readonly #rateMin: MinimumRate;
  readonly #refused: Counter<"reason">;

  constructor({ bytesMax, registry, rateMin = BODY_RATE_MIN }: RequestBodiesOptions) {
    const budget = new MemoryBudget(bytesMax);
    this.#budget = budget;
    this.#rateMin = rateMin;
    this.#refused = new Counter({
      name: "tocsin_http_bodies_refused_total",
      help: "Request bodies cut off, by reason: no_room (memory budget exhausted) or too_slow",
      labelNames: ["reason"],
      registers: [registry],
    });
    for (const reason of ["no_room", "too_slow"]) this.#refused.inc({ reason }, 0);
    new Gauge({
      name: "tocsin_http_body_bytes",
      help: "Bytes of request bodies held in memory",
      registers: [registry],
      collect() {
        this.set(budget.bytes);
      },
    });
  }

  reader(request: IncomingMessage, owners: readonly string[]): BodyReader {
    const share = this.#budget.share(owners);
    return {
      read: async (rules) => {
        try {
          return await readBody(request, rules, { share, rateMin: this.#rateMin });
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
  readonly share: MemoryShare;
  readonly rateMin: MinimumRate;
}

async function readBody(request: IncomingMessage, rules: BodyRules, allowed: Allowance): Promise<Body | undefined> {
  if (!hasBody(request)) return undefined;
  const type = mediaType(request, rules);
  const isCompressed = isGzip(request);
  const bytesMax = isCompressed ? rules.bytesMax + GZIP_OVERHEAD_BYTES_MAX : rules.bytesMax;
  const bytes = await readBytes(request, { bytesMax, reportedMax: rules.bytesMax, ...allowed });
  if (bytes.length === 0) return undefined;
  if (!isCompressed) return { type, bytes };
  const decompressed = await decompress(bytes, rules.bytesMax);
  if (!allowed.share.take(decompressed.length)) throw memoryExhausted();
  return { type, bytes: decompressed };
}

/** Parses the JSON of a body. Faults of the text are returned beside the value, so that its schema can be checked too. */
export function readJson(bytes: Buffer, options: JsonOptions): { value: unknown; faults: readonly Fault[] } {
  const result = parseJson(withoutByteOrderMark(bytes), options);
  if (result.kind === "malformed") throw new Problem("malformed_json", `the body is not JSON: ${result.message}`);
  return { value: result.value, faults: result.kind === "faults" ? result.faults : [] };
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

function mediaType({ headers }: IncomingMessage, { types, defaultType }: BodyRules): string {
  const accepted = types.join(" or ");
  const given = headers["content-type"] ?? defaultType;
  if (given === undefined)
    throw new Problem("unsupported_media_type", `the request has no content type; send ${accepted}`);
  const [type, ...parameters] = splitType(given);
  if (!types.includes(type)) {
    throw new Problem("unsupported_media_type", `${type} is not supported here; send ${accepted}`);
  }
  const charset = parameters.find((parameter) => parameter.trim().startsWith("charset="));
  if (charset && !/^charset="?utf-?8"?$/.test(charset.trim())) {
    throw new Problem("unsupported_media_type", "the charset is not supported; send utf-8");
  }
  return type;
}

/** The media type without parameters; empty if there is none. */
export function mediaTypeOf({ headers }: IncomingMessage): string {
  return splitType(headers["content-type"] ?? "")[0];
}

function splitType(contentType: string): [type: string, ...parameters: string[]] {
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  return [type.trim(), ...parameters];
}

function isGzip({ headers }: IncomingMessage): boolean {
  const encoding = headers["content-encoding"]?.trim().toLowerCase();
  if (encoding === undefined || encoding === "" || encoding === "identity") return false;
  if (encoding === "gzip" || encoding === "x-gzip") return true;
  throw new Problem("unsupported_media_type", `the content encoding ${encoding} is not supported; send gzip or none`);
}

function tooLarge(bytesMax: number): Problem {
  return new Problem("payload_too_large", `the body is larger than ${bytesMax} bytes`);
}

function tooSlow({ windowMs, bytesMin }: MinimumRate): Problem {
  const message = `fewer than ${bytesMin} bytes of the body arrived in ${windowMs / 1000} s; send it again over a faster connection`;
  return new Problem("request_timeout", message, { headers: { Connection: "close" } });
}

interface ReadLimits extends Allowance {
  readonly bytesMax: number;
  /** The limit as reported to the client. */
  readonly reportedMax: number;
}

async function readBytes(
  request: IncomingMessage,
  { bytesMax, reportedMax, share, rateMin }: ReadLimits,
): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(reportedMax);
  if (request.destroyed) throw new ClientDisconnected();
  const chunks: Buffer[] = [];
  let length = 0;
  await new Promise<void>((resolve, reject) => {
    let isSettled = false;
    const settle = (outcome: () => void) => {
      isSettled = true;
      clearInterval(watch);
      request.off("data", take).off("end", end).off("error", fail).off("close", disconnect);
      outcome();
    };
    const refuse = (problem: Problem) => {
      // The rest of the body is read and discarded, so that the client gets to read the response.
      settle(() => reject(problem));
      request.on("error", ignoreDisconnect).resume();
    };
    const take = (chunk: Buffer) => {
      length += chunk.length;
      if (length > bytesMax) refuse(tooLarge(reportedMax));
      else if (!share.take(chunk.length)) refuse(memoryExhausted());
      else chunks.push(chunk);
    };
    let lengthBefore = 0;
    const checkRate = () => {
      if (isSettled) return;
      if (length - lengthBefore < rateMin.bytesMin) refuse(tooSlow(rateMin));
      lengthBefore = length;
    };
    // setImmediate runs after the sockets are read, so that bytes that arrived while the process was busy count.
    const watch = setInterval(() => setImmediate(checkRate), rateMin.windowMs);
    const end = () => settle(resolve);
    const fail = (error: Error) => settle(() => reject(new ClientDisconnected({ cause: error })));
    const disconnect = () => settle(() => reject(new ClientDisconnected()));
    request.on("data", take).on("end", end).on("error", fail).on("close", disconnect);
  });
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length);
}

async function decompress(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  try {
    return await unzip(bytes, { maxOutputLength: bytesMax });
  } catch (error) {
    if (error instanceof RangeError) throw tooLarge(bytesMax);
    throw invalid([{ field: "body", message: "is not valid gzip" }]);
  }
}

/** The client already has its response. */
function ignoreDisconnect(): void {}
