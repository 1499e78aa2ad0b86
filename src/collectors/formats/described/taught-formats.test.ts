import { mkdirSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../../lib/log.ts";
import { CONTEXT } from "../context.fixture.ts";
import { readWithFormats } from "../read-with-formats.ts";
import { describeTaughtFault } from "../taught-status.ts";
import { openTaughtFormats, type TaughtFormats } from "./taught-formats.ts";

let folder: string;
let taught: TaughtFormats;
let registry: Registry;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "tocsin-formats-"))));
afterEach(async () => {
  await taught.close();
  rmSync(folder, { recursive: true, force: true });
});

const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

/** A format of a made-up door controller. */
const door = (type = "door_opened", name = "acme-door", program = "acmed") => `format: ${name}
about: doors of Acme
match: { programs: [${program}] }
events:
  - pattern: "door {door:quoted} opened by {user:quoted}"
    type: ${type}
    severity: info
tests:
  - line: '${program}[7]: door "Yard" opened by "ann"'
    type: ${type}
    fields: { door: Yard, user: ann }
`;

async function open(path = folder): Promise<void> {
  registry = new Registry();
  const log = createLog({ level: "silent" });
  taught = await openTaughtFormats({ folder: path, registry, log, now: Date.now, everyMs: 5 });
}

const typeOf = (line: string) => {
  const reading = readWithFormats(taught.formats, line, CONTEXT);
  return reading.kind === "events" ? reading.events[0]!.type : reading.kind;
};
const faults = () => taught.status.faults.map(describeTaughtFault);
const names = () => taught.status.formats.map(({ name }) => name);

