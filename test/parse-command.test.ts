import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { printEventTables } from "../src/docs/events-page.ts";
import { readFileSync } from "node:fs";
import { CEF_THREAT, EVE_RECORDS, FIREWALL_LINE } from "../src/collectors/formats/samples.fixture.ts";
import { makeFolder, tocsin, tocsinProcess } from "./tocsin.ts";

let folder: string;
beforeAll(() => void (folder = makeFolder()));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, text: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Keeps the times of the samples, however old they are by now. */
const KEPT_FOR_LONG = ["--retention-events-days", "3650"];

describe("tocsin parse", () => {
  test("shows the event of each line, with counts by kind", async () => {
    const lines = [
      CEF_THREAT,
      FIREWALL_LINE,
      "",
      "hello \u001b[31mthere",
      JSON.stringify(EVE_RECORDS.flow),
      JSON.stringify(EVE_RECORDS.stats),
    ];
    const { stdout, code } = await tocsin([
      "parse",
      write("mixed.log", `${lines.join("\n")}\n`),
      "--platform",
      "house",
      ...KEPT_FOR_LONG,
    ]);
    const rows = stdout.trimEnd().split("\n");
    expect(rows[0]).toMatch(/^line +source +type +severity +time +fields$/);
    expect(rows[1]).toMatch(
      /^1 +house_network +ids_alert +high +2026-11-15T19:58:12\.250Z +src_ip=192\.0\.2\.44 .*dst_port=8443/,
    );
    expect(rows[2]).toMatch(/^2 +house_network +firewall_blocked +low .*protocol=tcp/);
    expect(rows[3]).toMatch(/^4 +house_network +unparsed +info +on arrival +message=hello there$/);
    expect(rows[4]).toMatch(/^5 +house_network +\(flow\) .*10\.9\.3\.20:51522 to 192\.0\.2\.200:443, 1,800 bytes/);
    expect(rows[6]).toMatch(/^6 +- +\(nothing\)/);
    expect(rows.at(-1)).toBe("5 lines: 3 events, 1 of them unparsed, 2 flows, 1 with nothing to tell.");
    expect(code).toBe(0);
  });

  test("reads standard input from a slow writer, and more than a pipe holds", async () => {
    async function* slowly() {
      yield `${CEF_THREAT}\n`;
      await new Promise((resolve) => setTimeout(resolve, 500));
      for (let line = 0; line < 400; line++) yield `${CEF_THREAT}\n`;
    }
    const { stdout, code } = await tocsinProcess(["parse", "-"], {}, slowly());
    expect(stdout.trimEnd().split("\n").at(-1)).toBe("401 lines: 401 events.");
    expect(code).toBe(0);
  });

  test("prints no terminal control sequences, as text or as JSON", async () => {
    const file = write(
      "obeyed.log",
      "hello \u202egpj.exe\u2066 \u009b31mred\u2028end, and enough letters to be text\n",
    );
    const words = await tocsin(["parse", file]);
    expect(words.stdout).toContain("message=hello ?gpj.exe?");
    expect(words.stdout).not.toMatch(/[\u0080-\u009f\u202e\u2066\u2028]/);
    const json = await tocsin(["parse", file, "--json"]);
    expect(json.stdout).toContain("hello \\u202egpj.exe\\u2066 \\u009b31mred\\u2028end");
    expect(json.stdout).not.toMatch(/[\u0080-\u009f\u202e\u2066\u2028]/);
    expect(JSON.parse(json.stdout)).toBeTypeOf("object");
  });

  test("prints everything as JSON, including a list of bodies", async () => {
    const bodies = [
      { event: "access.door.unlock", data: { location: { name: "Entry" }, actor: { id: "u", name: "robin" } } },
      { uuid: "c1", from: "0114", to: "0115", direction: "out", time: "2026-11-15T01:00:00Z", status: "ringing" },
    ];
    const { stdout, code } = await tocsin([
      "parse",
      write("bodies.json", JSON.stringify(bodies, undefined, 1)),
      "--json",
      ...KEPT_FOR_LONG,
    ]);
    const [door, call] = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(door).toMatchObject({
      line: 1,
      kind: "events",
      events: [
        {
          type: "access_granted",
          source: "platform_access",
          class: "audit",
          timestamp: null,
          raw: { ...bodies[0], user: "robin", door: "Entry" },
        },
      ],
    });
    expect(call).toMatchObject({ line: 2, events: [{ type: "call_started", timestamp: "2026-11-15T01:00:00.000Z" }] });
    expect(code).toBe(0);
  });

  test("says when an implausible time is replaced by the time of arrival, and why", async () => {
    const yearsAgo = "2001-02-03T04:05:06.000Z";
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    const lines = [yearsAgo, ahead, new Date().toISOString()].map((time) => `<13>1 ${time} host app - - - hello`);
    const file = write("clocks.log", lines.join("\n"));
    const events = (await tocsin(["parse", file, "--json"])).stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).events[0]);
    expect(events[0]).toMatchObject({
      timestamp: null,
      note: `the time of arrival replaces its time: ${yearsAgo} is older than 365 days`,
      raw: { reported_at: yearsAgo },
    });
    expect(events[1]).toMatchObject({ timestamp: null, raw: { reported_at: ahead } });
    expect(events[1].note).toContain("is more than 5 minutes ahead");
    expect(events[2].timestamp).not.toBeNull();
    expect(events[2]).not.toHaveProperty("note");
    const { stdout } = await tocsin(["parse", file, "--retention-events-days", "30"]);
    expect(stdout).toMatch(
      /^1 .*on arrival +\(the time of arrival replaces its time: 2001-.* is older than 30 days\)/m,
    );
  });

  test("refuses the same input as the collectors: not text, too long, or not storable", async () => {
    const binary = Buffer.concat([Buffer.from("<13>hello\n"), Buffer.from([0, 1, 2, 0xff, 0xfe, 3, 4, 0xc3, 5])]);
    const refused = await tocsin(["parse", write("binary.log", binary)]);
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringMatching(/^2 .*not_text: the input is not text/m) });
    const long = write("long.log", `<13>Nov 15 20:00:00 gw app: ${"x".repeat(3000)}\n`);
    expect((await tocsin(["parse", long])).code).toBe(0);
    const bound = await tocsin(["parse", long, "--collectors-line-bytes-max", "2048"]);
    expect(bound).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("too_long: the input is longer than 2048 bytes"),
    });
    const eve = write("long.json", JSON.stringify({ event_type: "tls", tls: { sni: "x".repeat(3000) } }));
    expect((await tocsin(["parse", eve, "--collectors-line-bytes-max", "2048"])).stdout).toContain("too_long");
    const body = write("body.json", JSON.stringify({ event: "access.new", data: { text: "x".repeat(3000) } }));
    expect((await tocsin(["parse", body, "--collectors-line-bytes-max", "2048"])).code).toBe(0);
    const strange = write("strange.log", "<13>Nov 15 20:00:00 gw app: hello\n");
    const unkept = await tocsin(["parse", strange, "--collectors-unparsed", "off"]);
    expect(unkept.stdout).toContain("unknown_kind: no reader understands it");
  });

  test("fails with the reason if input is refused or the file is missing", async () => {
    const refused = await tocsin(["parse", "--format", "eve", write("bad.json", "half a li\n")]);
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining("malformed: not a JSON object") });
    expect(refused.stdout).toContain("1 line: 0 events, 1 refused.");
    const missing = await tocsin(["parse", join(folder, "nowhere.log")]);
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringMatching(/nowhere\.log cannot be read: ENOENT/) });
    expect((await tocsin(["parse", "--format", "pigeon", "x"])).code).toBe(2);
  });
});

test("docs/events.md has the tables that the code prints", () => {
  const page = readFileSync(new URL("../docs/events.md", import.meta.url), "utf8");
  expect(printEventTables(page)).toBe(page);
});
