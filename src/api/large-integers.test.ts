import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type Answer, type TestServer } from "../../test/api-server.ts";

// Integers beyond 2^53 keep every digit everywhere. Bodies and responses are compared as text, because JSON.parse would
// round them.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer({ settings: { rateLimits: false } });
});
afterAll(() => server.close());

const post = async (path: string, body: string, contentType = "application/json") => {
  const answer = await server.call("POST", path, { body, headers: { "content-type": contentType } });
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer;
};
const get = async (path: string) => {
  const answer = await server.call("GET", path);
  expect(answer.status, answer.text).toBe(200);
  return answer;
};
const submission = (type: string, data: string) => `{"type":"${type}","source":"custom","data":${data}}`;
const submit = async (type: string, data: string): Promise<string> =>
  (await post("/v1/events", submission(type, data))).body.data.id as string;
/** All values under `name` in a response. */
const shown = ({ text }: Answer, name: string) => [
  ...text.matchAll(new RegExp(`"${name}":(-?[\\d.eE+]+|"[^"]*")`, "g")),
];
const values = (answer: Answer, name: string) => shown(answer, name).map(([, value]) => value);
const search = (type: string, more: string, rest = "") =>
  post("/v1/events/search", `{"query":{"bool":{"must":[{"field":"type","equals":"${type}"}${more}]}}${rest}}`);

