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
  const test1 = (name: string, more: object, fields: string[]) =>
    test(name, async () => {
      const answer = await server.call("POST", "/v1/rules", { body: rule(more) });
      expect(answer.status).toBe(400);
      expect(answer.body.error.code).toBe("validation_error");
      expect(faults(answer)).toEqual(fields);
    });
  const type = { field: "type", equals: "x" };

  test1(
    "a nested operator's value",
    { conditions: [type, type, { any: [{ field: "raw.ip", cidr: "10.0.0.0/99" }] }] },
    ["conditions[2].any[0].cidr"],
  );
  test1("an unknown operator", { conditions: [{ field: "type", matches: "x" }] }, [
    "conditions[0].matches",
    "conditions[0]",
  ]);
  test1("two operators", { conditions: [{ field: "type", equals: "x", contains: "y" }] }, ["conditions[0]"]);
  test1("an invalid pattern", { conditions: [{ field: "type", regex: "(" }] }, ["conditions[0].regex"]);
  test1("a pattern that looks behind", { conditions: [{ field: "type", regex: "(?<=a)b" }] }, ["conditions[0].regex"]);
  test1("a field that is none", { conditions: [{ field: "row.x", equals: 1 }] }, ["conditions[0].field"]);
  for (const field of ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__"]) {
    test1(
      `a field that is none and named like what every object has: ${field}`,
      { conditions: [{ field, equals: 1 }] },
      ["conditions[0].field"],
    );
  }
  test1("a source that is none", { source: "elsewhere" }, ["source"]);
  test1("a test for a source that is none", { conditions: [{ not: { field: "source", equals: "x" } }] }, [
    "conditions[0].not.equals",
  ]);
  test1("hours that are none", { conditions: [{ field: "timestamp", during: "25:00-26:00" }] }, [
    "conditions[0].during",
  ]);
  test1("a part of a time that is none", { conditions: [{ field: "raw.at", time_part: "hour 24" }] }, [
    "conditions[0].time_part",
  ]);
  const counted = (more: object = {}) => ({ conditions: [type], window: "5m", threshold: { count: 2, ...more } });
  const inputs = (...list: object[]) => ({ ...counted({ group_by: "raw.a", inputs: list }), conditions: [] });
  test1("an input of nothing", inputs({ group_by: "raw.b" }), ["threshold.inputs[0].conditions"]);
  test1("an input with fewer paths", inputs({ conditions: [type], group_by: ["raw.a", "raw.b"] }), [
    "threshold.inputs[0].group_by",
  ]);
  test1("an input with a value that nothing looks at", inputs({ conditions: [type], value: "raw.b" }), [
    "threshold.inputs[0].value",
  ]);
  test1("an input of a source that is none", inputs({ conditions: [{ field: "source", equals: "x" }] }), [
    "threshold.inputs[0].conditions[0].equals",
  ]);
  const part = { name: "many", ...counted({ group_by: "raw.a" }) };
  const chain = (parts: object[], ...list: object[]) => ({ ...inputs(...list), parts });
  test1("a part that there is not", chain([part], { part: "many" }, { part: "few" }), ["threshold.inputs[1].part"]);
  test1("a part that nobody uses", chain([part, { ...part, name: "other" }], { part: "many" }), ["parts[1].name"]);
  test1("two parts of one name", chain([part, part], { part: "many" }), ["parts[0].name", "parts[1].name"]);
  test1("a part beside conditions", chain([part], { part: "many", conditions: [type] }), ["threshold.inputs[0].part"]);
  test1("a part without the values that are grouped by", chain([{ ...part, ...counted() }], { part: "many" }), [
    "threshold.inputs[0].group_by",
  ]);
  test1("a part that refers to itself", chain([{ ...part, ...inputs({ part: "many" }) }], { part: "many" }), [
    "parts[0].threshold.inputs[0].part",
  ]);
  test1(
    "a part that the clock decides",
    chain([{ ...part, ...counted({ group_by: "raw.a", lt: 5 }) }], { part: "many" }),
    ["parts[0].threshold.lt"],
  );
  test1("conditions where there is no event to hold for", { ...chain([part], { part: "many" }), conditions: [type] }, [
    "conditions",
  ]);
  test1("a part without a window", chain([{ ...part, window: undefined }], { part: "many" }), ["parts[0].window"]);
  test1("a part with a threshold and no condition", chain([{ ...part, conditions: [] }], { part: "many" }), [
    "parts[0].conditions",
  ]);
  const steps = (...sequence: object[]) => ({
    conditions: [],
    window: "5m",
    group_by: "raw.a",
    parts: [part],
    sequence,
  });
  test1(
    "a part of which a step counts several",
    steps({ name: "a", part: "many", count: 2 }, { name: "b", conditions: [type] }),
    ["sequence[0].count"],
  );
  test1("a step of nothing", steps({ name: "a", part: "many" }, { name: "b" }), ["sequence[1].conditions"]);
  const both = { name: "both", conditions: [], window: "5m", threshold: { count: 2, inputs: [{ part: "many" }] } };
  test1(
    "a part that is counted and a step",
    { ...steps({ name: "a", part: "many" }, { name: "b", part: "both" }), group_by: null, parts: [part, both] },
    ["sequence[0].part"],
  );
  test1("parts of an absence", { absence: "1h", parts: [part] }, ["parts", "parts[0].name"]);
  const ten = Array.from({ length: 10 }, (_, i) => ({ name: `s${i}`, conditions: [type] }));
  const long = (name: string) => ({ name, window: "5m", sequence: ten, group_by: "raw.a" });
  test1(
    "more steps and inputs than fit",
    chain([long("x"), long("y"), long("z")], { part: "x" }, { part: "y" }, { part: "z" }, { conditions: [type] }),
    ["parts"],
  );
  test1("a duration that is none", { window: "5 minutes", threshold: { count: 2 } }, ["window"]);
  test1("a window longer than seven days", { window: "604801s", threshold: { count: 2 } }, ["window"]);
  test1("a window of no time", { window: "0s", threshold: { count: 2 } }, ["window"]);
  test1("a window without a threshold", { window: "5m" }, ["threshold"]);
  test1("a threshold without a window", { threshold: { count: 2, group_by: "raw.src_ip" } }, ["window"]);
  test1("a threshold of 0", { window: "5m", threshold: { count: 0 } }, ["threshold.count"]);
  test1("a group that is no field", { window: "5m", threshold: { count: 2, group_by: ["raw.a", "b"] } }, [
    "threshold.group_by[1]",
  ]);
  test1("each path of a group that is none", { window: "5m", threshold: { count: 2, group_by: ["raw.a", 5, "b"] } }, [
    "threshold.group_by[1]",
    "threshold.group_by[2]",
  ]);
  const nine = `{{${Array.from({ length: 9 }, (_, i) => `raw.a${i}`).join(" | ")}}}`;
  test1("more paths in one place of a title or a description than are looked at", { title: nine, description: nine }, [
    "description",
    "title",
  ]);
  test("accepts the maximum number of items", async () => {
    const eight = nine.replace(" | raw.a8", "");
    expect(await create({ title: eight })).toMatchObject({ title: eight });
  });
  test1("an unknown channel", { actions: [{ alert: { channels: ["slack", "pager"] } }] }, [
    "actions[0].alert.channels[1]",
  ]);
  test1("one severity of a list", { conditions: [{ field: "severity", in: ["high", "low", "x"] }] }, [
    "conditions[0].in[2]",
  ]);
  test1("one network of a list", { conditions: [{ field: "raw.ip", cidr: ["10.0.0.0/8", "x"] }] }, [
    "conditions[0].cidr[1]",
  ]);
  test1("each pattern of a list that is none", { conditions: [{ field: "raw.a", regex: ["a", "(", "b", "["] }] }, [
    "conditions[0].regex[1]",
    "conditions[0].regex[3]",
  ]);
  test1("one source of a list", { conditions: [{ field: "source", not_in: ["custom", "x"] }] }, [
    "conditions[0].not_in[1]",
  ]);
  test1("a severity in a spelling that none has", { conditions: [{ field: "severity", equals: "HIGH" }] }, [
    "conditions[0].equals",
  ]);
  test1(
    "a window without a threshold, beside a pattern that is none and a source that is none",
    {
      window: "5m",
      conditions: [
        { field: "raw.a", regex: "(" },
        { field: "source", equals: "x" },
      ],
    },
    ["conditions[0].regex", "threshold", "conditions[1].equals"],
  );
  test1("an empty window beside a threshold, once", { window: "", threshold: { count: 2 } }, ["window"]);
  test1(
    "the names of steps, beside a step that is none",
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
  test1(
    "an exception that is over already, beside a window without a threshold",
    { window: "5m", exceptions: [{ conditions: [type], reason: "x", expires_at: "2020-01-01T00:00:00Z" }] },
    ["threshold", "exceptions[0].expires_at"],
  );
  test1(
    "the same path, or channel, twice",
    {
      window: "5m",
      threshold: { count: 2, group_by: ["raw.a", "raw.b", "raw.a"] },
      actions: [{ alert: { channels: ["slack", "email", "slack", "slack"] } }],
    },
    ["threshold.group_by[2]", "actions[0].alert.channels[2]", "actions[0].alert.channels[3]"],
  );
  test1("an order without a sequence", { sequence_order: "any" }, ["sequence_order"]);
  test1("no action", { actions: [] }, ["actions"]);
  test1("a name without a namespace", { name: "lonely" }, ["name"]);
  test1("no condition", { conditions: [] }, ["conditions"]);
  test1("an unknown field", { priority: 1 }, ["priority"]);
  test1("an unknown severity", { severity: "urgent" }, ["severity"]);
  test1("a sequence of one step", { window: "5m", sequence: [{ name: "a", conditions: [type] }] }, ["sequence"]);
  test1(
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
  test1("an absence beside a threshold", { absence: "5m", window: "5m", threshold: { count: 2 } }, ["absence"]);
  test1("several at once", { severity: "urgent", window: "soon", conditions: [{ field: "type" }] }, [
    "severity",
    "conditions[0]",
    "window",
    "threshold",
  ]);

  test1(
    "what fields say together, beside a field that is wrong alone",
    { severity: "urgent", threshold: { count: 2 } },
    ["severity", "window"],
  );
  test1(
    "a source that is none, beside a field that is wrong alone",
    { severity: "urgent", conditions: [{ field: "source", equals: "x" }] },
    ["severity", "conditions[0].equals"],
  );
  test1("a value beside a field that is none", { conditions: [{ field: "row.x", regex: "(" }] }, [
    "conditions[0].field",
    "conditions[0].regex",
  ]);
  test1(
    "an exception that is over already",
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
