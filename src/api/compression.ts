import { pipeline, type Readable, type Transform } from "node:stream";
import { buffer } from "node:stream/consumers";
import { promisify } from "node:util";
import { constants, createGzip, createZstdCompress, gzip, zstdCompress } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { acceptedEncoding, type Encoding } from "./content-encoding.ts";

// Compresses responses, in threads of libuv's pool. The event stream is left alone: a message must not wait in a compressor
// for the next one.

declare module "fastify" {
  interface FastifyContextConfig {
    /** The response contains a secret: its compressed size would tell something about it (BREACH). */
    hasSecret?: boolean;
  }
}

/** Smaller responses are sent as they are: docs/performance.md has the measurement. */
export const COMPRESSED_BYTES_MIN = 4096;
/** Output is collected in pieces, each of which is a turn of the event loop; a large piece costs more to allocate. */
const PIECE_BYTES_MIN = 4 * 1024;
const PIECE_BYTES_MAX = 128 * 1024;
/** About how much of the size remains, from above. */
const SHARE_LEFT = 0.25;
const COMPRESSIBLE = /^(?:application\/(?:json|x-ndjson|javascript|yaml)|text\/(?!event-stream)|image\/svg\+xml)/;
/** Files of the documentation, which are the same for everybody and compressed once. */
const CACHED_MAX = 32;

const GZIP = { level: 1 };
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
const gzipWhole = promisify(gzip);
const zstdWhole = promisify(zstdCompress);

const WHOLE: Readonly<Record<Encoding, (content: Buffer) => Promise<Buffer>>> = {
  gzip: (content) => gzipWhole(content, { ...GZIP, chunkSize: pieceBytes(content) }),
  zstd: (content) => zstdWhole(content, { ...ZSTD, chunkSize: pieceBytes(content) }),
};
const STREAM: Readonly<Record<Encoding, () => Transform>> = {
  gzip: () => createGzip(GZIP),
  zstd: () => createZstdCompress(ZSTD),
};

function pieceBytes({ length }: Buffer): number {
  return Math.min(PIECE_BYTES_MAX, Math.max(PIECE_BYTES_MIN, Math.ceil(length * SHARE_LEFT)));
}

export interface CompressionOptions {
  /** True for a response that depends on its path alone. Nobody needs a key for these, so they are compressed only once. */
  readonly isConstant: (request: FastifyRequest) => boolean;
}

export function addCompression(app: FastifyInstance, { isConstant }: CompressionOptions): void {
  const cache = new CompressedFiles();
  app.addHook("onSend", async (request, reply, payload: unknown) => {
    const encoding = encodingFor(request, reply, payload);
    if (encoding === undefined) return payload;
    const compress = async () => WHOLE[encoding](await contentOf(payload));
    if (isConstant(request)) {
      // The answer to HEAD may have no content, and must not become that of GET.
      const isWhole = reply.statusCode === 200 && request.method === "GET";
      const compressed = isWhole && cache.find(`${encoding} ${request.url}`, compress);
      if (!compressed) return payload;
      return sendCompressed(reply, encoding, await compressed, payload);
    }
    if (!isStream(payload)) return sendCompressed(reply, encoding, await compress(), payload);
    reply.header("Content-Encoding", encoding).removeHeader("Content-Length");
    // The answer to HEAD has no content, so there is nothing to compress.
    if (request.method === "HEAD") return payload;
    // A failure of one ends the other. The framework sees it on the stream that it sends.
    return pipeline(payload, STREAM[encoding](), () => undefined);
  });
}

function sendCompressed(reply: FastifyReply, encoding: Encoding, content: Buffer, payload: unknown): Buffer {
  reply.header("Content-Encoding", encoding).header("Content-Length", content.length);
  // A file whose compressed content was known has been opened in vain.
  if (isStream(payload)) payload.destroy();
  return content;
}

/** Files that anybody may request. Each is compressed once; otherwise a stranger could keep the machine busy with them. */
class CompressedFiles {
  readonly #files = new Map<string, Promise<Buffer>>();

  /** Undefined if the file is to be sent as it is: the cache is full, or the path has a query, of which there are endless variants. */
  find(key: string, compress: () => Promise<Buffer>): Promise<Buffer> | undefined {
    const known = this.#files.get(key);
    if (known || key.includes("?") || this.#files.size >= CACHED_MAX) return known;
    const compressed = compress();
    this.#files.set(key, compressed);
    compressed.catch(() => this.#files.delete(key));
    return compressed;
  }
}

/** The encoding of the response; undefined if it is sent as it is. */
function encodingFor(request: FastifyRequest, reply: FastifyReply, payload: unknown): Encoding | undefined {
  const type = reply.getHeader("content-type");
  if (typeof type !== "string" || !COMPRESSIBLE.test(type) || reply.hasHeader("content-encoding")) return undefined;
  addVary(reply);
  const encoding = acceptedEncoding(request.headers["accept-encoding"]);
  if (encoding === undefined || request.routeOptions.config.hasSecret) return undefined;
  // A range counts bytes of the content as it is, and so does a strong tag.
  const tag = reply.getHeader("etag");
  const isTagged = typeof tag === "string" && !tag.startsWith("W/");
  if (request.headers.range !== undefined || reply.statusCode === 206 || isTagged) return undefined;
  return sizeOf(payload, reply) >= COMPRESSED_BYTES_MIN ? encoding : undefined;
}

function addVary(reply: FastifyReply): void {
  const before = reply.getHeader("vary");
  if (typeof before === "string" && /\baccept-encoding\b/i.test(before)) return;
  reply.header("Vary", typeof before === "string" ? `${before}, Accept-Encoding` : "Accept-Encoding");
}

function sizeOf(payload: unknown, reply: FastifyReply): number {
  if (typeof payload === "string") return payload.length;
  if (Buffer.isBuffer(payload)) return payload.length;
  return isStream(payload) ? Number(reply.getHeader("content-length") ?? Infinity) : 0;
}

function isStream(payload: unknown): payload is Readable {
  return typeof (payload as Readable | null | undefined)?.pipe === "function";
}

function contentOf(payload: unknown): Promise<Buffer> | Buffer {
  if (typeof payload === "string") return Buffer.from(payload);
  return isStream(payload) ? buffer(payload) : (payload as Buffer);
}
