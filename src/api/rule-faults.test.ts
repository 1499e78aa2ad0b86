import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { createRule, faults, rule } from "./rule-endpoints.fixture.ts";

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const create = (more?: object) => createRule(server, more);

describe("the fault of a rule is reported with its exact path", () => {
  const testFault = (name: string, more: object, fields: string[]) =>
    test(name, async () => {
      const answer = await server.call("POST", "/v1/rules", { body: rule(more) });
      expect(answer.status).toBe(400);
      expect(answer.body.error.code).toBe("validation_error");
      expect(faults(answer)).toEqual(fields);
    });
  const type = { field: "type", equals: "x" };

  testFault(
    "a nested operator's value",
    { conditions: [type, type, { any: [{ field: "raw.ip", cidr: "10.0.0.0/99" }] }] },
    ["conditions[2].any[0].cidr"],
  );
  testFault("an unknown operator", { conditions: [{ field: "type", matches: "x" }] }, [
    "conditions[0].matches",
    "conditions[0]",
  ]);
  testFault("two operators", { conditions: [{ field: "type", equals: "x", contains: "y" }] }, ["conditions[0]"]);
  testFault("an invalid pattern", { conditions: [{ field: "type", regex: "(" }] }, ["conditions[0].regex"]);
  testFault("a look-behind", { conditions: [{ field: "type", regex: "(?<=a)b" }] }, ["conditions[0].regex"]);
  testFault("an unknown field path", { conditions: [{ field: "row.x", equals: 1 }] }, ["conditions[0].field"]);
  for (const field of ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__"]) {
    testFault(`an unknown field named like an inherited property: ${field}`, { conditions: [{ field, equals: 1 }] }, [
      "conditions[0].field",
    ]);
  }
  testFault("an unknown source", { source: "elsewhere" }, ["source"]);
  testFault("a test for an unknown source", { conditions: [{ not: { field: "source", equals: "x" } }] }, [
    "conditions[0].not.equals",
  ]);
  testFault("invalid hours", { conditions: [{ field: "timestamp", during: "25:00-26:00" }] }, ["conditions[0].during"]);
  testFault("an invalid part of a time", { conditions: [{ field: "raw.at", time_part: "hour 24" }] }, [
    "conditions[0].time_part",
  ]);
  const counted = (more: object = {}) => ({ conditions: [type], window: "5m", threshold: { count: 2, ...more } });
  const inputs = (...list: object[]) => ({ ...counted({ group_by: "raw.a", inputs: list }), conditions: [] });
  testFault("an input without conditions", inputs({ group_by: "raw.b" }), ["threshold.inputs[0].conditions"]);
  testFault("an input with fewer paths", inputs({ conditions: [type], group_by: ["raw.a", "raw.b"] }), [
    "threshold.inputs[0].group_by",
  ]);
  testFault("an input with an unused value", inputs({ conditions: [type], value: "raw.b" }), [
    "threshold.inputs[0].value",
  ]);
  testFault("an input with an unknown source", inputs({ conditions: [{ field: "source", equals: "x" }] }), [
    "threshold.inputs[0].conditions[0].equals",
  ]);
  const part = { name: "many", ...counted({ group_by: "raw.a" }) };
  const chain = (parts: object[], ...list: object[]) => ({ ...inputs(...list), parts });
  testFault("an unknown part", chain([part], { part: "many" }, { part: "few" }), ["threshold.inputs[1].part"]);
  testFault("an unused part", chain([part, { ...part, name: "other" }], { part: "many" }), ["parts[1].name"]);
  testFault("two parts with one name", chain([part, part], { part: "many" }), ["parts[0].name", "parts[1].name"]);
  testFault("a part beside conditions", chain([part], { part: "many", conditions: [type] }), [
    "threshold.inputs[0].part",
  ]);
  testFault("a part without the values of the group", chain([{ ...part, ...counted() }], { part: "many" }), [
    "threshold.inputs[0].group_by",
  ]);
  testFault("a part that refers to itself", chain([{ ...part, ...inputs({ part: "many" }) }], { part: "many" }), [
    "parts[0].threshold.inputs[0].part",
  ]);
  testFault(
    "a part that only the clock can complete",
    chain([{ ...part, ...counted({ group_by: "raw.a", lt: 5 }) }], { part: "many" }),
    ["parts[0].threshold.lt"],
  );
  testFault(
    "conditions without an event that they apply to",
    { ...chain([part], { part: "many" }), conditions: [type] },
    ["conditions"],
  );
  testFault("a part without a window", chain([{ ...part, window: undefined }], { part: "many" }), ["parts[0].window"]);
  testFault("a part with a threshold but no conditions", chain([{ ...part, conditions: [] }], { part: "many" }), [
    "parts[0].conditions",
  ]);
  const steps = (...sequence: object[]) => ({
    conditions: [],
    window: "5m",
    group_by: "raw.a",
    parts: [part],
    sequence,
  });
  testFault(
    "a step that counts several occurrences of a part",
    steps({ name: "a", part: "many", count: 2 }, { name: "b", conditions: [type] }),
    ["sequence[0].count"],
  );
  testFault("a step without conditions", steps({ name: "a", part: "many" }, { name: "b" }), ["sequence[1].conditions"]);
  const both = { name: "both", conditions: [], window: "5m", threshold: { count: 2, inputs: [{ part: "many" }] } };
  testFault(
    "a part that is both counted and a step",
    { ...steps({ name: "a", part: "many" }, { name: "b", part: "both" }), group_by: null, parts: [part, both] },
    ["sequence[0].part"],
  );
  testFault("parts beside an absence", { absence: "1h", parts: [part] }, ["parts", "parts[0].name"]);
  const ten = Array.from({ length: 10 }, (_, i) => ({ name: `s${i}`, conditions: [type] }));
  const long = (name: string) => ({ name, window: "5m", sequence: ten, group_by: "raw.a" });
  testFault(
    "too many steps and inputs",
    chain([long("x"), long("y"), long("z")], { part: "x" }, { part: "y" }, { part: "z" }, { conditions: [type] }),
    ["parts"],
  );
  testFault("an invalid duration", { window: "5 minutes", threshold: { count: 2 } }, ["window"]);
  testFault("a window longer than seven days", { window: "604801s", threshold: { count: 2 } }, ["window"]);
  testFault("a window of zero length", { window: "0s", threshold: { count: 2 } }, ["window"]);
  testFault("a window without a threshold", { window: "5m" }, ["threshold"]);
  testFault("a threshold without a window", { threshold: { count: 2, group_by: "raw.src_ip" } }, ["window"]);
  testFault("a threshold of 0", { window: "5m", threshold: { count: 0 } }, ["threshold.count"]);
  testFault("a group that is not a field", { window: "5m", threshold: { count: 2, group_by: ["raw.a", "b"] } }, [
    "threshold.group_by[1]",
  ]);
  testFault("each invalid path of a group", { window: "5m", threshold: { count: 2, group_by: ["raw.a", 5, "b"] } }, [
    "threshold.group_by[1]",
    "threshold.group_by[2]",
  ]);
  const nine = `{{${Array.from({ length: 9 }, (_, i) => `raw.a${i}`).join(" | ")}}}`;
  testFault("too many paths in one placeholder of a title or a description", { title: nine, description: nine }, [
    "description",
    "title",
  ]);
  test("accepts the maximum number of items", async () => {
    const eight = nine.replace(" | raw.a8", "");
    expect(await create({ title: eight })).toMatchObject({ title: eight });
  });
  testFault("an unknown channel", { actions: [{ alert: { channels: ["slack", "pager"] } }] }, [
    "actions[0].alert.channels[1]",
  ]);
  testFault("an invalid severity in a list", { conditions: [{ field: "severity", in: ["high", "low", "x"] }] }, [
    "conditions[0].in[2]",
  ]);
  testFault("an invalid network in a list", { conditions: [{ field: "raw.ip", cidr: ["10.0.0.0/8", "x"] }] }, [
    "conditions[0].cidr[1]",
  ]);
  testFault("each invalid pattern in a list", { conditions: [{ field: "raw.a", regex: ["a", "(", "b", "["] }] }, [
    "conditions[0].regex[1]",
    "conditions[0].regex[3]",
  ]);
  testFault("an unknown source in a list", { conditions: [{ field: "source", not_in: ["custom", "x"] }] }, [
    "conditions[0].not_in[1]",
  ]);
  testFault("a severity in upper case", { conditions: [{ field: "severity", equals: "HIGH" }] }, [
    "conditions[0].equals",
  ]);
  testFault(
    "a window without a threshold, beside an invalid pattern and an unknown source",
    {
      window: "5m",
      conditions: [
        { field: "raw.a", regex: "(" },
        { field: "source", equals: "x" },
      ],
    },
    ["conditions[0].regex", "threshold", "conditions[1].equals"],
  );
  testFault("an empty window beside a threshold, once", { window: "", threshold: { count: 2 } }, ["window"]);
  testFault(
    "the names of steps, beside an invalid step",
    {
      window: "5m",
      group_by: ["raw.a", "raw.b"],
      sequence: [
        5,
        { name: "a", conditions: [type], group_by: "raw.a" },
        { name: "a", conditions: [{ field: "type" }] },
      ],
    },
    ["sequence[0]", "sequence[2].conditions[0]", "sequence[1].group_by", "sequence[2].name"],
  );
  testFault(
    "an expired exception, beside a window without a threshold",
    { window: "5m", exceptions: [{ conditions: [type], reason: "x", expires_at: "2020-01-01T00:00:00Z" }] },
    ["threshold", "exceptions[0].expires_at"],
  );
  testFault(
    "a duplicate path or channel",
    {
      window: "5m",
      threshold: { count: 2, group_by: ["raw.a", "raw.b", "raw.a"] },
      actions: [{ alert: { channels: ["slack", "email", "slack", "slack"] } }],
    },
    ["threshold.group_by[2]", "actions[0].alert.channels[2]", "actions[0].alert.channels[3]"],
  );
  testFault("an order without a sequence", { sequence_order: "any" }, ["sequence_order"]);
  testFault("no actions", { actions: [] }, ["actions"]);
  testFault("a name without a namespace", { name: "lonely" }, ["name"]);
  testFault("no conditions", { conditions: [] }, ["conditions"]);
  testFault("an unknown field", { priority: 1 }, ["priority"]);
  testFault("an unknown severity", { severity: "urgent" }, ["severity"]);
  testFault("a sequence of one step", { window: "5m", sequence: [{ name: "a", conditions: [type] }] }, ["sequence"]);
  testFault(
    "a fault within a step",
    {
      window: "5m",
      sequence: [
        { name: "a", conditions: [type] },
        { name: "a", conditions: [{ field: "raw.x", gt: "7" }] },
      ],
    },
    ["sequence[1].conditions[0].gt", "sequence[1].name"],
  );
  testFault("an absence beside a threshold", { absence: "5m", window: "5m", threshold: { count: 2 } }, ["absence"]);
  testFault("several at once", { severity: "urgent", window: "soon", conditions: [{ field: "type" }] }, [
    "severity",
    "conditions[0]",
    "window",
    "threshold",
  ]);

  testFault(
    "contradicting fields, beside a field that is wrong by itself",
    { severity: "urgent", threshold: { count: 2 } },
    ["severity", "window"],
  );
  testFault(
    "an unknown source, beside a field that is wrong by itself",
    { severity: "urgent", conditions: [{ field: "source", equals: "x" }] },
    ["severity", "conditions[0].equals"],
  );
  testFault("a value beside an unknown field path", { conditions: [{ field: "row.x", regex: "(" }] }, [
    "conditions[0].field",
    "conditions[0].regex",
  ]);
  testFault(
    "an expired exception",
    { exceptions: [{ conditions: [type], reason: "x", expires_at: "2020-01-01T00:00:00Z" }] },
    ["exceptions[0].expires_at"],
  );

  test.each([
    [{ conditions: [{ field: "raw.a", contains: 5 }] }, "a text, or a list of 1 to 1000 texts"],
    [{ conditions: [{ keyword: 5 }] }, "a text, or a list of 1 to 1000 texts"],
    [{ window: "5m", threshold: { count: 2, group_by: 5 } }, "must be a field path or a list of 1 to 5 field paths"],
  ])("a value of another type is reported with the allowed ones: %j", async (more, message) => {
    const answer = await server.call("POST", "/v1/rules", { body: rule(more) });
    expect(answer.body.error.details).toEqual([expect.objectContaining({ message })]);
  });

  test("a severity is compared case-insensitively if ignore_case is set", async () => {
    const conditions = [{ field: "severity", in: ["HIGH", "Low"], ignore_case: true }];
    expect((await server.call("POST", "/v1/rules", { body: rule({ conditions }) })).status).toBe(201);
  });

  test.each(["1s", "7d"])("a window can be %s", async (window) => {
    await create({ window, threshold: { count: 2 } });
  });

  test("conditions nest to depth 8 and no deeper", async () => {
    const nest = (depth: number): object => (depth === 0 ? type : { any: [nest(depth - 1)] });
    await create({ conditions: [nest(8)] });
    const answer = await server.call("POST", "/v1/rules", { body: rule({ conditions: [nest(9)] }) });
    expect(faults(answer)).toEqual([`conditions[0]${".any[0]".repeat(8)}`]);
  });
});
