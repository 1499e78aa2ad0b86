import { existsSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CLIENT_KEY, SERVER_CERTIFICATE } from "../src/collectors/lines/certificates.fixture.ts";
import { openTestServerIn } from "./api-server.ts";
import { authorized, makeFolder, startTocsin, tocsin, tocsinProcess } from "./tocsin.ts";

let folder: string;
let server: { readonly address: string; stop(): Promise<unknown> } | undefined;
beforeEach(() => {
  folder = makeFolder();
  server = undefined;
});
afterEach(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const here = (...args: string[]) => tocsin([...args, "--data-dir", folder]);
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await here(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout.trimEnd().split("\n")).toHaveLength(1);
  return JSON.parse(stdout);
};
const status = async (key: string) => (await fetch(`${server!.address}/v1/events`, authorized(key))).status;

const CREATE = ["keys", "create", "--name", "ci", "--scopes", "events:read,events:write", "--plan", "enterprise"];

describe("keys", () => {
  test("create prints one JSON object and nothing else, without a server", async () => {
    const made = await json(...CREATE);
    expect(made).toMatchObject({
      id: expect.stringMatching(/^key_[0-9a-f]{32}$/),
      name: "ci",
      scopes: ["events:read", "events:write"],
      plan: "enterprise",
      expires_at: null,
    });
    expect(made.key).toMatch(new RegExp(`^tsn_${made.id}_[0-9a-f]{64}$`));
    expect(await json("keys", "list")).toEqual([expect.objectContaining({ id: made.id, last_used_at: null })]);
  });

  test("create makes a missing data folder, private to this user, and says so; other commands report that there is none", async () => {
    const missing = join(folder, "not", "yet");
    const list = await tocsin(["keys", "list", "--data-dir", missing]);
    expect(list).toMatchObject({ code: 1, stderr: expect.stringMatching(/no data folder .*yet[^]*--data-dir/) });
    const made = await tocsin([...CREATE, "--data-dir", missing]);
    const told = expect.stringMatching(/no data folder .*yet: it was created[^]*another folder does not know this key/);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^tsn_/), stderr: told });
    expect(await tocsin([...CREATE, "--data-dir", missing])).toMatchObject({ code: 0, stderr: "" });
    expect(statSync(missing).mode & 0o777).toBe(0o700);
    expect(statSync(join(missing, "keys.db")).mode & 0o777).toBe(0o600);
  });

  test("a key created, rotated or revoked beside a running server takes effect with the next request", async () => {
    server = await openTestServerIn(folder);
    const made = await json(...CREATE);
    expect(await status(made.key)).toBe(200);
    const rotated = await json("keys", "rotate", made.id);
    expect(rotated.id).toBe(made.id);
    expect([await status(made.key), await status(rotated.key)]).toEqual([401, 200]);
    const graced = await json("keys", "rotate", made.id, "--grace", "1h");
    expect([await status(rotated.key), await status(graced.key)]).toEqual([200, 200]);
    expect(rotated.previous_until).toBeNull();
    expect(Date.parse(graced.previous_until) - Date.now()).toBeGreaterThan(3_500_000);
    await json("keys", "revoke", made.id);
    expect([await status(rotated.key), await status(graced.key)]).toEqual([401, 401]);
  });

  test("a key created before the start is the only one: no first key is generated", async () => {
    const made = await json(...CREATE);
    const process = (server = await startTocsin(folder));
    expect(await status(made.key)).toBe(200);
    expect(process.output()).not.toContain("tsn_");
  });

  test("list shows a table and never a secret", async () => {
    expect((await here("keys", "list")).stdout).toMatch(/no keys yet.*keys create/);
    const made = await json("keys", "create", "--name", "short", "--scopes", "all", "--expires", "1d");
    await json("keys", "revoke", made.id);
    const { stdout } = await here("keys", "list");
    expect(stdout).toMatch(new RegExp(`^id .*name .*scopes.*\\n${made.id} +short +starter +all .* revoked `));
    expect(stdout).not.toContain(made.key.split("_").at(-1));
  });

  test("list, rotate and revoke report lost keys without creating a file; create says that it starts anew", async () => {
    expect(await here("demo", "--events", "10", "--flows", "0")).toMatchObject({ code: 0 });
    rmSync(join(folder, "keys.db"));
    const gone = /has events but no keys\.db: its keys are lost\.\nRestore keys\.db .*\ntocsin keys create/;
    for (const command of [["list"], ["list", "--json"], ["rotate", "key_none"], ["revoke", "key_none"]]) {
      const outcome = await here("keys", ...command);
      expect(outcome).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(gone) });
    }
    expect(existsSync(join(folder, "keys.db"))).toBe(false);
    const { stderr } = await here(...CREATE);
    expect(stderr).toMatch(/had events but no keys\.db.*created with this key/);
    expect((await here("keys", "list")).stdout.trim().split("\n")).toHaveLength(2);
  });

  test.each([
    [["keys", "rotate", "key_none"], 1, /no key key_none.*keys list/],
    [["keys", "revoke", "key_none"], 1, /no key key_none/],
    [["keys", "create", "--name", "x"], 2, /--scopes/],
    [
      ["keys", "create", "--name", "x", "--scopes", "events:reed"],
      2,
      /Unknown scope: events:reed. Allowed: all, events:read/,
    ],
    [["keys", "create", "--name", "x", "--scopes", "all", "--plan", "gold"], 2, /starter, pro, enterprise/],
    [["keys", "create", "--name", "x", "--scopes", "all", "--expires", "soon"], 2, /90d/],
    [["keys", "create", "--name", "x", "--scopes", "all", "--expires", "999999999d"], 2, /year 9999/],
    [["keys", "create", "--name", "x", "--scopes", "all,events:read"], 2, /all includes every scope: use it alone/],
    [["keys", "create", "--name", "x", "--scopes", "all,events:reed"], 2, /Unknown scope: events:reed\./],
    [["keys", "create", "--name", "x", "--scopes", "events:read,"], 2, /Unknown scope: an empty one\./],
    [
      ["keys", "create", "--name", "", "--scopes", "foo", "--plan", "gold", "--expires", "yesterday"],
      2,
      /4 faults:\n {2}--name "": [^]*--scopes "foo": [^]*--plan "gold": [^]*--expires "yesterday": /,
    ],
    [["keys", "create", "--name", "", "--scopes", "all"], 2, /1 to 100/],
    [["keys", "create", "--name", "System ", "--scopes", "all"], 2, /must not be system/],
    [["keys", "create", "--name", "a\nb", "--scopes", "all"], 2, /control or format characters/],
    [["keys", "rotate", "x", "--grace", "2y"], 2, /30s, 10m or 24h/],
  ] as const)("%j is refused with a remedy", async (args, code, message) => {
    const outcome = await here(...args);
    expect(outcome.stderr).toMatch(message);
    expect(outcome).toMatchObject({ code, stdout: "" });
  });
});

