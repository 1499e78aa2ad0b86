import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string, timezone = "UTC") => onlyEvent(readLine(line, { ...CONTEXT, timezone }));
const timeOf = (line: string, timezone = "UTC") => {
  const { timestampMs } = read(line, timezone);
  return timestampMs === null ? null : new Date(timestampMs).toISOString();
};

describe("the time of a header, in the notation of its vendor", () => {
  test.each([
    ["a zone behind the time", "<13>Nov 15 04:59:59 UTC gw app[1]: hello"],
    ["an offset behind the time", "<13>Nov 15 05:59:59 +0100 gw app[1]: hello"],
    ["an offset at the time", "<13>Nov 15 2026 05:59:59+01:00 gw app[1]: hello"],
    ["an offset from a zone", "<13>Nov 15 05:59:59 GMT+01:00 gw app[1]: hello"],
    ["a zone between time and year", "<13>Sun Nov 15 04:59:59 UTC 2026 gw app[1]: hello"],
    ["a compact time", "<13>20261115T045959Z gw app[1]: hello"],
    ["a compact time with an offset", "<13>20261115T055959.000+0100 gw app[1]: hello"],
    ["the day before the month", "<13>15 Nov 2026 04:59:59 gw app[1]: hello"],
    ["seconds since 1970", "<13>1794718799 gw app[1]: hello"],
    ["seconds since 1970 behind a version", "<13>1 1794718799.000456789 gw app[1]: hello"],
    ["a relay's in front", "<13>Nov 15 05:00:00 relay-1 <13>Nov 15 05:59:59 +0100 gw app[1]: hello"],
  ])("%s", (_, line) => {
    for (const timezone of line.match(/15 Nov/) ? ["UTC"] : ["UTC", "Europe/Berlin"]) {
      expect(timeOf(line, timezone)).toBe("2026-11-15T04:59:59.000Z");
    }
    expect(read(line).raw).toMatchObject({ device: "gw", program: "app", process_id: 1, message: "hello" });
  });

  test("the name of a zone elsewhere is not the host; the time is in the site's zone", () => {
    const line = "<13>Nov 15 05:59:59 CET gw app[1]: hello";
    expect(timeOf(line, "Europe/Berlin")).toBe("2026-11-15T04:59:59.000Z");
    expect(read(line).raw["device"]).toBe("gw");
  });

  test.each([
    ["a host named like a zone", "<13>Nov 15 04:59:59 UTC app: hello", { device: "UTC", program: "app" }],
    ["a host in capitals", "<13>Nov 15 04:59:59 GWA gw2 app: hello", { device: "GWA" }],
    ["a host named like a zone before a sentence", "<13>Nov 15 04:59:59 CET is a zone", { device: "CET" }],
    ["a number that is far from now", "<13>9999999999 bottles of beer", { message: "9999999999 bottles of beer" }],
    ["digits that are no date", "<13>20261399T045959Z hello", { message: "20261399T045959Z hello" }],
  ])("not %s", (_, line, fields) => {
    expect(read(line).raw).toMatchObject(fields);
  });
});
