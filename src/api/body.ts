import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { Fault } from "../lib/fault.ts";
import { parseJson, withoutByteOrderMark, type JsonOptions } from "../lib/json.ts";
import { invalid, Problem } from "./problems.ts";
import { noRoom, type Share } from "./room.ts";

// Bodies: read whole within a limit, unpacked within the same limit, and parsed strictly.

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

/** The body, unpacked; undefined when the request has none. */
export async function readBody(request: IncomingMessage, rules: BodyRules, share: Share): Promise<Body | undefined> {
  if (!hasBody(request)) return undefined;
  const type = mediaType(request, rules);
  const packed = isPacked(request);
  const bytesMax = packed ? rules.bytesMax + GZIP_OVERHEAD_BYTES_MAX : rules.bytesMax;
  const bytes = await readBytes(request, { bytesMax, shownMax: rules.bytesMax, share });
  if (bytes.length === 0) return undefined;
  if (!packed) return { type, bytes };
  const unpacked = await unpack(bytes, rules.bytesMax);
  if (!share.take(unpacked.length)) throw noRoom();
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

interface ReadRules {
  readonly bytesMax: number;
  /** The limit as the client is told it. */
  readonly shownMax: number;
  readonly share: Share;
}

async function readBytes(request: IncomingMessage, { bytesMax, shownMax, share }: ReadRules): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > bytesMax) throw tooLarge(shownMax);
  if (request.destroyed) throw new ClientGone();
  const chunks: Buffer[] = [];
  let length = 0;
  await new Promise<void>((resolve, reject) => {
    const settle = (outcome: () => void) => {
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