describe("help", () => {
  test.each([
    "",
    "serve",
    "keys",
    "keys create",
    "keys list",
    "keys rotate",
    "keys revoke",
    "rules",
    "rules test",
    "rules lint",
    "rules import",
    "check",
    "demo",
    "rebuild",
    "docs",
    "version",
  ])("tocsin %s --help", async (command) => {
    const { code, stdout } = await tocsin([...command.split(" ").filter(Boolean), "--help"]);
    expect(stdout).toMatch(new RegExp(`^Usage: tocsin ${command}`.trimEnd()));
    expect(code).toBe(0);
  });

  test("serve shows the default of a list setting", async () => {
    const { stdout } = await tocsin(["serve", "--help"]);
    const help = stdout.replaceAll(/\s+/g, " ");
    for (const flag of ["--collectors-addresses", "--flows-addresses"])
      expect(help).toMatch(new RegExp(`${flag} <value> [^()]*\\(default: 0\\.0\\.0\\.0,::\\)`));
    expect(help).toMatch(/--collectors-allowed-senders <value> [^()]*\(default: none\)/);
  });

  test.each([
    [["srve"], /unknown command 'srve'[^]*serve[^]*--help/],
    [["serve", "--prot", "1"], /unknown option '--prot'[^]*--port[^]*--help/],
    [["demo", "much"], /too many arguments[^]*--help/],
    [["demo", "--events", "many"], /whole number from 1/],
    [[], /Usage: tocsin/],
  ])("%j is wrong usage: exit code 2 and a remedy", async (args, message) => {
    const { code, stderr } = await tocsin(args);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });
});

