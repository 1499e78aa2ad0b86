import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createPlainServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  CA,
  CLIENT_CERTIFICATE,
  CLIENT_KEY,
  SERVER_CERTIFICATE,
  SERVER_KEY,
} from "../../collectors/lines/certificates.fixture.ts";
import { OpenSearchClient, type OpenSearchConnection } from "./opensearch-client.ts";

// What reaches a server: OpenSearch's security plugin is not among the jars that tests run, so that these look at the requests.

let folder: string;
let end: () => Promise<void>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tocsin-client-"));
  end = async () => undefined;
});
afterEach(async () => {
  await end();
  rmSync(folder, { recursive: true, force: true });
});

interface Received {
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** A server that answers with this status, and what it received. */
async function listen(status: (received: Received) => number, tls?: ServerOptions) {
  const received: Received[] = [];
  const answer: RequestListener = async (request, response) => {
    const one = { headers: request.headers, body: Buffer.concat(await Array.fromAsync(request)) };
    received.push(one);
    response.writeHead(status(one), { "content-type": "application/json" }).end('{"large":9007199254740993}');
  };
  const server = tls ? createServer(tls, answer) : createPlainServer(answer);
  await once(server.listen(0, "127.0.0.1"), "listening");
  end = async () => {
    server.closeAllConnections();
    await once(server.close(), "close");
  };
  return { received, url: `${tls ? "https" : "http"}://localhost:${(server.address() as AddressInfo).port}` };
}

/** The answer, or the error. */
async function ask(connection: OpenSearchConnection): Promise<unknown> {
  const client = new OpenSearchClient({ retriesMax: 0, ...connection }, new Registry());
  try {
    return await client.send({ operation: "test" }, { method: "POST", path: "/x", body: { n: 1 } });
  } catch (error) {
    return error;
  } finally {
    await client.close();
  }
}

test("answers keep every digit of large integers", async () => {
  const { url } = await listen(() => 200);
  expect(await ask({ addresses: [url] })).toEqual({ large: 9007199254740993n });
});

test("a user has a password, which may be in a file", async () => {
  const { url, received } = await listen(() => 200);
  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, "from-file\n");
  await ask({ addresses: [url], username: "tocsin", password: "given" });
  await ask({ addresses: [url], username: "tocsin", passwordFile });
  const sent = received.map(({ headers }) => Buffer.from(headers.authorization!.slice(6), "base64").toString());
  expect(sent).toEqual(["tocsin:given", "tocsin:from-file"]);
});

test("a token that was replaced is read after a refusal", async () => {
  const { url, received } = await listen(({ headers }) => (headers.authorization === "Bearer second" ? 200 : 401));
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "first");
  const client = new OpenSearchClient({ addresses: [url], tokenFile, retriesMax: 0 }, new Registry());
  const send = () => client.send({ operation: "test" }, { method: "GET", path: "/" });
  await expect(send()).rejects.toMatchObject({ reason: "failed", message: expect.stringContaining("credentials") });
  writeFileSync(tokenFile, "second");
  await send();
  expect(received.map(({ headers }) => headers.authorization)).toEqual([
    "Bearer first",
    "Bearer first",
    "Bearer second",
  ]);
  await client.close();
});

test("TLS verifies the server by the given authority, and shows the client's certificate", async () => {
  const tls = { cert: SERVER_CERTIFICATE, key: SERVER_KEY, ca: CA, requestCert: true, rejectUnauthorized: true };
  const { url, received } = await listen(() => 200, tls);
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const own = { tlsCertificate: file("client.pem", CLIENT_CERTIFICATE), tlsKey: file("client.key", CLIENT_KEY) };
  expect(await ask({ addresses: [url], ...own })).toMatchObject({ name: "StoreUnavailable", reason: "failed" });
  expect(await ask({ addresses: [url], tlsCa: file("ca.pem", CA) })).toMatchObject({ name: "StoreUnavailable" });
  expect(received).toEqual([]);
  expect(await ask({ addresses: [url], tlsCa: file("ca.pem", CA), ...own })).toHaveProperty("large");
});

test("requests are compressed if that is wanted", async () => {
  const { url, received } = await listen(() => 200);
  await ask({ addresses: [url], compression: true });
  expect(received[0]!.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(received[0]!.body).toString()).toBe('{"n":1}');
});

test("requests are signed for AWS", async () => {
  const { url, received } = await listen(() => 200);
  const file = join(folder, "credentials");
  writeFileSync(
    file,
    "[other]\naws_access_key_id = NO\n[default]\naws_access_key_id = AKEXAMPLE\naws_secret_access_key = s3\n",
  );
  const before = process.env["AWS_SHARED_CREDENTIALS_FILE"];
  process.env["AWS_SHARED_CREDENTIALS_FILE"] = file;
  try {
    await ask({ addresses: [url], awsRegion: "eu-central-1" });
  } finally {
    if (before === undefined) delete process.env["AWS_SHARED_CREDENTIALS_FILE"];
    else process.env["AWS_SHARED_CREDENTIALS_FILE"] = before;
  }
  expect(received[0]!.headers.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKEXAMPLE\/\d{8}\/eu-central-1\/es\/aws4_request, SignedHeaders=/,
  );
});
