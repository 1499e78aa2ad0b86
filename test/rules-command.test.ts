import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeKey } from "./server-process.ts";
import { authorized, makeFolder, startTocsin, tocsin, type Running } from "./tocsin.ts";

let folder: string;
let server: Running | undefined;
beforeEach(() => {
  folder = makeFolder();
  server = undefined;
});
afterEach(() => {
  server?.child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

function write(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const RULE = `name: site.logins
description: Failed logins
severity: high
conditions: [{ field: type, equals: login_failure }]
window: 5m
threshold: { count: 3, group_by: raw.src_ip }
actions: [{ alert: { channels: [] } }]
tests:
  - name: three of them
    events: [{ type: login_failure, raw: { src_ip: 192.0.2.1 }, repeat: 3, every: 1s }]
    alerts: 1
`;

const SIGMA = `title: Odd tool
level: high
logsource: { category: process_creation }
detection: { selection: { "Image|endswith": '\\odd.exe' }, condition: selection }
---
title: Looks behind
logsource: { category: process_creation }
detection: { selection: { "CommandLine|re": '(?<=a)b' }, condition: selection }
`;

describe("rules test", () => {
  test("runs the tests in the given files and folders", async () => {
    write("rules/a.yaml", RULE);
    write("rules/deep/b.yml", RULE.replace("site.logins", "site.others"));
    const { code, stdout } = await tocsin(["rules", "test", join(folder, "rules")]);
    expect(stdout).toBe("2 tests of 2 rules passed, 0 failed.\n");
    expect(code).toBe(0);
  });

  test("fails with the location, the test and the actual result", async () => {
    const path = write("a.yaml", RULE.replace("alerts: 1", "alerts: 2"));
    const { code, stdout } = await tocsin(["rules", "test", path]);
    expect(stdout).toContain(`${path}:9: site.logins: "three of them" raises 1 alert, not 2: "Failed logins"`);
    expect(stdout).toMatch(/0 tests of 1 rule passed, 1 failed/);
    expect(code).toBe(1);
    const json = await tocsin(["rules", "test", path, "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout)).toMatchObject({ ok: false, tests: [{ rule: "site.logins", line: 9, ok: false }] });
  });

  test("shows the titles of twenty alerts and the number of the rest", async () => {
    const failing = (alerts: number) =>
      [
        "name: site.each",
        "description: Each one",
        'title: "At {{raw.door}}."',
        "severity: low",
        "conditions: [{ field: type, equals: opened }]",
        "dedup: { by: raw.door }",
        "actions: [{ alert: { channels: [] } }]",
        "tests:",
        "  - name: all",
        "    alerts: 0",
        "    events:",
        ...Array.from({ length: alerts }, (_, i) => `      - { type: opened, raw: { door: ${i} } }`),
      ].join("\n");
    const few = await tocsin(["rules", "test", write("few.yaml", failing(20))]);
    expect(few.stdout).toMatch(/raises 20 alerts, not 0: "At 0\.", .*, "At 19\."\n/);
    const path = write("many.yaml", failing(300));
    const many = await tocsin(["rules", "test", path]);
    expect(many.stdout).toMatch(/raises 300 alerts, not 0: "At 0\.", .*, "At 19\.", and 280 more\n/);
    const { tests } = JSON.parse((await tocsin(["rules", "test", path, "--json"])).stdout);
    expect(tests[0].faults).toEqual([expect.stringMatching(/"At 19\.", and 280 more$/)]);
  });

  test("names the line of a fault and of a duplicate name", async () => {
    const path = write("a.yaml", `${RULE.replace("equals", "eqals")}---\n${RULE}---\n${RULE}`);
    const { code, stdout } = await tocsin(["rules", "test", path]);
    expect(stdout).toContain(`${path}:4: conditions[0].eqals: is unknown`);
    expect(stdout).toMatch(/:25: name: site\.logins is also the name of the rule at .*:13/);
    expect(code).toBe(1);
  });
});

describe("rules lint", () => {
  test("shows hints, and fails on them only with --strict", async () => {
    const path = write("a.yaml", RULE.replace("group_by: raw.src_ip", "group_by: raw.src_ip, distinct: raw.src_ip"));
    const relaxed = await tocsin(["rules", "lint", path]);
    expect(relaxed.stdout).toMatch(/site\.logins +threshold\.distinct +is in group_by[^]*1 rule: 0 faults, 1 hint/);
    expect(relaxed.code).toBe(0);
    const strict = await tocsin(["rules", "lint", path, "--strict", "--json"]);
    expect(strict.code).toBe(1);
    expect(JSON.parse(strict.stdout)).toMatchObject({ ok: false, faults: [], hints: [{ path: "threshold.distinct" }] });
  });
});

test("rules lint checks Sigma rules as the import reads them; rules test skips them", async () => {
  const path = write("sigma.yml", SIGMA.replace("level: high", "level: odd"));
  const lint = await tocsin(["rules", "lint", path]);
  expect(lint.stdout).toContain(`${path}:6: detection.selection.CommandLine|re: `);
  expect(lint.stdout).toMatch(/Odd tool +level +odd is unknown: medium is used[^]*2 rules: 1 fault, 1 hint\./);
  expect(lint.code).toBe(1);
  const expand = SIGMA.replace(/---[^]*/, "")
    .replace("Image|endswith", "User|expand")
    .replace("\\odd.exe", "%admins%");
  const placeholder = write("expand.yml", expand);
  const mapping = write("mapping.yaml", "placeholders: { admins: [ann] }\n");
  expect(await tocsin(["rules", "lint", placeholder])).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/expand\.yml:\d+: detection\.selection\.User\|expand: .*admins/),
  });
  expect(await tocsin(["rules", "lint", placeholder, "--mapping", mapping])).toMatchObject({
    code: 0,
    stdout: "1 rule: 0 faults, 0 hints.\n",
  });
  const run = await tocsin(["rules", "test", path]);
  expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(/1 Sigma file skipped/) });
});