describe("check", () => {
  test("reports each setting with its origin and creates nothing", async () => {
    const dataDir = join(folder, "none");
    const { code, stdout } = await tocsin(["check", "--data-dir", dataDir, "--json"], { TOCSIN_PORT: "9000" });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: true,
      faults: [],
      settings: {
        port: { value: 9000, origin: "variable TOCSIN_PORT" },
        data_dir: { value: dataDir, origin: "flag --data-dir" },
        host: { value: "127.0.0.1", origin: "default" },
      },
    });
    expect((await tocsin(["check", "--data-dir", dataDir])).stdout).toMatch(
      /data_dir +\S+none +flag[^]*Nothing is wrong/,
    );
  });

  test("reports every fault at once, as text and as JSON", async () => {
    const env = { TOCSIN_PORT: "no", TOCSIN_RATE_LIMITS: "no" };
    const text = await tocsin(["check"], env);
    expect(text.stdout).toMatch(/2 faults[^]*port[^]*rate_limits \(variable TOCSIN_RATE_LIMITS\): must be on or off/);
    expect(text.code).toBe(2);
    const { stdout, code } = await tocsin(["check", "--json"], env);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, faults: [{ path: "port" }, { path: "rate_limits" }] });
    expect(code).toBe(2);
  });

  const check = (env: Record<string, string>, ...args: string[]) =>
    tocsin(["check", "--data-dir", folder, ...args], env);

  test("reports every setting that the service could not use", async () => {
    const file = (name: string, content: string) => {
      writeFileSync(join(folder, name), content);
      return join(folder, name);
    };
    const env = {
      TOCSIN_SYSLOG_TLS_PORT: "6514",
      TOCSIN_COLLECTORS_TLS_CERTIFICATE: file("server.pem", SERVER_CERTIFICATE),
      TOCSIN_COLLECTORS_TLS_KEY: file("other.pem", CLIENT_KEY),
      TOCSIN_EVE_SOCKET: file("socket", "no socket"),
      TOCSIN_EVE_FILE: folder,
      TOCSIN_ENRICHMENT_GEO_FILE: file("places.mmdb", "no places"),
      TOCSIN_ENRICHMENT_LISTS: `bad=${join(folder, "no-such-list")}`,
      TOCSIN_NOTIFICATIONS_SLACK_URL: "https://10.0.0.7/hook",
      TOCSIN_NOTIFICATIONS_WEBHOOK_URL: "http://localhost:9/hook",
      TOCSIN_NOTIFICATIONS_WEBHOOK_SECRET: "0123456789abcdef0123456789abcdef",
    };
    const { stdout, code } = await check(env, "--json");
    const { ok, faults } = JSON.parse(stdout) as { ok: boolean; faults: { path: string; message: string }[] };
    expect(faults.map(({ path }) => path).sort()).toEqual([
      "collectors.tls_certificate",
      "enrichment.geo_file",
      "enrichment.lists",
      "eve_file",
      "eve_socket",
      "notifications.slack_url",
      "notifications.webhook_url",
    ]);
    expect({ ok, code }).toEqual({ ok: false, code: 2 });
    const missing = await check({ ...env, TOCSIN_COLLECTORS_TLS_KEY: join(folder, "no-such-key") }, "--json");
    expect(missing.stdout).toMatch(/"collectors.tls_key","message":"The file in collectors.tls_key cannot be read/);
    const allowed = { TOCSIN_NOTIFICATIONS_SLACK_URL: "https://10.0.0.7/hook" };
    const fine = await check({ ...allowed, TOCSIN_NOTIFICATIONS_PRIVATE_ADDRESSES: "on" });
    expect(fine).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing is wrong") as string });
  });

  test("reports addresses that this machine does not have, and ports that are set twice", async () => {
    const elsewhere = "192.0.2.1";
    const faults = async (env: Record<string, string>) => {
      const { stdout, code } = await check(env, "--json");
      const { faults: found } = JSON.parse(stdout) as { faults: { path: string; message: string }[] };
      expect(code).toBe(found.length > 0 ? 2 : 0);
      return found.map(({ path, message }) => `${path}: ${message}`);
    };
    const listening = { TOCSIN_NETFLOW_PORT: "2055", TOCSIN_SYSLOG_PORT: "5514" };
    const none = `this machine has no address ${elsewhere}`;
    expect(await faults({ TOCSIN_HOST: elsewhere })).toEqual([`host: ${none}`]);
    expect(await faults({ TOCSIN_HOST: "no-such-host.invalid" })).toEqual([
      expect.stringMatching(/^host: no-such-host\.invalid cannot be listened on/),
    ]);
    const both = { TOCSIN_FLOWS_ADDRESSES: `127.0.0.1,${elsewhere}`, TOCSIN_COLLECTORS_ADDRESSES: elsewhere };
    expect(await faults({ ...listening, ...both })).toEqual([
      `flows.addresses: ${none}`,
      `collectors.addresses: ${none}`,
    ]);
    expect(await faults(both), "nothing listens there").toEqual([]);
    expect(await faults({ ...listening, TOCSIN_EVE_PORT: "5514", TOCSIN_IPFIX_PORT: "2055" })).toEqual([
      "ipfix_port: is 2055, and so is netflow_port: each needs a UDP port of its own",
      "eve_port: is 5514, and so is syslog_port: each needs a TCP port of its own",
    ]);
    expect(await faults({ ...listening, TOCSIN_FLOWS_ADDRESSES: "0.0.0.0,127.0.0.1" })).toEqual([
      expect.stringMatching(/^flows\.addresses: has 0\.0\.0\.0 and 127\.0\.0\.1/),
    ]);
    const apart = { TOCSIN_COLLECTORS_ADDRESSES: "127.0.0.1", TOCSIN_FLOWS_ADDRESSES: "127.0.0.2" };
    expect(await faults({ ...listening, ...apart, TOCSIN_IPFIX_PORT: "5514" })).toEqual([]);
    expect(await faults({ ...listening, TOCSIN_HOST: "127.9.9.9", TOCSIN_PORT: "2055", TOCSIN_EVE_PORT: "0" })).toEqual(
      [],
    );
  });

  test("shows only the host of a list's URL", async () => {
    const env = { TOCSIN_ENRICHMENT_LISTS: "feed=https://lists.example/list.txt?key=secret" };
    for (const { stdout, code } of [await check(env), await check(env, "--json")]) {
      expect(code).toBe(0);
      expect(stdout).toContain("feed=https://lists.example/(hidden)");
      expect(stdout).not.toContain("key=secret");
    }
  });

  test("warns about links that do not work from another machine", async () => {
    const env = { TOCSIN_NOTIFICATIONS_EMAIL_HOST: "mail.example", TOCSIN_NOTIFICATIONS_EMAIL_FROM: "a@b.example" };
    const told = { ...env, TOCSIN_NOTIFICATIONS_EMAIL_TO: "c@d.example", TOCSIN_HOST: "0.0.0.0" };
    const warned = await check(told);
    expect(warned.stdout).toMatch(/1 warning:\n {2}notifications\.console_url \(default\): links[^]*Nothing is wrong/);
    expect(warned.code).toBe(0);
    const url = { TOCSIN_NOTIFICATIONS_CONSOLE_URL: "https://tocsin.example" };
    expect((await check({ ...told, ...url })).stdout).not.toContain("warning");
    expect((await check({ TOCSIN_HOST: "0.0.0.0" })).stdout).not.toContain("warning");
  });

  test("reports an unusable data folder", async () => {
    writeFileSync(join(folder, "file"), "");
    symlinkSync(join(folder, "nowhere"), join(folder, "link"));
    for (const [dataDir, message] of [
      [join(folder, "file"), /data_dir \(flag --data-dir\): .*file is not a folder/],
      [join(folder, "link"), /data_dir .*link is a link that leads nowhere/],
      ["/proc/tocsin/data", /data_dir .*no folder can be made in \/proc/],
    ] as const) {
      const { stdout, code } = await tocsin(["check", "--data-dir", dataDir]);
      expect(stdout).toMatch(message);
      expect(code).toBe(2);
    }
  });
});

