import { connect } from "node:net";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import fastify from "fastify";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { addCompression, COMPRESSED_BYTES_MIN } from "./compression.ts";
import { keyEndpoints } from "./key-endpoints.ts";

const DECODERS = { gzip: gunzipSync, zstd: zstdDecompressSync } as const;
const PATIENCE = { timeout: 100_000, interval: 20 };

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
  const events = Array.from({ length: 200 }, (_, nth) => ({
    type: "note",
    source: "custom",
    data: { text: `line ${nth} – ${"ä".repeat(40)}` },
  }));
  expect((await server.call("POST", "/v1/events/batch", { body: events })).status).toBe(200);
});
afterAll(() => server.close());

interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** The bytes as they were sent. */
function ask(path: string, headers: Record<string, string> = {}, method = "GET", body?: string): Promise<RawAnswer> {
  const authorization = `Bearer ${server.key.secret}`;
  const options = { host: "127.0.0.1", port: server.port, path, method, headers: { authorization, ...headers } };
  return new Promise((resolve, reject) => {
    const sent = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, bytes: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const LIST = "/v1/events?per_page=100";
const dataOf = (bytes: Buffer) => (JSON.parse(bytes.toString()) as { data: unknown }).data;

describe.each(["gzip", "zstd"] as const)("with %s", (encoding) => {
  const accept = { "accept-encoding": encoding };

  test("a large answer is compressed and says the same", async () => {
    const [plain, packed] = [await ask(LIST), await ask(LIST, accept)];
    expect(packed.headers["content-encoding"]).toBe(encoding);
    expect(packed.headers["vary"]).toBe("Accept-Encoding");
    expect(Number(packed.headers["content-length"])).toBe(packed.bytes.length);
    expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 3);
    expect(dataOf(DECODERS[encoding](packed.bytes))).toEqual(dataOf(plain.bytes));
  });

  test("HEAD has the headers of GET and no content", async () => {
    const [get, head] = [await ask(LIST, accept), await ask(LIST, accept, "HEAD")];
    expect(head.bytes).toHaveLength(0);
    expect(head.headers["content-encoding"]).toBe(encoding);
    const difference = Number(head.headers["content-length"]) - Number(get.headers["content-length"]);
    // The request id and the time differ.
    expect(Math.abs(difference)).toBeLessThan(20);
  });

  test("HEAD of a file of the documentation does not change what GET answers", async () => {
    const path = "/docs/static/swagger-ui.css";
    const head = await ask(path, accept, "HEAD");
    const [plain, packed] = [await ask(path), await ask(path, accept)];
    expect(packed.headers["content-encoding"]).toBe(encoding);
    expect(DECODERS[encoding](packed.bytes).equals(plain.bytes)).toBe(true);
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
  });

  test("the documentation is compressed, and the OpenAPI document says the same", async () => {
    for (const path of ["/openapi.json", "/docs/static/swagger-ui-bundle.js"]) {
      const [plain, packed, again] = [await ask(path), await ask(path, accept), await ask(path, accept)];
      expect(packed.headers["content-encoding"], path).toBe(encoding);
      expect(DECODERS[encoding](packed.bytes).equals(plain.bytes), path).toBe(true);
      expect(again.bytes.equals(packed.bytes), path).toBe(true);
    }
  });
});

test("an answer without Accept-Encoding is sent as it is, with its length, and says that it could differ", async () => {
  const { headers, bytes } = await ask(LIST);
  expect(headers["content-encoding"]).toBeUndefined();
  expect(headers["vary"]).toBe("Accept-Encoding");
  expect(Number(headers["content-length"])).toBe(bytes.length);
});

test("a small answer is not compressed", async () => {
  const { headers, bytes } = await ask("/v1/events?per_page=1", { "accept-encoding": "gzip" });
  expect(bytes.length).toBeLessThan(COMPRESSED_BYTES_MIN);
  expect(headers["content-encoding"]).toBeUndefined();
});

test("an answer with a secret is never compressed: its size would tell something about the secret", async () => {
  const app = fastify();
  addCompression(app, { isConstant: () => false });
  const large = { text: "x".repeat(2 * COMPRESSED_BYTES_MIN) };
  app.get("/open", () => large);
  app.get("/secret", { config: { hasSecret: true } }, () => large);
  const encodingOf = async (url: string) =>
    (await app.inject({ url, headers: { "accept-encoding": "gzip" } })).headers["content-encoding"];
  expect(await encodingOf("/open")).toBe("gzip");
  expect(await encodingOf("/secret")).toBeUndefined();
  await app.close();
});

test("the calls that answer with a new key are marked as such", () => {
  const marked = keyEndpoints({} as never).filter(({ hasSecret }) => hasSecret);
  expect(marked.map(({ operationId }) => operationId)).toEqual(["createKey", "rotateKey"]);
});

test("a range of a file is sent as it is", async () => {
  const headers = { "accept-encoding": "gzip", range: "bytes=0-9999" };
  const { status, headers: got, bytes } = await ask("/docs/static/swagger-ui-bundle.js", headers);
  expect(status).toBe(206);
  expect(got["content-encoding"]).toBeUndefined();
  expect(bytes).toHaveLength(10_000);
});

test("a path with a query is not compressed for people without a key", async () => {
  const { status, headers } = await ask("/docs/static/swagger-ui-bundle.js?1", { "accept-encoding": "gzip" });
  expect(status).toBe(200);
  expect(headers["content-encoding"]).toBeUndefined();
});

test("a download of an export is compressed on the way, except for Parquet, which is compressed already", async () => {
  const accept = { "accept-encoding": "gzip" };
  const contents: Record<string, string> = {};
  for (const format of ["csv", "ndjson", "parquet"]) {
    const body = { format, time_range: { from: "2026-01-01", to: "2099-01-01" } };
    const { download_url } = (await server.call("POST", "/v1/events/export", { body })).body.data;
    const download = await vi.waitFor(async () => {
      const answer = await ask(download_url, accept);
      expect(answer.status).toBe(200);
      return answer;
    }, PATIENCE);
    if (format === "parquet") {
      expect(download.headers["content-encoding"]).toBeUndefined();
      expect(Number(download.headers["content-length"])).toBe(download.bytes.length);
      continue;
    }
    expect(download.headers["content-encoding"]).toBe("gzip");
    expect(download.headers["content-length"]).toBeUndefined();
    const plain = await ask(download_url);
    expect(Number(plain.headers["content-length"])).toBe(plain.bytes.length);
    contents[format] = gunzipSync(download.bytes).toString();
    expect(contents[format]).toBe(plain.bytes.toString());
    const head = await ask(download_url, accept, "HEAD");
    expect(head.headers["content-encoding"]).toBe("gzip");
    expect(head.headers["content-length"]).toBeUndefined();
  }
  expect(contents["ndjson"]!.split("\n").length).toBeGreaterThan(200);
});

test("the event stream is not compressed, so that a message does not wait for the next one", async () => {
  const socket = connect(server.port, "127.0.0.1");
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => (received += text));
  const lines = ["GET /v1/stream HTTP/1.1", "Host: x", `Authorization: Bearer ${server.key.secret}`];
  socket.write([...lines, "Accept-Encoding: gzip, zstd", "", ""].join("\r\n"));
  await vi.waitFor(() => expect(received).toMatch(/^HTTP\/1.1 200[^]*text\/event-stream/), PATIENCE);
  expect(received).not.toMatch(/content-encoding/i);
  const body = { type: "marked", source: "custom", data: { marker: "in-the-stream" } };
  expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
  await vi.waitFor(() => expect(received).toContain("in-the-stream"), PATIENCE);
  socket.destroy();
});

test("a client that leaves during a compressed download does not keep the file open", async () => {
  const body = { format: "csv", time_range: { from: "2026-01-01", to: "2099-01-01" } };
  const { id, download_url } = (await server.call("POST", "/v1/events/export", { body })).body.data;
  await vi.waitFor(async () => expect((await ask(download_url)).status).toBe(200), PATIENCE);
  const authorization = `Bearer ${server.key.secret}`;
  await new Promise<void>((resolve) => {
    const headers = { authorization, "accept-encoding": "gzip" };
    const sent = httpRequest({ host: "127.0.0.1", port: server.port, path: download_url, headers }, (response) => {
      response.on("close", () => resolve()).on("error", () => undefined);
      response.destroy();
    });
    sent.on("error", () => undefined);
    sent.end();
  });
  expect((await server.call("DELETE", `/v1/events/exports/${id}`)).status).toBe(200);
  expect(server.log.filter(({ level }) => level === "error")).toEqual([]);
});