describe("rules import", () => {
  const listed = async (address: string, key: string) => {
    const answer = await fetch(`${address}/v1/rules?search=site.&per_page=100`, authorized(key));
    const { data } = (await answer.json()) as { data: { name: string; builtin: boolean; enabled: boolean }[] };
    return data.filter(({ builtin }) => !builtin);
  };

  test("writes to the data folder without a server; the service finds the rules there", async () => {
    const paths = [write("sigma.yml", SIGMA), write("own.yaml", RULE)];
    const data = join(folder, "data");
    const tried = await tocsin(["rules", "import", ...paths, "--dry-run", "--data-dir", data]);
    expect(tried.stdout).toMatch(
      /refused +place +reason\nLooks behind +\S+sigma\.yml:6 +detection\.selection\.CommandLine\|re: .*RE2/,
    );
    expect(tried.stdout).toMatch(/2 rules would be created, 1 refused/);
    expect(tried.code).toBe(0);
    expect(existsSync(data)).toBe(false);

    const made = await tocsin(["rules", "import", ...paths, "--disabled", "--json", "--data-dir", data]);
    expect({ code: made.code, stderr: made.stderr }).toEqual({ code: 0, stderr: "" });
    const result = JSON.parse(made.stdout);
    expect(result.imported.map(({ name }: { name: string }) => name).sort()).toEqual(["sigma.odd_tool", "site.logins"]);
    expect(result.refused).toEqual([expect.objectContaining({ name: "Looks behind" })]);

    for (const dryRun of [["--dry-run"], []]) {
      const again = await tocsin(["rules", "import", ...paths, ...dryRun, "--data-dir", data]);
      expect(again.stdout).toMatch(
        /site\.logins +\S+own\.yaml:1 +a rule named site\.logins already exists: .*PUT \/v1\/rules/,
      );
      expect(again.code).toBe(1);
    }

    const filter = write(
      "filter.yml",
      "title: Ours\nlogsource: { category: process_creation }\nfilter: { rules: any, s: { User: root }, condition: not s }\n",
    );
    for (const dryRun of [["--dry-run"], []]) {
      const filtered = await tocsin(["rules", "import", filter, ...dryRun, "--data-dir", data]);
      expect(filtered.stdout).toMatch(/added as an exception to previously imported rules: 1/);
      expect(filtered.code).toBe(0);
    }

    const key = await makeKey(data);
    server = await startTocsin(data);
    expect(await listed(server.address, key)).toEqual([
      expect.objectContaining({ name: "site.logins", enabled: false }),
    ]);
  });

  test("imports through a running service and reports file locations", async () => {
    const data = join(folder, "data");
    const key = await makeKey(data);
    server = await startTocsin(data);
    const paths = [write("0.yml", "# only a comment\n"), write("sigma.yml", SIGMA), write("own.yaml", RULE)];

    const beside = await tocsin(["rules", "import", ...paths, "--data-dir", data]);
    expect(beside).toMatchObject({ code: 1, stderr: expect.stringMatching(/--url <address> --key <key>/) });

    const env = { TOCSIN_URL: server.address, TOCSIN_KEY: key };
    const made = await tocsin(["rules", "import", ...paths], env);
    expect(made.stdout).toMatch(/Looks behind +\S+sigma\.yml:6 /);
    expect(made.stdout).toMatch(/2 rules created/);
    expect(made.code).toBe(0);
    expect(await listed(server.address, key)).toEqual([
      expect.objectContaining({ name: "site.logins", enabled: true }),
    ]);

    const tried = await tocsin(["rules", "import", ...paths.slice(1), "--dry-run", "--data-dir", data]);
    expect(tried.stdout).toMatch(/0 rules would be created, 3 refused/);

    const refused = await tocsin(["rules", "import", paths[1]!, "--url", server.address, "--key", "tsn_wrong"]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/The service refused: /) });
    const unmapped = async (mapping: string) =>
      (await tocsin(["rules", "import", paths[1]!, "--mapping", write("mapping.yaml", mapping)], env)).stderr.trimEnd();
    expect(await unmapped("colour: red\n")).toMatch(/^The service refused: mapping: line 1: .*$/);
    expect(await unmapped("colour: red\nshape: round\n")).toMatch(
      /^The service refused: the request has 2 faults; see details\n {2}mapping: line 1: .*\n {2}mapping: line 2: .*$/,
    );
    const unkeyed = await tocsin(["rules", "import", paths[1]!, "--url", server.address]);
    expect(unkeyed).toMatchObject({ code: 2, stderr: expect.stringMatching(/TOCSIN_KEY/) });
  });

  test("prints a remark of many rules once, and none for a rule that is refused", async () => {
    const rule = (title: string) =>
      SIGMA.split("---", 1)[0]!.replace("Odd tool", title).replace("_creation", "_creation, product: beos");
    const many = write("many.yml", Array.from({ length: 6 }, (_, i) => rule(`Rule ${i}`)).join("---\n"));
    const bad = write("bad.yml", rule("Bad").replace("condition: selection", "condition: nothing"));
    const one = write("one.yml", rule("Alone").replace("product: beos", "service: sysmon"));
    const { stdout } = await tocsin([
      "rules",
      "import",
      many,
      bad,
      one,
      "--dry-run",
      "--data-dir",
      join(folder, "none"),
    ]);
    const [remarks, refused] = stdout.split("\n\n");
    expect(remarks!.split("\n")).toEqual([
      expect.stringMatching(/^imported with a remark +place +remark$/),
      expect.stringMatching(/^6 rules +\S+many\.yml:1, \.\.\. +logsource\.product: beos is ignored/),
      expect.stringMatching(/^Alone +\S+one\.yml:1 +logsource\.service: sysmon is ignored/),
    ]);
    expect(refused).toMatch(/refused[^]*Bad +\S+bad\.yml:1 +detection\.condition: there is no selection nothing/);
  });

  test.each([
    [["rules", "import", "no-such-file.yaml"], 2, /no file or folder no-such-file\.yaml/],
    [["rules", "import", "x", "--format", "xml"], 2, /sigma, tocsin/],
    [["rules", "test"], 2, /missing required argument/],
    [["rules", "nope"], 2, /unknown command/],
  ] as const)("%j is refused with a remedy", async (args, code, message) => {
    const outcome = await tocsin(args);
    expect(outcome.stderr).toMatch(message);
    expect(outcome.code).toBe(code);
  });

  test("refuses a faulty mapping and reports an unreachable service", async () => {
    const sigma = write("sigma.yml", SIGMA);
    const mapping = write("mapping.yaml", "prefix: raw.\nfields: { a: nowhere }\n");
    const wrong = await tocsin(["rules", "import", sigma, "--mapping", mapping, "--dry-run"]);
    expect(wrong).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/The mapping has 1 fault:\n {2}line 2: fields\.a: not a field/),
    });
    expect(await tocsin(["rules", "lint", sigma, "--mapping", mapping])).toEqual(wrong);
    const nobody = await tocsin(["rules", "import", sigma, "--url", "http://127.0.0.1:9", "--key", "k"]);
    expect(nobody).toMatchObject({ code: 1, stderr: expect.stringMatching(/No service answers/) });
  });
});