describe("an unusable data folder", () => {
  test.each([
    ["/proc/tocsin/data", /\/proc\/tocsin\/data cannot be created there[^]*--data-dir/],
    ["link", /link is not a folder[^]*--data-dir/],
    ["file", /file is not a folder[^]*--data-dir/],
    ["a".repeat(300), /cannot be created there[^]*--data-dir/],
  ])("%s is refused at once, without a stack trace", async (path, message) => {
    writeFileSync(join(folder, "file"), "");
    symlinkSync(join(folder, "nowhere"), join(folder, "link"));
    const dataDir = path.startsWith("/") ? path : join(folder, path);
    for (const command of [["serve", "--port", "0"], CREATE, ["rebuild"]]) {
      const { code, stderr } = await tocsin([...command, "--data-dir", dataDir]);
      expect(stderr).toMatch(message);
      expect(stderr).not.toContain("    at ");
      expect(code).toBe(1);
    }
  });
});

test("refuses an endless configuration file instead of reading it forever", async () => {
  const { code, stdout } = await tocsin(["check", "--config", "/dev/zero"]);
  expect(stdout).toMatch(/config .*is larger than/);
  expect(code).toBe(2);
});

test("a data folder keeps its platform word once it has events: serve, demo and check name it", async () => {
  await json("keys", "create", "--name", "x", "--scopes", "events:read");
  const acme = ["--platform", "acme"];
  expect((await here("check", ...acme)).code).toBe(0);
  await demoJson("--events", "20", "--flows", "0", ...acme);
  for (const command of [["serve", "--port", "0"], ["demo"]]) {
    const { code, stderr } = await here(...command);
    expect(stderr).toMatch(/platform word is acme, not platform[^]*--platform acme[^]*--data-dir/);
    expect(code).toBe(2);
  }
  const checked = await here("check");
  expect(checked.stdout).toMatch(/platform \(default\): must be acme,.*it is platform/);
  expect(checked.code).toBe(2);
  expect(await here("check", ...acme)).toMatchObject({ code: 0 });
  expect((await here("rebuild", ...acme)).code).toBe(0);
});

