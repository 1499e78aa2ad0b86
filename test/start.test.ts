import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestServerIn } from "./api-server.ts";
import { makeKey } from "./server-process.ts";
import {
  authorized,
  COLLECTORS_OFF,
  main,
  makeFolder,
  startTocsin,
  tocsin,
  tocsinProcess,
  type Running,
} from "./tocsin.ts";

let folder: string;
let running: Running[];
const start = async (...args: Parameters<typeof startTocsin>) => {
  const started = await startTocsin(...args);
  running.push(started);
  return started;
};

beforeEach(() => {
  folder = makeFolder();
  running = [];
});
afterEach(() => {
  for (const { child } of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

const refused = async (args: string[], message: RegExp, code = 1, env = {}, run = tocsin) => {
  const outcome = await run(["serve", "--data-dir", folder, ...args], env);
  expect(outcome.stderr).toMatch(message);
  expect(outcome.stderr).not.toMatch(/^ +at /m);
  expect(outcome.code).toBe(code);
  return outcome;
};

/** What a process on Linux was started with. */
const readProcess = ({ child }: Running) => ({
  flags: readFileSync(`/proc/${child.pid}/cmdline`, "utf8").split("\0"),
  variables: readFileSync(`/proc/${child.pid}/environ`, "utf8").split("\0"),
});

const KEY = /tsn_key_[0-9a-f]{32}_[0-9a-f]{64}/;

describe("a first start without a data folder, with links that do not work from another machine", () => {
  let above: string;
  let dataDir: string;
  let server: Running;
  beforeAll(async () => {
    above = makeFolder();
    dataDir = join(above, "not", "there", "yet");
    const env = { TOCSIN_NOTIFICATIONS_SLACK_URL: "https://hooks.example/x", TOCSIN_HOST: "0.0.0.0" };
    server = await startTocsin(dataDir, { env });
  });
  afterAll(() => {
    server.child.kill("SIGKILL");
    rmSync(above, { recursive: true, force: true });
  });

  test("prints a key with every scope and a curl command that works as pasted", async () => {
    await expect.poll(server.output).toMatch(/curl .*\n/);
    const line = /^ *(curl .*)$/m.exec(server.output())![1]!;
    const answer = JSON.parse(execFileSync("sh", ["-c", line.replace("curl", "curl -sS")], { encoding: "utf8" }));
    expect(answer).toMatchObject({ data: [], pagination: { total: 0 } });
    const keys = await fetch(`${server.address}/v1/keys`, authorized(KEY.exec(server.output())![0]));
    expect(await keys.json()).toMatchObject({
      data: [{ plan: "enterprise", scopes: expect.arrayContaining(["keys:manage"]) }],
    });
  });

  test("exposes every counter, and nothing else, with the suffix _total", async () => {
    const metrics = await (await fetch(`${server.address}/metrics`)).text();
    const types = [...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => ({
      name: name!,
      type: type!,
    }));
    expect(types.length).toBeGreaterThan(50);
    expect(types.filter(({ name, type }) => name.endsWith("_total") !== (type === "counter"))).toEqual([]);
    expect(types.filter(({ name }) => /_(counter|gauge|histogram|summary)(_|$)/.test(name))).toEqual([]);
  });

  test("creates the data folder and its parents", async () => {
    expect((await fetch(`${server.address}/healthz`)).status).toBe(200);
    expect(readdirSync(dataDir)).toContain("keys.db");
  });

  test("warns about the links", () => {
    expect(server.output()).toMatch(/"level":"warn".*notifications\.console_url: links in messages/);
  });

  test("each thread and each engine says what memory it holds", async () => {
    const metrics = await (await fetch(`${server.address}/metrics`)).text();
    const held = (metric: string) =>
      Number(new RegExp(`^${metric.replace(/[{}]/g, "\\$&")} (\\d+)$`, "m").exec(metrics)?.[1]);
    for (const thread of ["columns", "journal-writer", "detection"]) {
      const used = held(`tocsin_thread_heap_bytes{thread="${thread}",kind="used"}`);
      expect(used, thread).toBeGreaterThan(1e6);
      expect(held(`tocsin_thread_heap_bytes{thread="${thread}",kind="total"}`), thread).toBeGreaterThanOrEqual(used);
    }
    for (const engine of ["columns", "flows"])
      expect(held(`tocsin_engine_memory_bytes{engine="${engine}"}`), engine).toBeGreaterThanOrEqual(0);
  });

  test.runIf(process.platform === "linux")(
    "has few arenas of malloc, a fixed threshold and small semi-spaces, in the process that was started",
    () => {
      const { flags, variables } = readProcess(server);
      expect(variables).toContain("MALLOC_ARENA_MAX=2");
      expect(variables).toContain("MALLOC_MMAP_THRESHOLD_=131072");
      expect(flags).toContain("--max-semi-space-size=8");
    },
  );

  test("keeps a second instance from the data folder", async () => {
    await refused(["--port", "0", "--data-dir", dataDir], /in use by another tocsin \(process \d+\).*--data-dir/);
  });
});

describe("the first start", () => {
  test("prints the key once: not in the log, not on the next start, not in the data folder", async () => {
    const first = await start(folder, { args: ["--log-level", "trace"] });
    await expect.poll(first.output).toMatch(/curl .*\n/);
    const key = KEY.exec(first.output())![0];
    await fetch(`${first.address}/v1/events`, authorized(key));
    expect(await first.stop()).toBe(0);
    const logged = first
      .output()
      .split("\n")
      .filter((line) => line.startsWith("{"));
    expect(logged.filter((line) => KEY.test(line))).toEqual([]);
    const second = await start(folder);
    expect(await second.stop()).toBe(0);
    expect(second.output()).not.toMatch(/tsn_/);
    const secret = key.split("_").at(-1)!;
    expect(() => execFileSync("grep", ["-rqa", secret, folder])).toThrow();
  });
});

describe("stopping", () => {
  test.each(["SIGTERM", "SIGINT"] as const)("%s closes the store and ends with exit code 0", async (signal) => {
    const server = await start(folder);
    expect(await server.stop(signal)).toBe(0);
    expect(server.output()).toContain('"msg":"stopped"');
  });

  test("acknowledged events are there after a restart", async () => {
    const key = await makeKey(folder);
    const server = await start(folder);
    const body = JSON.stringify({ type: "door_forced", source: "custom", data: { door: "east" } });
    const headers = { ...authorized(key).headers, "content-type": "application/json" };
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => fetch(`${server.address}/v1/events`, { method: "POST", body, headers })),
    );
    const ids = await Promise.all(
      answers.map(async (answer) => ((await answer.json()) as { data: { id: string } }).data.id),
    );
    expect(await server.stop()).toBe(0);
    const again = await start(folder);
    for (const id of ids) expect((await fetch(`${again.address}/v1/events/${id}`, authorized(key))).status).toBe(200);
  });

  test("a client that stalls in the middle of its request does not delay the stop", async () => {
    const key = await makeKey(folder);
    const server = await start(folder);
    const socket = connect(Number(new URL(server.address).port), "127.0.0.1");
    const head = `POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`;
    socket.on("error", () => undefined).write(`${head}Content-Length: 1000\r\n\r\n{"type":`);
    await once(socket, "connect");
    await fetch(`${server.address}/healthz`);
    expect(await server.stop()).toBe(0);
    expect(server.output()).toContain('"msg":"stopped"');
    socket.destroy();
  });

  test("an unwritable log loses its lines and nothing else", async () => {
    const key = await makeKey(folder);
    const port = await freePort();
    const shell = `exec "$0" "$@" > /dev/full`;
    const server = spawn("sh", ["-c", shell, process.execPath, main, "serve", "--port", port, "--data-dir", folder], {
      env: { ...process.env, ...COLLECTORS_OFF },
    });
    const ended = once(server, "exit");
    const url = `http://127.0.0.1:${port}/v1/events`;
    const status = () =>
      fetch(url, authorized(key)).then(
        (answer) => answer.status,
        () => 0,
      );
    await expect.poll(status).toBe(200);
    for (let n = 0; n < 100; n++) expect(await status()).toBe(200);
    server.kill("SIGTERM");
    expect((await ended)[0]).toBe(0);
  });

  test("npm start forwards flags and signals", async () => {
    const server = await start(folder, { through: ["npm", "start", "--silent", "--"] });
    expect((await fetch(`${server.address}/healthz`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
    expect(await tocsin(["demo", "--events", "10", "--data-dir", folder]), "the folder is free").toMatchObject({
      code: 0,
    });
  });
});

/** Fills a folder with a day of events by serving it once. */
async function serveOneEvent(dataDir: string): Promise<void> {
  const server = await openTestServerIn(dataDir);
  const body = { type: "note", source: "custom", data: {} };
  expect((await server.call("POST", "/v1/events", { body })).status).toBe(201);
  await server.stop();
}

test("a start with events but no keys says so and does not count as the first", async () => {
  await serveOneEvent(folder);
  rmSync(join(folder, "keys.db"));
  const server = await start(folder);
  await expect.poll(() => server.output()).toMatch(KEY);
  expect(server.output()).toMatch(/has events but no keys.*earlier keys are lost/);
  expect(server.output()).not.toMatch(/first time/);
  expect(server.output()).toMatch(/"level":"warn".*keys\.db.*missing or empty/);
});

test("a start on a folder of demo events is the first one: it never had a key", async () => {
  expect(await tocsin(["demo", "--events", "10", "--flows", "0", "--data-dir", folder])).toMatchObject({ code: 0 });
  const server = await start(folder);
  await expect.poll(() => server.output()).toMatch(KEY);
  expect(server.output()).toMatch(/runs for the first time/);
  expect(server.output()).not.toMatch(/are lost|missing or empty/);
});

test("npm run demo fills its folder once and prints a key at every start", async () => {
  const through = ["npm", "run", "demo", "--silent", "--", "--events", "2000", "--flows", "500"];
  const first = await start(folder, { through });
  await expect.poll(() => first.output()).toMatch(KEY);
  const key = KEY.exec(first.output())![0];
  const alerts = async (address: string, secret: string) => fetch(`${address}/v1/alerts`, authorized(secret));
  const found = (await (await alerts(first.address, key)).json()) as { pagination: { total: number } };
  expect(found.pagination.total).toBeGreaterThan(5);
  expect(await first.stop()).toBe(0);
  const second = await start(folder, { through });
  await expect.poll(() => second.output()).toMatch(KEY);
  const later = KEY.exec(second.output())![0];
  const same = await (await alerts(second.address, later)).json();
  expect(same).toMatchObject({ pagination: { total: found.pagination.total } });
  expect((await alerts(second.address, key)).status, "the key of the earlier start").toBe(401);
});

describe("a start is refused with", () => {
  test("a flow collector's port in use", async () => {
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    const { port } = socket.address();
    const args = ["--port", "0", "--netflow-port", String(port), "--flows-addresses", "127.0.0.1"];
    await refused(
      args,
      new RegExp(`UDP port ${port} on 127.0.0.1, for netflow \\(setting netflow_port\\), is already in use`),
    );
    socket.close();
  });

  test("a line collector's port in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const args = ["--port", "0", "--collectors-addresses", "127.0.0.1", "--eve-port", String(port)];
    await refused(
      args,
      new RegExp(`TCP port ${port} on 127.0.0.1, for eve \\(setting eve_port\\), is already in use.*\n.*off`),
    );
    other.close();
  });

  test("a port in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    // In a process of its own, which ends although everything else was open already.
    await refused(["--port", String(port)], new RegExp(`Port ${port} .* in use.*\n.*--port`), 1, {}, tocsinProcess);
    other.close();
    const server = await start(folder);
    expect(await server.stop(), "the folder is free again").toBe(0);
  });

  test("an address that the machine does not have", async () => {
    await refused(["--host", "192.0.2.1", "--port", "0"], /no address.*\n.*--host/);
  });

  test("a data folder that is a file", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    await refused(["--data-dir", file], /not a folder.*\n.*--data-dir/);
    await refused(["--data-dir", join(file, "below")], /not a folder.*\n.*--data-dir/);
  });

  test("a full disk, at whichever file it fills up", async () => {
    // A limit on the size of each file, in blocks of 512 bytes, which SQLite sees in much the same way.
    for (const blocks of [8, 64]) {
      const command = [process.execPath, main, "serve", "--port", "0", "--data-dir", join(folder, String(blocks))];
      const limited = ["-c", `trap '' XFSZ; ulimit -f ${blocks}; exec "$@"`, "sh", ...command];
      const child = spawn("sh", limited, {
        env: { ...process.env, ...COLLECTORS_OFF },
        stdio: ["ignore", "ignore", "pipe"],
      });
      const [[code], stderr] = await Promise.all([once(child, "exit"), text(child.stderr)]);
      expect(stderr).toMatch(/The disk of the data folder .* is full.*\nFree some space/);
      expect(stderr).not.toMatch(/^ +at /m);
      expect(code).toBe(1);
    }
  });

  test("a damaged file in the data folder, which every command that opens it names with a remedy", async () => {
    await serveOneEvent(folder);
    const [day] = readdirSync(join(folder, "events"));
    const spoil = (path: string) => writeFileSync(path, randomBytes(statSync(path).size));
    const cut = (path: string) => truncateSync(path, statSync(path).size / 2);
    const damages: [string, (path: string) => void, string][] = [
      [join("events", day!), spoil, "rebuild"],
      [join("events", day!), cut, "rebuild"],
      ["state.db", spoil, "demo"],
      ["keys.db", spoil, "keys list"],
      ["cases.db", spoil, "demo"],
    ];
    for (const [name, damage, command] of damages) {
      const copy = join(folder, "copy");
      const path = join(copy, name);
      rmSync(copy, { recursive: true, force: true });
      for (const part of ["events", "state.db", "keys.db", "cases.db"])
        cpSync(join(folder, part), join(copy, part), { recursive: true });
      damage(path);
      const message = new RegExp(`The file ${path} is damaged \\(.*\\)\\.\n.*move it away`);
      await refused(["--port", "0", "--data-dir", copy], message);
      const other = await tocsin([...command.split(" "), "--data-dir", copy]);
      expect(other.stderr, `${command} with ${name}`).toMatch(message);
      expect(other).toMatchObject({ code: 1, stderr: expect.not.stringMatching(/^ +at /m) });
    }
    // As the message says: without the file, the rest is served.
    rmSync(join(folder, "copy"), { recursive: true });
    rmSync(join(folder, "events", day!));
    const server = await start(folder);
    expect(await server.stop()).toBe(0);
  });

  test("a wrong configuration, with every fault at once", async () => {
    const file = join(folder, "wrong.yaml");
    writeFileSync(file, "port: high\nretention: { event_days: 1 }\n");
    const { stderr } = await refused(["--config", file, "--log-level", "loud"], /4 faults/, 2, { TOCSIN_PROT: "1" });
    expect(stderr).toMatch(/port \(file .*wrong.yaml\)/);
    expect(stderr).toMatch(/retention.event_days .* did you mean events_days\?/);
    expect(stderr).toMatch(/TOCSIN_PROT .* did you mean TOCSIN_PORT\?/);
    expect(stderr).toMatch(/log_level \(flag --log-level\).* one of fatal/);
  });
});

test.runIf(process.platform === "linux")("the operator's own process limits stay", async () => {
  const env = { MALLOC_ARENA_MAX: "7", MALLOC_MMAP_THRESHOLD_: "1000000", NODE_OPTIONS: "--max-semi-space-size=16" };
  const { flags, variables } = readProcess(await start(folder, { env }));
  expect(variables).toContain("MALLOC_ARENA_MAX=7");
  expect(variables).toContain("MALLOC_MMAP_THRESHOLD_=1000000");
  expect(flags).not.toContain("--max-semi-space-size=8");
});

test("a start removes days that are past retention", async () => {
  await tocsin(["demo", "--events", "400", "--flows", "0", "--days", "4", "--data-dir", folder]);
  const key = await makeKey(folder);
  const server = await start(folder, { args: ["--retention-events-days", "1", "--retention-share-max", "100"] });
  const url = `${server.address}/v1/events?per_page=1`;
  const { pagination } = (await (await fetch(url, authorized(key))).json()) as { pagination: { total: number } };
  expect(pagination.total).toBeGreaterThan(0);
  expect(pagination.total).toBeLessThan(300);
});

async function freePort(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return String(port);
}
