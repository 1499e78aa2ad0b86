import { describe, expect, test } from "vitest";
import { event, read, types } from "./bodies.fixture.ts";
import { OpenEvents } from "./open-events.ts";

describe("the telephones' console", () => {
  const call = {
    uuid: "c1",
    from: "0114",
    to: "+9995001210",
    direction: "out",
    time: "2026-11-15T01:00:00.000Z",
    status: "ringing",
    duration: null,
  };

  test("a call that goes on is told as it goes", () => {
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
    [{ direction: "in", status: "accepted", duration: 5 }, ["call_started", "call_ended"]],
  ])("%j is %j", (more, expected) => expect(types("talk", { ...call, ...more })).toEqual(expected));

  test("calls without an id of their own are not taken for one", () => {
    const open = new OpenEvents();
    const nil = { ...call, uuid: "00000000-0000-0000-0000-000000000000" };
    expect([...types("talk", nil, open), ...types("talk", nil, open)]).toEqual(["call_started", "call_started"]);
  });
});