test("demo fills the store, rebuild recreates its columns, and a server shows all of it", async () => {
  const summary = await demoJson("--events", "3000", "--days", "3");
  expect(summary).toMatchObject({ events: 3000, seed: 1 });
  const rebuilt = await here("rebuild", "--json");
  expect(JSON.parse(rebuilt.stdout)).toMatchObject({ events: 3000 });
  expect(rebuilt.stderr).toMatch(/100%/);

  const { key } = await json("keys", "create", "--name", "x", "--scopes", "events:read");
  server = await openTestServerIn(folder);
  const answer = await fetch(`${server.address}/v1/events/search`, {
    method: "POST",
    headers: { ...authorized(key).headers, "content-type": "application/json" },
    body: JSON.stringify({ query: {}, aggs: { sources: { terms: { field: "source" } } }, limit: 0 }),
  });
  const { data } = (await answer.json()) as {
    data: { total: number; aggregations: { sources: { buckets: unknown[] } } };
  };
  expect(data.total).toBe(3000);
  expect(data.aggregations.sources.buckets).toHaveLength(5);
});

test("demo and rebuild are refused while a server uses the folder", async () => {
  server = await openTestServerIn(folder);
  for (const command of ["demo", "rebuild"]) {
    const { code, stderr } = await here(command);
    expect(stderr).toMatch(/in use by another tocsin.*--data-dir/);
    expect(code).toBe(1);
  }
});

