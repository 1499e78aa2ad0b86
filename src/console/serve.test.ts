import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gzipSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { rule } from "../api/rule-endpoints.fixture.ts";
import { describeFaults, loadSettings } from "../config/config.ts";
import { startHttpPeer } from "../notify/peers.fixture.ts";
import { openTestServer, type TestServer } from "../../test/api-server.ts";

const INDEX = "<!doctype html><title>Console</title><script type=module src=/assets/app-1a2b.js></script>";
const SCRIPT = "document.title = 'started';".repeat(50);
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

async function makeBuild(files: Record<string, string | Buffer>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-console-"));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
  }
  return folder;
}

let folder: string;
let server: TestServer;
beforeAll(async () => {
  folder = await makeBuild({
    "index.html": INDEX,
    "index.html.br": brotliCompressSync(INDEX),
    "favicon.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "assets/app-1a2b.js": SCRIPT,
    "assets/app-1a2b.js.br": brotliCompressSync(SCRIPT),
    "assets/app-1a2b.js.gz": gzipSync(SCRIPT),
    "assets/inter-3c4d.woff2": Buffer.from([0, 1, 2, 255]),
    ".built": "5eCr3t",
    ".vite/manifest.json": "{}",
  });
  await symlink("/etc/hostname", join(folder, "assets", "link.txt"));
  server = await openTestServer({ consoleFolder: folder, settings: { anonymousPerMinute: 5 } });
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** Sends the path as it is; a URL parser would resolve its dots. */
function ask(
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
  port = server.port,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port, method, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, bytes: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject).end();
  });
}

describe("the console", () => {
  test("has one page, at / and at each path that a browser navigates to", async () => {
    for (const path of ["/", "/index.html", "/alerts?status=open", "/entity/ip/192.0.2.17", "/v1x", "/-/x"]) {
      const { status, headers, bytes } = await ask(path, HTML);
      expect([path, status, bytes.toString()]).toEqual([path, 200, INDEX]);
      expect(headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": POLICY,
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-frame-options": "DENY",
        "x-request-id": expect.stringMatching(/^req_/),
      });
    }
    expect((await ask("/")).bytes.toString(), "also for a program").toBe(INDEX);
    expect((await ask("/", HTML, "HEAD")).bytes).toHaveLength(0);
  });

  test("has files that are cached for good if their name has a hash", async () => {
    const script = await ask("/assets/app-1a2b.js?x=1");
    expect(script.bytes.toString()).toBe(SCRIPT);
    expect(script.headers).toMatchObject({
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "public, max-age=31536000, immutable",
      "content-security-policy": POLICY,
      vary: "Accept-Encoding",
    });
    expect((await ask("/assets/inter-3c4d.woff2")).headers["content-type"]).toBe("font/woff2");
    expect((await ask("/assets/inter-3c4d.woff2")).bytes).toEqual(Buffer.from([0, 1, 2, 255]));
    expect((await ask("/favicon.svg")).headers).toMatchObject({
      "cache-control": "no-cache",
      "content-type": "image/svg+xml; charset=utf-8",
    });
  });

  test("sends compressed copies to clients that accept them", async () => {
    const get = async (encodings: string) => {
      const answer = await ask("/assets/app-1a2b.js", { "accept-encoding": encodings });
      return { ...answer, encoding: answer.headers["content-encoding"] };
    };
    const brotli = await get("gzip, deflate, br, zstd");
    expect([brotli.encoding, brotliDecompressSync(brotli.bytes).toString()]).toEqual(["br", SCRIPT]);
    const gzip = await get("gzip;q=0.5, br;q=0");
    expect([gzip.encoding, gunzipSync(gzip.bytes).toString()]).toEqual(["gzip", SCRIPT]);
    expect((await get("identity")).encoding).toBeUndefined();
    expect((await ask("/favicon.svg", { "accept-encoding": "br" })).headers["content-encoding"]).toBeUndefined();
    expect(new Set([brotli, gzip, await get("")].map(({ headers }) => headers.etag)).size).toBe(3);
  });

  test("answers 304 to a client that has the file", async () => {
    const { etag } = (await ask("/", HTML)).headers;
    const again = await ask("/", { ...HTML, "if-none-match": `"other", W/${etag}` });
    expect([again.status, again.bytes.length, again.headers.etag]).toEqual([304, 0, etag]);
    expect((await ask("/", { ...HTML, "if-none-match": '"other"' })).status).toBe(200);
  });

  test("is outside the rate limits, also for many files, and in the log and the metrics by its name", async () => {
    const statuses = await Promise.all(Array.from({ length: 30 }, () => ask("/assets/app-1a2b.js")));
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([200]));
    expect(statuses[0]!.headers).not.toHaveProperty("x-ratelimit-limit");
    expect(server.log.at(-1)).toMatchObject({ route: "console", status: 200 });
    expect((await ask("/metrics")).bytes.toString()).toContain('method="GET",route="console",status="200"');
  });
});

