import { describe, expect, test } from "vitest";
import { event, read, types } from "./bodies.fixture.ts";
import { OpenEvents } from "./open-events.ts";

describe("UniFi Talk", () => {
  const call = {
    uuid: "c1",
    from: "0114",
    to: "+9995001210",
    direction: "out",
    time: "2026-11-15T01:00:00.000Z",
    status: "ringing",
    duration: null,
  };

  test("an ongoing call is reported as it proceeds", () => {
    const open = new OpenEvents();
    expect(event("talk", call, open)).toMatchObject({
      type: "call_started",
      source: "talk",
      class: "network",
      raw: { from: "0114", to: "+9995001210", call: "c1" },
    });
    expect(read("talk", { ...call, status: "accepted" }, open)).toEqual({ kind: "nothing" });
    const over = { type: "CALL_LOG_UPDATED", data: { ...call, status: "accepted", duration: 61 } };
    expect(event("talk", over, open)).toMatchObject({
      type: "call_ended",
      timestampMs: Date.parse("2026-11-15T01:01:01Z"),
      raw: { duration_s: 61 },
    });
    expect(read("talk", over, open)).toEqual({ kind: "nothing" });
  });

  test.each([
    [{ direction: "in", status: "voicemail", duration: 12 }, ["call_missed"]],
    [{ direction: "out", status: "refused", duration: 0 }, ["call_started", "call_refused"]],
    [{ direction: "in", status: "declined" }, ["call_started", "call_refused"]],
    [{ direction: "in", status: "accepted", duration: 5 }, ["call_started", "call_ended"]],
    ...["missed", "voicemail", "no answer", "unanswered", "cancelled"].map((status): [object, string[]] => [
      { direction: "in", status },
      ["call_missed"],
    ]),
    [{ direction: "incoming", status: "missed" }, ["call_missed"]],
    [{ direction: null, status: "missed" }, ["call_missed"]],
    [{ direction: null, status: "no answer" }, ["call_started", "call_ended"]],
    [{ direction: null, status: "cancelled" }, ["call_started", "call_ended"]],
    [{ direction: "out", status: "no_answer" }, ["call_started", "call_ended"]],
    [{ direction: "out", status: "missed" }, ["call_started", "call_ended"]],
  ])("%j is %j", (more, expected) => expect(types("talk", { ...call, ...more })).toEqual(expected));

  test("a missed call that is sent again with its duration is reported once", () => {
    const open = new OpenEvents();
    const missed = { ...call, direction: "in", status: "missed" };
    expect(types("talk", missed, open)).toEqual(["call_missed"]);
    expect(read("talk", { ...missed, duration: 12 }, open)).toEqual({ kind: "nothing" });
  });

  test("a call that rang before it was missed becomes both events", () => {
    const open = new OpenEvents();
    expect(types("talk", { ...call, direction: "in" }, open)).toEqual(["call_started"]);
    expect(types("talk", { ...call, direction: "in", status: "missed" }, open)).toEqual(["call_missed"]);
  });

  test("calls without an id are not merged", () => {
    const open = new OpenEvents();
    const nil = { ...call, uuid: "00000000-0000-0000-0000-000000000000" };
    expect([...types("talk", nil, open), ...types("talk", nil, open)]).toEqual(["call_started", "call_started"]);
  });
});