test("demo refuses a folder that has real events, unless told to add to them", async () => {
  const before = await openTestServerIn(folder);
  const body = { type: "note", source: "custom", data: {} };
  expect((await before.call("POST", "/v1/events", { body })).status).toBe(201);
  await before.stop();
  const small = ["--events", "20", "--flows", "0"];
  const refused = await here("demo", ...small);
  expect(refused.stderr).toMatch(/has events that are not from a demo. Nothing was written[^]*--data-dir[^]*--add/);
  expect(refused.code).toBe(2);
  expect(await demoJson(...small, "--add")).toMatchObject({ events: 20 });
  const after = await openTestServerIn(folder);
  server = after;
  expect(await after.store.events.count()).toBe(21);
});

test("demo refuses a second run and says how to serve and remove the first", async () => {
  await demoJson("--events", "20", "--flows", "0");
  const { code, stderr } = await here("demo");
  expect(stderr).toMatch(/has a demo already[^]*demo --serve[^]*rm -r/);
  expect(code).toBe(2);
  writeFileSync(join(folder, "demo.json"), '{"complete":false}');
  const interrupted = await here("demo", "--serve");
  expect(interrupted.stderr).toMatch(/was interrupted. Remove it: rm -r/);
  expect(interrupted.code).toBe(1);
});

test("demo ignores the data folder of the configuration", async () => {
  const real = join(folder, "real");
  const { stdout } = await tocsin(["demo", "--help"], { TOCSIN_DATA_DIR: real });
  expect(stdout).toMatch(/--data-dir.*\(default: demo-data\)/s);
  const own = ["--data-dir", join(folder, "own"), "--json", "--events", "20", "--flows", "0"];
  const made = await tocsin(["demo", ...own], { TOCSIN_DATA_DIR: real });
  expect(JSON.parse(made.stdout)).toMatchObject({ data_dir: join(folder, "own") });
  expect(existsSync(real)).toBe(false);
});

test("demo ends at the given time, which is not in the future", async () => {
  const end = new Date(Date.now() - 86_400_000).toISOString();
  expect(await demoJson("--events", "20", "--flows", "0", "--end", end)).toMatchObject({ to: end });
  const { code, stderr } = await here("demo", "--end", "2999-01-01");
  expect(stderr).toMatch(/not in the future/);
  expect(code).toBe(2);
});

test("demo refuses more days than retention keeps", async () => {
  const { code, stderr } = await tocsin(["demo", "--days", "9", "--data-dir", folder], {
    TOCSIN_RETENTION_EVENTS_DAYS: "8",
  });
  expect(stderr).toMatch(/kept for 8 days/);
  expect(code).toBe(2);
});

test("an older Node gets a message with a remedy", async () => {
  const older = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } })';
  const { code, stdout, stderr } = await tocsinProcess(["version"], {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(older)}`,
  });
  expect(stderr).toMatch(/needs Node 26, and this is 20\.1\.0\.\n.*npm start/);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
});

test("version prints text and JSON", async () => {
  const facts = JSON.parse((await tocsin(["version", "--json"])).stdout);
  expect(facts).toMatchObject({ version: expect.stringMatching(/^\d+\.\d+\.\d+/), node: process.versions.node });
  expect((await tocsin(["version"])).stdout).toContain(`tocsin ${facts.version}`);
  expect((await tocsin(["--version"])).stdout).toBe(`${facts.version}\n`);
});

test("docs/api.md and docs/configuration.md match the code", async () => {
  expect(await tocsin(["docs", "--check"])).toMatchObject({ code: 0, stderr: "" });
});

async function demoJson(...args: string[]) {
  const { code, stdout, stderr } = await here("demo", ...args, "--json");
  expect(stderr).toMatch(/^Storing events: \d+%/);
  expect(code).toBe(0);
  return JSON.parse(stdout);
}
