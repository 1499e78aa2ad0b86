import { expect, test } from "vitest";
import { alertLike } from "./alert.fixture.ts";
import { toCsv } from "./export.ts";

test("the list as CSV quotes what has to be, and disarms formulas", () => {
  const alert = alertLike({ title: '=HYPERLINK("x"),\nnew line', tags: ["a", "b"], assignee: "eva@example.com" });
  const [head, ...rows] = toCsv([alert]).split("\r\n");
  expect(head).toBe(
    "id,severity,status,title,rule_name,source,event_count,threat_score,assignee,resolution,tags,first_event_at,last_event_at,created_at",
  );
  expect(rows.join("|")).toBe(
    `alt_1,high,open,"'=HYPERLINK(""x""),\nnew line",access.door_forced,platform_access,1,,eva@example.com,,a b,2026-11-15T08:00:00.000Z,2026-11-15T08:10:00.000Z,2026-11-15T08:10:01.000Z|`,
  );
});
