import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { createRule, faults, rule } from "./rule-endpoints.fixture.ts";

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const create = (more?: object) => createRule(server, more);

describe("a new rule", () => {
  test("is returned with every default, and found at Location", async () => {
    const body = rule();
    const answer = await server.call("POST", "/v1/rules", { body });
    expect(answer.status).toBe(201);
    const { data } = answer.body;
    expect(data).toEqual({
      ...body,
      id: expect.stringMatching(/^rule_[0-9a-f]{32}$/),
      enabled: true,
      source: "any",
      tags: [],
      title: null,
      references: [],
      window: null,
      threshold: null,
      sequence: null,
      sequence_order: "in_order",
      sequence_min: null,
      group_by: null,
      absence: null,
      parts: [],
      tests: [],
      dedup: { period: "1h", by: null },
      exceptions: [],
      origin: null,
      builtin: false,
      created_at: expect.stringMatching(/Z$/),
      updated_at: data.created_at,
      stats: { matches_24h: 0, matches_7d: 0, last_match: null, alerts_7d: 0, false_positive_share: null },
    });
    expect(answer.headers.location).toBe(`/v1/rules/${data.id}`);
    expect((await server.call("GET", `/v1/rules/${data.id}`)).body.data).toEqual(data);
  });

  test("keeps its parts and inputs as they were sent, and can be sent back", async () => {
    const conditions = [{ field: "type", equals: "login_failure" }];
    const part = { name: "many", conditions, window: "5m", threshold: { count: 5, group_by: ["raw.a", "raw.b"] } };
    const inputs = [{ part: "many", group_by: "raw.b" }, { conditions }];
    const threshold = { count: 2, group_by: "raw.a", inputs };
    const made = await create({ conditions: [], parts: [part], window: "1h", threshold });
    expect(made).toMatchObject({ parts: [part], threshold });
    const answer = await server.call("PUT", `/v1/rules/${made.id}`, { body: made });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({ parts: made.parts, threshold: made.threshold });
    const { parts: _, ...plain } = { ...made, conditions, window: null, threshold: null };
    const without = await server.call("PUT", `/v1/rules/${made.id}`, { body: plain });
    expect(without.body.data.parts).toEqual([]);
  });

  test("keeps its conditions as sent, at any nesting", async () => {
    const conditions = [
      {
        any: [
          { field: "raw.user", equals: "root", ignore_case: true },
          { all: [{ keyword: ["a", "b"], ignore_case: true }] },
        ],
      },
      { not: { field: "raw.src_ip", cidr: ["10.0.0.0/8", "fc00::/7"] } },
      { field: "raw.path", glob: "*\\\\temp\\\\?.exe" },
      { field: "raw.a", equals_field: "raw.b" },
      { field: "timestamp", during: "mon-fri 22:00-06:00 Europe/Berlin" },
      { field: "raw.gone", exists: false },
    ];
    expect((await create({ conditions })).conditions).toEqual(conditions);
  });

  test("has a unique name: of two concurrent requests exactly one succeeds", async () => {
    const body = rule();
    const answers = await Promise.all([1, 2, 3].map(() => server.call("POST", "/v1/rules", { body })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    for (const { status, body: answer } of answers) {
      if (status === 201) continue;
      expect(answer.error).toMatchObject({ code: "conflict", message: expect.stringContaining(body.name) });
      expect(answer.error.details).toEqual([{ field: "name", message: "is already the name of another rule" }]);
    }
  });
});

describe("a rule is replaced", () => {
  test("as a whole: omitted fields are reset to their defaults", async () => {
    const { id, name } = await create({
      tags: ["x"],
      window: "5m",
      threshold: { count: 3, group_by: "raw.user" },
      dedup: { period: "2h", by: "raw.host" },
      exceptions: [{ conditions: [{ field: "raw.user", equals: "me" }], reason: "it is me" }],
    });
    const answer = await server.call("PUT", `/v1/rules/${id}`, { body: { ...rule(), name, enabled: false } });
    expect(answer.status).toBe(200);
    expect(answer.body.data).toMatchObject({
      enabled: false,
      tags: [],
      window: null,
      threshold: null,
      dedup: { period: "1h", by: null },
      exceptions: [],
    });
  });

  test("with its exceptions as they were read, including expired ones", async () => {
    let shift = 0;
    const shifted = await openTestServer({ now: () => Date.now() + shift });
    try {
      const conditions = [{ field: "raw.user", equals: "me" }];
      const expires_at = new Date(Date.now() + 3_600_000).toISOString();
      const exceptions = [
        { conditions, reason: "it is me" },
        { conditions, reason: "for now", expires_at },
      ];
      const made = await shifted.call("POST", "/v1/rules", { body: rule({ exceptions }) });
      const { id, name, exceptions: read } = made.body.data;
      const put = async (list: object[], more: object = {}) =>
        shifted.call("PUT", `/v1/rules/${id}`, {
          body: { ...rule(), name, enabled: true, exceptions: list, ...more },
          key: (await shifted.addKey({ name: "somebody else" })).secret,
        });
      shift = 7_200_000;
      const kept = await put([...read, { conditions, reason: "new" }]);
      expect(kept.status, kept.text).toBe(200);
      expect(kept.body.data.exceptions.slice(0, 2)).toEqual(read);
      expect(kept.body.data.exceptions[2]).toMatchObject({ reason: "new", author: "somebody else" });
      const [first, over] = read;
      const refused = await put(
        [
          first,
          { ...first, id: "exc_other" },
          first,
          { ...over, author: "me", created_at: "2026-01-01T00:00:00Z" },
          { conditions, reason: "late", expires_at },
        ],
        { name: "test.another", severity: "urgent" },
      );
      expect(faults(refused)).toEqual([
        "severity",
        "name",
        "exceptions[1].id",
        "exceptions[1].author",
        "exceptions[1].created_at",
        "exceptions[2].id",
        "exceptions[3].author",
        "exceptions[3].created_at",
        "exceptions[4].expires_at",
      ]);
    } finally {
      await shifted.close();
    }
  });

  test("as it was read, and can be simulated so", async () => {
    const { id } = await create();
    const exception = { conditions: [{ field: "raw.bench", exists: true }], reason: "a test bench" };
    await server.call("POST", `/v1/rules/${id}/exceptions`, { body: exception });
    const read = await server.call("GET", `/v1/rules/${id}`);
    const sent = { ...read.body.data, severity: "critical" };
    const replaced = await server.call("PUT", `/v1/rules/${id}`, {
      body: { ...sent, builtin: true, stats: { matches_24h: 7 }, created_at: "2001-01-01" },
      headers: { "if-match": String(read.headers["etag"]) },
    });
    expect(replaced.status).toBe(200);
    expect(replaced.body.data).toEqual({ ...sent, updated_at: expect.any(String) });
    const other = await server.call("PUT", `/v1/rules/${id}`, {
      body: { ...sent, id: "rule_other", name: "an.other" },
    });
    expect([other.status, faults(other)]).toEqual([400, ["id", "name"]]);
    const time_range = { from: "2026-11-10", to: "2026-11-11" };
    const tried = await server.call("POST", "/v1/rules/simulate", { body: { rule: sent, time_range } });
    expect(tried.status).toBe(200);
    // A new exception gets its own id.
    const made = await server.call("POST", "/v1/rules", { body: { ...sent, name: "site.copied" } });
    expect([made.status, faults(made).includes("id")]).toEqual([400, true]);
  });

  test("only under its own name, and with enabled set", async () => {
    const { id, name } = await create();
    const renamed = await server.call("PUT", `/v1/rules/${id}`, { body: { ...rule(), enabled: true } });
    expect(renamed.status).toBe(400);
    expect(faults(renamed)).toEqual(["name"]);
    const unsaid = await server.call("PUT", `/v1/rules/${id}`, { body: { ...rule(), name } });
    expect(faults(unsaid)).toEqual(["enabled"]);
  });

  test("by two concurrent edits without mixing them, and an edit with an outdated ETag is refused", async () => {
    const { id, name } = await create();
    const { etag } = (await server.call("GET", `/v1/rules/${id}`)).headers;
    const edits = ["first", "second"].map((word) => ({
      ...rule(),
      name,
      enabled: true,
      description: word,
      tags: [word],
    }));
    await Promise.all(edits.map((body) => server.call("PUT", `/v1/rules/${id}`, { body })));
    const { data } = (await server.call("GET", `/v1/rules/${id}`)).body;
    expect(data.tags).toEqual([data.description]);
    const late = await server.call("PUT", `/v1/rules/${id}`, { body: edits[0], headers: { "if-match": etag! } });
    expect(late.status).toBe(409);
    const gone = await server.call("DELETE", `/v1/rules/${id}`, { headers: { "if-match": etag! } });
    expect(gone.status).toBe(409);
    const wrong = await server.call("PATCH", `/v1/rules/${id}`, {
      body: { enabled: false },
      headers: { "if-match": "yesterday" },
    });
    expect(faults(wrong)).toEqual(["If-Match"]);
  });
});

describe("a rule is patched", () => {
  test("with enabled, severity or both", async () => {
    const { id } = await create();
    const { data } = (await server.call("PATCH", `/v1/rules/${id}`, { body: { enabled: false, severity: "high" } }))
      .body;
    expect(data).toMatchObject({ enabled: false, severity: "high" });
  });

  test("neither with an empty body nor with any other field", async () => {
    const { id } = await create();
    const empty = await server.call("PATCH", `/v1/rules/${id}`, { body: {} });
    expect(empty.status).toBe(400);
    const other = await server.call("PATCH", `/v1/rules/${id}`, { body: { description: "x" } });
    expect(faults(other)).toContain("description");
  });
});

describe("a built-in rule", () => {
  const builtin = async () => {
    const { data } = (await server.call("GET", "/v1/rules?per_page=100")).body;
    return data.find((item: { builtin: boolean }) => item.builtin);
  };

  test("is never deleted or replaced, and keeps its severity", async () => {
    const { id, name } = await builtin();
    const answers = [
      await server.call("DELETE", `/v1/rules/${id}`),
      await server.call("PUT", `/v1/rules/${id}`, { body: { ...rule(), name, enabled: true } }),
      await server.call("PUT", `/v1/rules/${id}`, { body: { ...rule(), enabled: true } }),
      await server.call("PUT", `/v1/rules/${id}`, { body: { enabled: true } }),
      await server.call("PUT", `/v1/rules/${id}`, { body: "no JSON", headers: { "if-match": '"999"' } }),
      await server.call("PUT", `/v1/rules/${id}`),
      await server.call("DELETE", `/v1/rules/${id}`, { headers: { "if-match": '"999"' } }),
      await server.call("PATCH", `/v1/rules/${id}`, { body: { severity: "info" } }),
    ];
    for (const { status, body } of answers) {
      expect(status).toBe(403);
      expect(body.error.code).toBe("builtin_rule");
    }
  });

  test("is disabled and given exceptions, which survive a restart", async () => {
    const { id } = await builtin();
    await server.call("PATCH", `/v1/rules/${id}`, { body: { enabled: false } });
    const exception = { conditions: [{ field: "raw.host", equals: "lab" }], reason: "a test bench" };
    const added = await server.call("POST", `/v1/rules/${id}/exceptions`, { body: exception });
    expect(added.status).toBe(201);
    expect(added.body.data).toMatchObject({ ...exception, author: "test", expires_at: null });
    server = await server.restart();
    const kept = (await server.call("GET", `/v1/rules/${id}`)).body.data;
    expect(kept.enabled).toBe(false);
    expect(kept.exceptions).toEqual([added.body.data]);
    const path = `/v1/rules/${id}/exceptions/${added.body.data.id}`;
    expect((await server.call("DELETE", path)).body.data).toEqual({ id: added.body.data.id, deleted: true });
    expect((await server.call("DELETE", path)).status).toBe(404);
    const { data } = (await server.call("PATCH", `/v1/rules/${id}`, { body: { enabled: true } })).body;
    expect(data).toMatchObject({ enabled: true, exceptions: [] });
  });
});

test("an exception that has already expired or names an unknown source is refused with its path", async () => {
  const { id } = await create();
  const body = {
    conditions: [{ any: [{ field: "source", equals: "elsewhere" }] }],
    reason: "a test bench",
    expires_at: new Date(Date.now() - 1000).toISOString(),
  };
  const answer = await server.call("POST", `/v1/rules/${id}/exceptions`, { body });
  expect(answer.status).toBe(400);
  expect(faults(answer)).toEqual(["conditions[0].any[0].equals", "expires_at"]);
});

describe("the list of rules", () => {
  test("is filtered, paged by number and by cursor, and ordered by name", async () => {
    for (const n of ["c", "a", "b"]) {
      const more = { name: `walk.${n}`, tags: ["walked"], severity: n === "b" ? "high" : "low", enabled: n !== "c" };
      await create({ ...more, description: `The ${n.toUpperCase()} of them` });
    }
    const names = async (query: string) =>
      (await server.call("GET", `/v1/rules?tag=walked&${query}`)).body.data.map(({ name }: { name: string }) => name);
    expect(await names("")).toEqual(["walk.a", "walk.b", "walk.c"]);
    expect(await names("severity=high")).toEqual(["walk.b"]);
    expect(await names("enabled=false")).toEqual(["walk.c"]);
    expect(await names("search=the+b+of")).toEqual(["walk.b"]);
    expect(await names("source=any&per_page=2&page=2")).toEqual(["walk.c"]);
    expect(await names(`source=any&per_page=100&page=${Number.MAX_SAFE_INTEGER}`)).toEqual([]);
    const first = (await server.call("GET", "/v1/rules?tag=walked&limit=2")).body;
    expect(first.pagination).toMatchObject({ total: 3, next_cursor: first.data[1].id });
    expect(await names(`limit=2&after=${first.pagination.next_cursor}`)).toEqual(["walk.c"]);
  });

  test("is searched like events and alerts: by words in any order, each as a prefix, and by phrases", async () => {
    const description = "Repeated Log-ins from 192.0.2.7 at night, by people who are nowhere near.\n\nCall ΣΑΣ.";
    await create({ name: "found.late_visitor", tags: ["searched"], description });
    await create({ name: "found.early_visitor", tags: ["searched"], description: "Nothing of the kind" });
    const found = async (search: string) => {
      const query = new URLSearchParams({ tag: "searched", search });
      return (await server.call("GET", `/v1/rules?${query}`)).body.data.map(({ name }: { name: string }) => name);
    };
    const late = ["found.late_visitor"];
    const both = ["found.early_visitor", "found.late_visitor"];
    for (const search of ["night repeat", "LATE", "visitor log-in", "n near", "192.0.2.7", "found.late_v", "σας"]) {
      expect(await found(search), search).toEqual(late);
    }
    for (const search of ["visitor", "FOUND", "found visit", "n"]) expect(await found(search), search).toEqual(both);
    expect(await found('"at night"')).toEqual(late);
    expect(await found('visitor "nowhere near"')).toEqual(late);
    for (const search of ['"night at"', '"at nigh"', "isitor", "92.0.2.7", "0.2.7", "night kind", "evt_none"]) {
      expect(await found(search), search).toEqual([]);
    }
  });

  test.each([
    "enabled=yes",
    "search=***",
    "source=elsewhere",
    "severity=urgent",
    "after=rule_none",
    "per_page=101",
    "tags=x",
    "page=1&limit=2",
  ])("refuses %s by name", async (query) => {
    const answer = await server.call("GET", `/v1/rules?${query}`);
    expect(answer.status).toBe(400);
    expect(faults(answer)).toEqual([query.split("=")[0]]);
  });

  test("a rule that does not exist is not found by any method", async () => {
    for (const [method, body] of [
      ["GET"],
      ["DELETE"],
      ["PATCH", { enabled: true }],
      ["PUT", { ...rule(), enabled: true }],
    ] as const) {
      expect((await server.call(method, "/v1/rules/rule_none", { body })).status).toBe(404);
    }
  });

  test("a key needs the scope of the call", async () => {
    const reader = (await server.addKey({ scopes: ["rules:read"] })).secret;
    expect((await server.call("GET", "/v1/rules", { key: reader })).status).toBe(200);
    const refused = await server.call("POST", "/v1/rules", { key: reader, body: rule() });
    expect(refused.status).toBe(403);
    expect(refused.body.error.message).toContain("rules:write");
  });
});