const until = async <Value>(ask: () => Promise<Value | undefined>): Promise<Value> => {
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

describe("a submitted integer", () => {
  test("is returned digit by digit: in the response, by its id, in the list and in a search", async () => {
    const data = '{"id":18446744073709551615,"at":[1763364467123456789,-9223372036854775809]}';
    const made = await post("/v1/events", submission("large.one", data));
    expect(made.text).toContain(`"raw":${data}`);
    const { id } = made.body.data;
    expect((await get(`/v1/events/${id}`)).text).toContain(`"raw":${data}`);
    expect((await get("/v1/events?type=large.one")).text).toContain(`"raw":${data}`);
    expect((await search("large.one", "")).text).toContain(`"raw":${data}`);
  });

  test.each([
    ["lines", (items: string[]) => items.join("\n"), "application/x-ndjson"],
    ["an array", (items: string[]) => `[${items.join(",")}]`, "application/json"],
    ["an array with spaces", (items: string[]) => `[ ${items.join(" ,\n ")} ]`, "application/json"],
  ])("is returned from a batch that is %s", async (kind, write, contentType) => {
    const type = `large.batch ${kind}`;
    const items = ['{"n":9007199254740993}', '{ "n": 12 }', '{"n":1e22}', '{"n":-18446744073709551616}'];
    const answer = await post("/v1/events/batch", write(items.map((data) => submission(type, data))), contentType);
    expect(answer.body.data).toMatchObject({ accepted: 4, rejected: [] });
    expect(values(await search(type, "", ',"sort":{"raw.n":"asc"}'), "n")).toEqual([
      "-18446744073709551616",
      "12",
      "9007199254740993",
      "10000000000000000000000",
    ]);
  });

  test("is filtered, sorted, counted and found by its exact value", async () => {
    const all = ["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "1.5"];
    for (const n of all) await submit("large.asked", `{"n":${n},"list":["x",${n}]}`);
    const found = async (test: string) => values(await search("large.asked", `,${test}`), "n").sort();
    expect(await found('{"field":"raw.n","equals":9007199254740993}')).toEqual(["9007199254740993"]);
    expect(await found('{"field":"raw.list","equals":9007199254740992}')).toEqual(["9007199254740992"]);
    expect(await found('{"field":"*","equals":-9007199254740993}')).toEqual(["-9007199254740993"]);
    expect(await found('{"field":"raw.n","in":[1.5,9007199254740992]}')).toEqual(["1.5", "9007199254740992"]);
    expect(await found('{"field":"raw.n","gt":9007199254740992}')).toEqual(["9007199254740993"]);
    expect(await found('{"field":"raw.n","gte":9007199254740991.0}')).toEqual(all.slice(0, 3));
    expect(await found('{"field":"raw.n","lt":-9007199254740992}')).toEqual(["-9007199254740993"]);
    expect(await found('{"field":"raw.n","lte":1e300}')).toEqual([...all].sort());
    expect(await found('{"field":"raw.n","not_equals":9007199254740993}')).toHaveLength(4);
    expect(await found('{"field":"raw.n","equals_field":"raw.list"}')).toHaveLength(5);
    expect(values(await get("/v1/events?type=large.asked&search=9007199254740993"), "n").sort()).toEqual([
      "-9007199254740993",
      "9007199254740993",
    ]);
    const aggs =
      ',"limit":0,"aggs":{"terms":{"terms":{"field":"raw.n"}},"stats":{"stats":{"field":"raw.n"}},"different":{"cardinality":{"field":"raw.n"}}}';
    const figures = await search("large.asked", "", aggs);
    expect(values(figures, "key").sort()).toEqual([...all].sort());
    expect(values(figures, "min")).toEqual(["-9007199254740993"]);
    expect(values(figures, "max")).toEqual(["9007199254740993"]);
    expect(figures.body.data.aggregations.different.value).toBe(5);
  });

  test("is exported in every format, as whole events or by fields", async () => {
    // The columns of well-known fields are doubles in Parquet.
    await submit("large.export", '{"id":18446744073709551615,"signature_id":123456789012345678901234567890}');
    const exported = async (format: string, more = "") => {
      const query =
        '"query":{"bool":{"must":[{"field":"raw.id","equals":18446744073709551615},{"field":"type","equals":"large.export"}]}}';
      const range = '"time_range":{"from":"2000-01-01","to":"2100-01-01"}';
      const made = await post("/v1/events/export", `{"format":"${format}",${query},${range}${more}}`);
      const done = await until(async () => {
        const { data } = (await get(`/v1/events/exports/${made.body.data.id}`)).body;
        return data.status === "completed" || data.status === "failed" ? data : undefined;
      });
      expect(done).toMatchObject({ status: "completed", row_count: 1 });
      return (await get(done.download_url)).text;
    };
    const fields = ',"fields":["type","raw.id"]';
    expect(await exported("json")).toContain('"id":18446744073709551615');
    expect(await exported("ndjson")).toContain('"id":18446744073709551615');
    expect(await exported("ndjson", fields)).toBe('{"type":"large.export","raw.id":18446744073709551615}\n');
    expect(await exported("csv", fields)).toBe("type,raw.id\r\nlarge.export,18446744073709551615\r\n");
    expect(await exported("parquet", fields)).toContain("18446744073709551615");
    expect(await exported("parquet")).toContain('"signature_id":123456789012345678901234567890');
  });

  test("is compared, grouped and reported exactly by a rule, stored or simulated", async () => {
    const rule = (name: string) => `{"name":"${name}","description":"d","title":"id {{raw.id}}","severity":"high",
      "conditions":[{"field":"type","equals":"large.rule"},{"field":"raw.id","gt":9007199254740992}],
      "window":"10m","threshold":{"count":2,"group_by":"raw.id"},
      "actions":[{"alert":{"channels":[]}}]}`;
    const made = await post("/v1/rules", rule("large.rule"));
    expect(made.text).toContain('"gt":9007199254740992');
    expect((await get(`/v1/rules/${made.body.data.id}`)).text).toContain('"gt":9007199254740992');
    for (const id of [
      "9007199254740992",
      "9007199254740992",
      "9007199254740993",
      "9007199254740994",
      "9007199254740993",
    ])
      await submit("large.rule", `{"id":${id}}`);
    const alert = await until(async () => {
      const answer = await get("/v1/alerts?rule_name=large.rule");
      return answer.body.data.length > 0 ? answer : undefined;
    });
    expect(alert.body.data).toHaveLength(1);
    expect(alert.body.data[0].title).toBe("id 9007199254740993");
    const events = await get(`/v1/alerts/${alert.body.data[0].id}`);
    expect(events.text).toContain("9007199254740993");
    const from = new Date(Date.now() - 86_400_000).toISOString();
    const range = `{"from":"${from}","to":"${new Date().toISOString()}"}`;
    const simulated = await post("/v1/rules/simulate", `{"rule":${rule("large.simulated")},"time_range":${range}}`);
    expect(simulated.body.data).toMatchObject({ matches: 3, alerts: 1 });
    expect(simulated.text).toContain('"raw":{"id":9007199254740994}');
  });

  test("is sent on the stream", async () => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { authorization: `Bearer ${server.key.secret}` };
      httpRequest({ host: "127.0.0.1", port: server.port, path: "/v1/stream?kinds=events", headers }, resolve)
        .on("error", reject)
        .end();
    });
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    await submit("large.stream", '{"id":9223372036854775807}');
    await until(() => Promise.resolve(text.includes('"raw":{"id":9223372036854775807}') ? true : undefined));
    response.destroy();
  });

  test("survives a restart", async () => {
    const id = await submit("large.kept", '{"id":9223372036854775809}');
    server = await server.restart();
    expect((await get(`/v1/events/${id}`)).text).toContain('"raw":{"id":9223372036854775809}');
    expect((await search("large.kept", ',{"field":"raw.id","equals":9223372036854775809}')).body.data).toBeDefined();
  });
});

