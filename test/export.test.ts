import { existsSync, readdirSync, readlinkSync, rmSync, truncateSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { exportsFolder } from "../src/store/files/layout.ts";
import { readCsv } from "../src/exports/csv-reader.fixture.ts";
import { makeKey, startServer, type ServerProcess } from "./server-process.ts";

// Exports as a client of the real server sees them.

const EVENTS = 30_000;
const RANGE = { from: "2020-01-01", to: "2100-01-01" };

let folder: string;
let dataDir: string;
let key: string;
let server: ServerProcess;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tocsin-export-"));
  dataDir = join(folder, "data");
  key = await makeKey(dataDir);
  server = await startServer({ dataDir });
  for (let at = 0; at < EVENTS; at += 5000) {
    const events = Array.from({ length: 5000 }, (_, n) => ({
      type: "probe",
      source: "custom",
      data: { n: at + n, note: "=HYPERLINK(1)", filler: "x".repeat(100) },
    }));
    expect((await call("POST", "/v1/events/batch", events)).status).toBe(200);
  }
});
afterAll(async () => {
  await server.end();
  await rm(folder, { recursive: true, force: true });
});

interface Job {
  readonly id: string;
  readonly status: string;
  readonly row_count: number | null;
  readonly size_bytes: number | null;
  readonly created_at: string;
  readonly expires_at: string;
  readonly completed_at: string | null;
  readonly download_url: string;
  readonly error: string | null;
}

function call(method: string, path: string, body?: unknown): Promise<Response> {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  return fetch(server.address + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function dataOf(response: Response): Promise<Job> {
  return ((await response.json()) as { data: Job }).data;
}

async function create(body: object): Promise<Job> {
  const response = await call("POST", "/v1/events/export", { time_range: RANGE, ...body });
  expect(response.status).toBe(201);
  return dataOf(response);
}

async function completed({ id }: Job): Promise<Job> {
  for (;;) {
    const job = await dataOf(await call("GET", `/v1/events/exports/${id}`));
    if (job.status === "completed") return job;
    expect(job.error).toBeNull();
    await sleep(20);
  }
}

it("can be requested, polled and downloaded", async () => {
  const asked = await create({ format: "csv" });
  expect(asked).toMatchObject({
    status: "pending",
    row_count: null,
    size_bytes: null,
    completed_at: null,
    error: null,
  });
  expect(Date.parse(asked.expires_at) - Date.parse(asked.created_at)).toBe(86_400_000);

  const job = await completed(asked);
  expect(job.row_count).toBe(EVENTS);
  const response = await call("GET", job.download_url);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toContain("text/csv");
  expect(response.headers.get("content-disposition")).toContain(`.csv"`);
  const content = await response.text();
  expect(Buffer.byteLength(content)).toBe(job.size_bytes);
  expect(readCsv(content)).toHaveLength(EVENTS + 1);
});

it("contains the events of the query with the selected fields, neutralised for spreadsheets", async () => {
  const query = { bool: { must: [{ field: "raw.n", lt: 2 }] } };
  const job = await completed(await create({ format: "csv", query, fields: ["raw.n", "raw.note"] }));
  const rows = readCsv(await (await call("GET", job.download_url)).text());
  expect(rows).toEqual([
    ["raw.n", "raw.note"],
    ["0", "'=HYPERLINK(1)"],
    ["1", "'=HYPERLINK(1)"],
  ]);
});

it("answers a download with 404 and a retry time until it is completed", async () => {
  const [, second] = [await create({ format: "csv" }), await create({ format: "csv" })];
  const early = await call("GET", second.download_url);
  expect(early.status).toBe(404);
  expect(Number(early.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await early.json()).toMatchObject({
    error: { code: "not_found", message: expect.stringContaining("not completed") },
  });
  await completed(second);
  expect((await call("GET", second.download_url)).status).toBe(200);
});

it("answers a download with 404 and no retry time once its file is missing or truncated", async () => {
  const fileOf = ({ id }: Job) => join(exportsFolder(dataDir), `${id}.ndjson`);
  const damages: ((path: string) => void)[] = [(path) => rmSync(path), (path) => truncateSync(path, 1000)];
  for (const damage of damages) {
    const job = await completed(await create({ format: "ndjson" }));
    damage(fileOf(job));
    const response = await call("GET", job.download_url);
    expect(response.status).toBe(404);
    expect(response.headers.get("retry-after")).toBeNull();
    expect(await response.json()).toMatchObject({
      error: { code: "not_found", message: expect.stringMatching(/failed and has no file.*create the export again/) },
    });
    expect(await dataOf(await call("GET", `/v1/events/exports/${job.id}`))).toMatchObject({
      status: "failed",
      size_bytes: null,
      error: expect.stringContaining("gone or damaged"),
    });
    expect(existsSync(fileOf(job))).toBe(false);
  }
});

it("is removed with its file when it is cancelled", async () => {
  const job = await completed(await create({ format: "ndjson" }));
  const path = join(exportsFolder(dataDir), `${job.id}.ndjson`);
  expect(existsSync(path)).toBe(true);
  expect((await call("DELETE", `/v1/events/exports/${job.id}`)).status).toBe(200);
  for (const gone of [`/v1/events/exports/${job.id}`, job.download_url])
    expect((await call("GET", gone)).status).toBe(404);
  expect((await call("DELETE", `/v1/events/exports/${job.id}`)).status).toBe(404);
  await vi.waitFor(() => expect(existsSync(path)).toBe(false), 100_000);
});

it.skipIf(!existsSync("/proc/self/fd"))("closes the file when a client disconnects during the download", async () => {
  const job = await completed(await create({ format: "json" }));
  const openFiles = () => {
    const fds = `/proc/${server.pid}/fd`;
    return readdirSync(fds).filter((fd) => {
      try {
        return readlinkSync(join(fds, fd)).includes(job.id);
      } catch {
        return false; // closed in the meantime
      }
    });
  };
  for (let n = 0; n < 5; n++) {
    const request = get(server.address + job.download_url, { headers: { authorization: `Bearer ${key}` } });
    await new Promise<void>((resolve) => {
      request.on("response", (response) => {
        response.once("data", () => {
          response.pause();
          expect(openFiles().length).toBeGreaterThan(0);
          response.destroy();
          resolve();
        });
      });
    });
  }
  await vi.waitFor(() => expect(openFiles()).toEqual([]), { timeout: 100_000 });
  expect((await call("GET", "/healthz")).status).toBe(200);
  expect((await (await call("GET", job.download_url)).text()).length).toBe(job.size_bytes);
});

it("starts again if the server is killed while it runs", async () => {
  const asked = await create({ format: "csv" });
  await vi.waitFor(() => expect(readdirSync(exportsFolder(dataDir))).toContain(`${asked.id}.part`), {
    timeout: 100_000,
    interval: 1,
  });
  await server.end("SIGKILL");
  server = await startServer({ dataDir });
  const job = await completed(asked);
  expect(job.row_count).toBe(EVENTS);
  expect(readCsv(await (await call("GET", job.download_url)).text())).toHaveLength(EVENTS + 1);
  expect(readdirSync(exportsFolder(dataDir)).filter((name) => name.endsWith(".part"))).toEqual([]);
});