/** Changes are noticed by the clock. */
async function when(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

const LINE = '<13>Nov 15 10:00:00 gate acmed[7]: door "Yard" opened by "ann"';

describe("a taught format", () => {
  test("is read from a file, again when the file changes, and no more when it is gone", async () => {
    write("door.yaml", door());
    await open();
    expect(faults()).toEqual([]);
    expect(taught.status).toMatchObject({
      folder,
      formats: [{ name: "acme-door", file: "door.yaml", line: 1, isKept: false, replacesShipped: false }],
    });
    expect(typeOf(LINE)).toBe("door_opened");
    write("door.yaml", door("door_ajar"));
    await when(() => typeOf(LINE) === "door_ajar");
    write("second.yml", door("gate_moved", "acme-gate", "gated"));
    write(".hidden.yaml", "spoiled: [");
    write("notes.txt", "not a format");
    await when(() => names().length === 2);
    unlinkSync(join(folder, "door.yaml"));
    await when(() => typeOf(LINE) === "unparsed");
    expect(names()).toEqual(["acme-gate"]);
    expect(faults()).toEqual([]);
  });

  test("stays in its last good version while its file is spoiled", async () => {
    write("door.yaml", door());
    await open();
    write("door.yaml", door().replace("severity: info", "severity: grave"));
    await when(() => faults().length > 0);
    expect(faults()).toEqual([
      "door.yaml:7: events[0].severity: must be one of critical, high, medium, low, info or an object",
    ]);
    expect(taught.status.formats).toMatchObject([{ name: "acme-door", isKept: true }]);
    expect(typeOf(LINE)).toBe("door_opened");
    expect(await registry.metrics()).toContain('tocsin_collect_taught_faults{kind="refused"} 1');
    expect(await registry.metrics()).toContain("tocsin_collect_taught_formats 1");
    write("door.yaml", door("door_ajar"));
    await when(() => faults().length === 0);
    expect(taught.status.formats).toMatchObject([{ isKept: false }]);
    expect(typeOf(LINE)).toBe("door_ajar");
  });

  test("stays while the folder cannot be read", async () => {
    write("door.yaml", door());
    await open();
    rmSync(folder, { recursive: true });
    await when(() => faults().length > 0);
    expect(faults()).toEqual([`the folder ${folder} cannot be read (ENOENT); the formats read before stay in use`]);
    expect(typeOf(LINE)).toBe("door_opened");
    mkdirSync(folder);
    await when(() => names().length === 0);
    expect(faults()).toEqual([]);
  });

  test("is asked before ours, also for a program that one of ours owns", async () => {
    write("sshd.yaml", door("door_opened", "acme-sshd", "sshd"));
    await open();
    expect(typeOf('sshd[7]: door "Yard" opened by "ann"')).toBe("door_opened");
    expect(typeOf("sshd[7]: Failed password for root from 192.0.2.9 port 4711 ssh2")).toBe("login_failure");
  });

  test("takes the place of a shipped one of the same name", async () => {
    write("fail2ban.yaml", door("door_opened", "fail2ban"));
    await open();
    expect(taught.status.formats).toMatchObject([{ name: "fail2ban", replacesShipped: true }]);
    expect(typeOf(LINE)).toBe("door_opened");
    expect(typeOf("fail2ban.actions[712]: NOTICE [sshd] Ban 192.0.2.44")).toBe("unparsed");
  });
});

describe("faults name file, line and field", () => {
  test.each([
    ["YAML", "format: [", "a.yaml:1: Flow sequence in block collection must be sufficiently indented and end with a ]"],
    ["an unknown key", door().replace("about:", "abaut:"), "a.yaml:2: abaut: is unknown; did you mean about?"],
    [
      "an unknown field name",
      door().replace("events:", "fields: { who: usr }\nevents:"),
      "a.yaml:4: fields.who: is not a field name; see docs/events.md",
    ],
    [
      "a pattern",
      door().replace("{door:quoted} opened", "{door:quoted}{x}"),
      "a.yaml:5: events[0].pattern: needs text between {door} and the field behind it",
    ],
    [
      "a built-in name",
      door("x", "cef"),
      "a.yaml:1: format: cef is the name of a format that is built in; choose another",
    ],
    [
      "a failing test",
      door().replace("door: Yard", "door: Gate"),
      'a.yaml:9: tests[0]: raw.door is "Yard", not "Gate"',
    ],
    [
      "lines of others",
      door()
        .replace("programs: [acmed]", 'contains: ["CEF:"]')
        .replace(/pattern:.*/, "when: {}"),
      "a.yaml:1: match: also reads lines of cef; name the program or more of the text in match",
    ],
  ])("%s", async (_, text, fault) => {
    write("a.yaml", text);
    await open();
    expect(faults()).toContainEqual(fault);
  });

  test("two formats of one name", async () => {
    write("a.yaml", door());
    write("b.yaml", `---\n${door()}`);
    await open();
    expect(names()).toEqual(["acme-door"]);
    expect(faults()).toEqual(["b.yaml:2: format: acme-door is also the name of the format at a.yaml:1"]);
  });

  test("a folder that is not there, or a file that is too large", async () => {
    await open(join(folder, "none"));
    expect(faults()).toEqual([`the folder ${join(folder, "none")} cannot be read (ENOENT)`]);
    await taught.close();
    write("large.yaml", `# ${"x".repeat(300_000)}\n${door()}`);
    write("small.yaml", door());
    await open();
    expect(names()).toEqual(["acme-door"]);
    expect(faults()).toEqual(["large.yaml:1: is larger than 262144 bytes"]);
  });

  test("patterns that would take too long together", async () => {
    const pattern = (index: number) => `"{a:text} ${index} {b:text}"`;
    const events = (format: number) =>
      Array.from({ length: 30 }, (_, event) => {
        const patterns = Array.from({ length: 50 }, (_, index) => pattern(format * 10_000 + event * 50 + index));
        return `  - pattern: [${patterns.join(", ")}]\n    type: x\n    severity: info\n`;
      }).join("");
    const many = (index: number) =>
      door("x", `many-${index}`).replace(/events:\n(?: .*\n)+/, `events:\n${events(index)}`);
    write("a.yaml", many(1));
    write("b.yaml", many(2));
    await open();
    expect(names()).toEqual(["many-1"]);
    expect(faults()).toContainEqual("b.yaml:1: events: more than 2000 patterns in all files");
  });
});
