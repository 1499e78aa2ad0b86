import { expect, test } from "vitest";
import { alertQuery } from "./alert-query.ts";

test("filters become tests that must all hold", () => {
  const query = alertQuery({
    status: ["open"],
    severity: ["critical", "high"],
    tag: ["VIP"],
    time: "overlap",
    from: "2026-11-10T00:00:00Z",
    search: "dock",
  });
  expect(query).toEqual({
    query: {
      bool: {
        must: [
          { field: "status", in: ["open"] },
          { field: "severity", in: ["critical", "high"] },
          { field: "tags", in: ["vip"] },
        ],
      },
      time_range: { from: "2026-11-10T00:00:00Z" },
      time: "overlap",
    },
    search: "dock",
  });
});

test("no filters are an empty query", () => expect(alertQuery({})).toEqual({ query: {} }));

test("nobody is an assignee that is missing", () => {
  const people = { field: "assignee", in: ["eva@example.com"], ignore_case: true };
  const nobody = { field: "assignee", exists: false };
  const must = (assignee: string[]) => alertQuery({ assignee })?.query.bool?.must;
  expect(must(["none"])).toEqual([nobody]);
  expect(must(["eva@example.com", "none"])).toEqual([{ bool: { should: [people, nobody] } }]);
});

test("an entity has a kind, or any", () => {
  expect(alertQuery({ entity: ["door:Dock", "02:00:5e:00:00:01"] })?.query.bool?.must).toEqual([
    {
      bool: {
        should: [
          { field: "entities", equals: "door:Dock", ignore_case: true },
          { field: "entities.value", equals: "02:00:5e:00:00:01", ignore_case: true },
        ],
      },
    },
  ]);
});

test("events of an alert are not known to a search", () => expect(alertQuery({ event_id: ["evt_1"] })).toBeUndefined());