describe("other values of JSON", () => {
  test.each([
    ['{"n":1e400}', '{"n":"1e400"}'],
    ['{"n":-1E+400}', '{"n":"-1E+400"}'],
    ['{"n":12345678901234567.5}', '{"n":"12345678901234567.5"}'],
    ['{"n":1700000000.123456789}', '{"n":1700000000.1234567}'],
    ['{"n":1e-400}', '{"n":0}'],
    ['{"t":"\\ud83d half"}', '{"t":"\ufffd half"}'],
    ['{"\\udc00":1}', '{"\ufffd":1}'],
    ['{"a":{"b":1},"a":{"b":1}}', '{"a":{"b":1}}'],
  ])("%s is kept as %s", async (data, kept) => {
    const id = await submit("large.odd", data);
    expect((await get(`/v1/events/${id}`)).text).toContain(`"raw":${kept}`);
    for (const write of [(item: string) => item, (item: string) => `[${item}]`]) {
      const contentType = write("") === "" ? "application/x-ndjson" : "application/json";
      const answer = await post("/v1/events/batch", write(submission("large.odd", data)), contentType);
      expect((await get(`/v1/events/${answer.body.data.ids[0]}`)).text).toContain(`"raw":${kept}`);
    }
  });

  test("a number that is not valid for a request parameter is refused with its path", async () => {
    const body = '{"query":{},"limit":9007199254740993,"aggs":{"a":{"terms":{"field":"type","size":1e30}}}}';
    const answer = await server.call("POST", "/v1/events/search", { body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.details).toEqual([
      { field: "aggs.a.terms.size", message: "must be a number within ±9007199254740991" },
      { field: "limit", message: "must be a number within ±9007199254740991" },
    ]);
  });
});

describe("collected data", () => {
  const eve = (more: string) =>
    `{"timestamp":"2026-11-15T08:29:00.000000+0000","event_type":"alert","src_ip":"192.0.2.1","dest_ip":"198.51.100.2",` +
    `"alert":{"signature":"made up","signature_id":7,"severity":1,"action":"allowed","category":"x"},${more}}`;

  test.each([
    ['"flow_id":18446744073709551615', '"flow_id":18446744073709551615'],
    ['"n":1e22', '"n":10000000000000000000000'],
    ['"n":1e400', '"n":"1e400"'],
    ['"t":"\\ud83d half"', '"t":"\ufffd half"'],
    ['"a":1,"a":2', '"a":2'],
  ])("EVE with %s becomes an event with %s, as one, as many and as lines", async (sent, kept) => {
    for (const [body, contentType] of [
      [eve(sent), "application/json"],
      [`[${eve(sent)}]`, "application/json"],
      [`${eve(sent)}\n`, "application/x-ndjson"],
    ] as const) {
      const { ids } = (await post("/v1/collect/eve", body, contentType)).body.data;
      expect((await get(`/v1/events/${ids[0]}`)).text).toContain(kept);
    }
  });

  test("the body of a webhook keeps its integers, also under well-known names", async () => {
    const body =
      '{"name":"Made Up","app":"network","parameters":{"cn1":1763364467123456789},"serial":18446744073709551615}';
    const { ids } = (await post("/v1/collect/network", body)).body.data;
    const { text } = await get(`/v1/events/${ids[0]}`);
    expect(text).toContain('"serial":18446744073709551615');
    expect(text).toContain('"cn1":1763364467123456789');
  });

  test("a CEF line keeps its numbers", async () => {
    const line = "CEF:0|Vendor|Product|1.0|100|Made Up|5|in=9223372036854775807 cnt=5";
    const { ids } = (await post("/v1/collect/syslog", line, "text/plain")).body.data;
    expect((await get(`/v1/events/${ids[0]}`)).text).toContain('"in":9223372036854775807,"cnt":5');
  });
});