describe("nothing else", () => {
  let api: TestServer;
  beforeAll(async () => {
    api = await openTestServer({ consoleFolder: folder, settings: { rateLimits: false } });
  });
  afterAll(() => api.close());
  const get = (path: string, headers: Record<string, string> = HTML, method = "GET") =>
    ask(path, headers, method, api.port);

  test("is answered with the page: not the API, its pages, programs, other methods or missing files", async () => {
    for (const path of [
      "/v1",
      "/v1/",
      "/v1/nothing",
      "/api/v1/nothing",
      "/api",
      "/docs/nothing",
      "/healthz/x",
      "/%E0%A4%A",
    ]) {
      const { status, bytes } = await get(path);
      expect([path, status, JSON.parse(bytes.toString()).error.code]).toEqual([path, 404, "not_found"]);
    }
    expect((await get("/v1/events")).status).toBe(401);
    expect((await get("/healthz")).status).toBe(200);
    expect((await get("/docs")).bytes.toString()).toContain("swagger");
    expect((await get("/alerts", { accept: "*/*" })).status).toBe(404);
    expect((await get("/alerts", { accept: "application/json" })).status).toBe(404);
    expect((await get("/alerts", {})).status).toBe(404);
    expect((await get("/alerts", HTML, "POST")).status).toBe(404);
    expect((await get("/assets/app-0000.js")).status).toBe(404);
  });

  test("is read from the disk: no path leads out of the build or to its hidden files", async () => {
    const paths = [
      "/assets/../../../../../../etc/hostname",
      "/assets/..%2f..%2f..%2fetc%2fhostname",
      "/assets/%2e%2e/.built",
      "/assets/link.txt",
      "/assets/",
      "/assets/app-1a2b.js.br",
      "//etc/hostname",
      "/.built",
      "/.vite/manifest.json",
    ];
    for (const path of paths) {
      const plain = await get(path, {});
      expect([path, plain.status]).toEqual([path, 404]);
      const page = await get(path);
      if (page.status === 200) expect([path, page.bytes.toString()]).toEqual([path, INDEX]);
    }
  });
});

describe("without a build", () => {
  test("the page says why and what to do, and the API works", async () => {
    const cases: [Record<string, string>, RegExp][] = [
      [{}, /never built/],
      [{ ".failed": "vite: <b>no</b> memory" }, /vite: &lt;b&gt;no&lt;\/b&gt; memory/],
      [{ "assets/app.js": "1" }, /never built/],
    ];
    for (const [files, reason] of cases) {
      const empty = await makeBuild(files);
      const without = await openTestServer({ consoleFolder: empty });
      onTestFinished(async () => {
        await without.close();
        await rm(empty, { recursive: true });
      });
      for (const path of ["/", "/alerts"]) {
        const { status, headers, bytes } = await ask(path, HTML, "GET", without.port);
        expect(status).toBe(503);
        expect(headers).toMatchObject({ "content-security-policy": POLICY, "cache-control": "no-store" });
        expect(bytes.toString()).toMatch(reason);
        expect(bytes.toString()).toContain("node bin/build-console.mjs");
      }
      expect((await without.call("GET", "/v1/events")).status).toBe(200);
      expect(without.log).toContainEqual(expect.objectContaining({ msg: expect.stringContaining("not built") }));
    }
  });

  test("an earlier build is served if the last one failed", async () => {
    const older = await makeBuild({ "index.html": INDEX, ".failed": "no memory" });
    const served = await openTestServer({ consoleFolder: older });
    const { status, bytes } = await ask("/", HTML, "GET", served.port);
    await served.close();
    await rm(older, { recursive: true });
    expect([status, bytes.toString()]).toEqual([200, INDEX]);
    expect(served.log).toContainEqual(expect.objectContaining({ reason: "no memory", level: "warn" }));
  });
});

test("a message about an alert links to the console where one is served, and else to the API", async () => {
  for (const [consoleFolder, path] of [
    [folder, /^http:\/\/127\.0\.0\.1:\d+\/alerts\?alert=alt_\w+$/],
    [join(folder, "none"), /^http:\/\/127\.0\.0\.1:\d+\/v1\/alerts\/alt_\w+$/],
  ] as const) {
    const peer = await startHttpPeer();
    onTestFinished(() => peer.close());
    const loaded = loadSettings({ environment: {}, workingFolder: folder });
    if ("faults" in loaded) throw new Error(describeFaults(loaded.faults));
    const { notifications } = loaded.settings;
    const told = { ...notifications, webhookUrl: peer.url, webhookSecret: "s", privateAddresses: true };
    const service = await openTestServer({ consoleFolder, settings: { notifications: told } });
    onTestFinished(() => service.close());
    const made = await service.call("POST", "/v1/rules", {
      body: rule({ conditions: [{ field: "type", equals: "alarm" }], actions: [{ alert: { channels: ["webhook"] } }] }),
    });
    expect(made.status, made.text).toBe(201);
    await service.call("POST", "/v1/events", {
      body: { type: "alarm", source: "custom", severity: "low", data: {} },
    });
    await expect.poll(() => peer.received.length).toBe(1);
    const [{ url, api_url: apiUrl }] = peer.received[0]!.body.notifications;
    expect(url).toMatch(path);
    expect(apiUrl).toMatch(/\/v1\/alerts\/alt_\w+$/);
  }
});
