import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeFolder, tocsin } from "./tocsin.ts";

let folder: string;
beforeAll(() => void (folder = makeFolder()));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const DOOR = `format: acme-door
about: doors of Acme
match: { programs: [acmed] }
events:
  - pattern: "door {door:quoted} opened by {user:quoted}"
    type: door_opened
    severity: info
tests:
  - line: 'acmed[7]: door "Yard" opened by "ann"'
    type: door_opened
    fields: { door: Yard, user: ann }
`;
const VALUES = `format: acme-values
about: values of Acme
match: { contains: [acme=] }
pairs: {}
events:
  - when: { kind: door }
    type: door_opened
    severity: info
tests:
  - line: acme=1 kind=door
    type: door_opened
`;
const LINES = [
  '<13>Nov 15 10:00:00 gate acmed[7]: door "Yard" opened by "ann"',
  '<13>Nov 15 10:00:00 gate acmed[7]: door "Yard" closed by "ann"',
  "<13>Nov 15 10:00:00 gate acmed[7]: door Yard opened",
  "<13>Nov 15 10:00:00 gate shop[7]: sold out",
  "sshd[4242]: Failed password for root from 192.0.2.9 port 4711 ssh2",
];

describe("tocsin parse with a YAML file", () => {
  test("shows everything that it reads from a line, or why it reads nothing", async () => {
    const file = write("door.yaml", DOOR);
    const { stdout, code } = await tocsin(["parse", "--format", file, write("door.log", LINES.join("\n"))]);
    expect(stdout).toMatch(/^line 1: acme-door: door_opened, info, .*\n(?: {2}.*\n)* {2}user +ann\n/);
    expect(stdout).toContain(
      'line 2: not read\n  acme-door: events[0].pattern: behind {door:quoted}: " opened by " is expected, not " closed by \\"ann\\""\n',
    );
    expect(stdout).toContain(
      'line 3: not read\n  acme-door: events[0].pattern: {door:quoted} needs text in double quotes, then " opened by ", not "Yard opened"\n',
    );
    expect(stdout).toContain("line 4: not read\n  acme-door: the program is shop; match.programs has acmed\n");
    expect(stdout).toContain("line 5: read by ssh-logins, not by acme-door\n");
    expect(stdout).toMatch(/5 lines: 1 read by acme-door, 1 by another format, 3 not read\.\n$/);
    expect(code).toBe(0);
    const json = await tocsin(["parse", "--format", file, join(folder, "door.log"), "--json"]);
    expect(JSON.parse(json.stdout.split("\n")[0]!)).toMatchObject({ line: 1, format: "acme-door" });
  });

  test("shows the values that an event asks for", async () => {
    const lines = ["acme=1 kind=gate", "acme=2", "other=1"];
    const file = write("values.yaml", VALUES);
    const { stdout } = await tocsin(["parse", "--format", file, write("values.log", lines.join("\n"))]);
    expect(stdout).toContain(
      'line 1: not read\n  acme-values: events[0]: when asks for something else: kind is "gate"',
    );
    expect(stdout).toContain(
      "line 2: not read\n  acme-values: events[0]: when asks for something else: kind is absent",
    );
    expect(stdout).toContain('line 3: not read\n  acme-values: the message does not contain "acme=" of match.contains');
  });

  test("lists the faults of the file, and says what a wrong name may mean", async () => {
    const file = write("spoiled.yaml", DOOR.replace("severity:", "sevarity:"));
    const spoiled = await tocsin(["parse", "--format", file, write("some.log", "x")]);
    expect(spoiled.stderr).toContain(`${file}:7: events[0].sevarity: is unknown; did you mean severity?`);
    expect(spoiled.code).toBe(1);
    const wrong = await tocsin(["parse", "--format", "eev", join(folder, "some.log")]);
    expect(wrong.stderr).toContain("There is no format and no file eev. Did you mean eve?");
    expect(wrong.code).toBe(2);
  });

  test("formats of the site are used without naming them", async () => {
    const formats = makeFolder();
    writeFileSync(join(formats, "door.yaml"), DOOR);
    writeFileSync(join(formats, "spoiled.yaml"), "format: [");
    const flags = ["--collectors-formats-dir", formats];
    const { stdout, stderr } = await tocsin(["parse", write("site.log", LINES[0]!), ...flags]);
    expect(stdout).toContain("door_opened");
    expect(stderr).toContain("collectors.formats_dir: spoiled.yaml:1:");
    const check = await tocsin(["check", ...flags]);
    expect(check.stdout).toContain("spoiled.yaml:1:");
    expect(check.code).toBe(2);
    rmSync(formats, { recursive: true });
  });
});

describe("tocsin formats", () => {
  test("test runs the tests in files", async () => {
    const good = await tocsin(["formats", "test", write("good.yaml", DOOR)]);
    expect(good).toMatchObject({ stdout: "1 test of 1 format passed, 0 failed.\n", code: 0 });
    const file = write("failing.yaml", DOOR.replace("user: ann }", "user: bob }"));
    const failing = await tocsin(["formats", "test", file]);
    expect(failing.stdout).toBe(
      `${file}:9: tests[0]: raw.user is "ann", not "bob"\n0 tests of 1 format passed, 1 failed.\n`,
    );
    expect(failing.code).toBe(1);
    const json = JSON.parse((await tocsin(["formats", "test", file, "--json"])).stdout);
    expect(json).toMatchObject({ ok: false, tests: 1, failed: [{ kind: "test", line: 9 }], faults: [] });
  });

  test("lint finds faults, lines of other formats and events without a test", async () => {
    const file = write(
      "wide.yaml",
      `${DOOR.replace("programs: [acmed]", 'contains: [":"]').replace(/pattern:.*/, "when: {}")}  - line: a:b\n`,
    );
    const { stdout, code } = await tocsin(["formats", "lint", file]);
    expect(stdout).toMatch(/wide\.yaml:1: match: also reads lines of cef, /);
    expect(stdout).toContain(`${file}:12: tests[1]: expects nothing but that the line is read`);
    expect(stdout).toMatch(/1 format: 0 faults, 2 hints\.\n$/);
    expect(code).toBe(0);
    const spoiled = await tocsin(["formats", "lint", write("bad.yaml", DOOR.replace("about:", "abaut:"))]);
    expect(spoiled.stdout).toContain("abaut: is unknown; did you mean about?");
    expect(spoiled.code).toBe(1);
    expect((await tocsin(["formats", "lint", join(folder, "none")])).code).toBe(2);
  });

  test("list has every format", async () => {
    const { stdout } = await tocsin(["formats", "list"]);
    expect(stdout).toMatch(/^cef +any +Common Event Format/m);
    expect(stdout).toMatch(/^fail2ban +fail2ban\.actions, /m);
  });
});
