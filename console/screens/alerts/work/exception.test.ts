import { describe, expect, test } from "vitest";
import type { AlertDetail, Event } from "../../../data/client.ts";
import { choicesOf, silencedWords } from "./exception.ts";

const event = (raw: Record<string, unknown>): Event =>
  ({
    id: "evt",
    type: "login_failure",
    source: "custom",
    raw,
    enrichment: { geo: { country: "AT" } },
  }) as unknown as Event;

function alert(events: Event[], group: string | null, matched: string[]): AlertDetail {
  const fields = matched.map((field) => ({ field, operator: "equals", value: 1, expected: 1 }));
  return {
    related_events: events,
    group: group === null ? null : { field: group, value: "x" },
    match: { kind: "single", events: events.map(({ id }) => ({ event_id: id, fields })) },
  } as unknown as AlertDetail;
}

const read = (detail: AlertDetail) =>
  choicesOf(detail)[0]!.candidates.map(({ field, value, isLikely }) => [field, value, isLikely]);

describe("conditions for an exception", () => {
  test("are values that all events share; the group is chosen first", () => {
    const events = [
      event({ src_ip: "192.0.2.1", user: "eva", port: 22 }),
      event({ src_ip: "192.0.2.1", user: "ben", port: 22 }),
    ];
    expect(read(alert(events, "raw.src_ip", ["type", "raw.port"]))).toEqual([
      ["raw.src_ip", "192.0.2.1", true],
      ["type", "login_failure", false],
      ["raw.port", 22, false],
    ]);
  });

  test("without a group are the names that matched, never only the kind of event", () => {
    expect(read(alert([event({ user: "eva", host: "nas" })], null, ["type", "raw.host"]))).toEqual([
      ["type", "login_failure", false],
      ["raw.host", "nas", true],
      ["raw.user", "eva", false],
    ]);
  });

  test("of events without a name in common are those of one of them, the last first", () => {
    const events = [event({ door: "Dock" }), event({ src_mac: "02:00:5e:00:00:01" })];
    const [held, joined] = events.map((each, i) => ({ ...each, id: `evt_${i}` }));
    const choices = choicesOf(alert([joined!, held!], null, ["type"]));
    expect(
      choices.map(({ event: of, candidates }) => [of?.id, candidates.filter(({ isLikely }) => isLikely).length]),
    ).toEqual([
      ["evt_1", 1],
      ["evt_0", 1],
    ]);
  });

  test("are who or what it was, where the rule only matched the kind of event", () => {
    expect(read(alert([event({ door: "Dock" })], null, ["type"]))).toEqual([
      ["type", "login_failure", false],
      ["raw.door", "Dock", true],
    ]);
  });

  test("reach into objects, and leave out what is none of a text, number or truth", () => {
    const detail = alert([event({ list: [1], toString: 1 })], "enrichment.geo.country", [
      "raw.list",
      "raw.constructor",
    ]);
    expect(read(detail)).toEqual([["enrichment.geo.country", "AT", true]]);
  });
});

test("what it would have silenced", () => {
  expect(silencedWords(21, 4)).toBe("It would have silenced 17 of 21 alerts last week.");
  expect(silencedWords(0, 0)).toContain("no alert");
});
