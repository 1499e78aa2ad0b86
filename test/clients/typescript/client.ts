import createClient from "openapi-fetch";
import type { components, paths } from "./api.ts";

// A program that uses the client that openapi-typescript and openapi-fetch generate from the document. Each line on standard
// output is a step that succeeded; the first failure ends the program.

const DEADLINE_MS_MAX = 60_000;
const LANGUAGE = "typescript";

const address = process.env["TOCSIN_ADDRESS"]!;
const headers = { authorization: `Bearer ${process.env["TOCSIN_KEY"]}` };
const signal = AbortSignal.timeout(DEADLINE_MS_MAX);
const client = createClient<paths>({ baseUrl: address, headers, signal });

function report(step: string, detail: string): void {
  process.stdout.write(`${step}: ${detail}\n`);
}

/** The body of the response; throws the error that the document describes. */
function must<Body>(answer: { data?: Body; error?: components["schemas"]["ErrorResponse"] }): NonNullable<Body> {
  if (answer.error) throw new Error(`${answer.error.error.code}: ${answer.error.error.message}`);
  if (answer.data === undefined || answer.data === null) throw new Error("an answer without a body");
  return answer.data;
}

/** The data of the first alert message. Generators leave reading server-sent events to the program. */
async function firstAlert(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<components["schemas"]["Alert"]> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const messages = (rest + text).split("\n\n");
    rest = messages.pop()!;
    for (const lines of messages.map((message) => message.split("\n"))) {
      const data = lines.find((line) => line.startsWith("data: "));
      if (data && lines.includes("event: alert")) return JSON.parse(data.slice("data: ".length));
    }
  }
  throw new Error("the stream ended without an alert");
}

const condition: components["schemas"]["Condition"] = { field: "type", equals: `client_${LANGUAGE}` };
const rule: components["schemas"]["NewRule"] = {
  name: `clients.${LANGUAGE}`,
  description: "Two events of a generated client",
  severity: "high",
  conditions: [{ any: [condition, { field: "raw.attempts", gt: 1000 }] }],
  threshold: { count: 2, group_by: "raw.user" },
  window: "5m",
  actions: [{ alert: { channels: [] } }],
};

const made = must(await client.POST("/v1/rules", { body: rule })).data;
if (made.threshold?.group_by !== "raw.user") throw new Error("the rule came back without its group_by");
report("create a rule", made.id);

let page = 1;
let rules = 0;
for (let pages = 1; page <= pages; page++) {
  const list = must(await client.GET("/v1/rules", { params: { query: { page, per_page: 100 } } }));
  pages = list.pagination.total_pages;
  rules += list.data.length;
}
report("list rules", `${rules}, built-in ones included`);

const stream = must(
  await client.GET("/v1/stream", {
    params: { query: { kinds: "alerts", rule_name: rule.name } },
    parseAs: "stream",
  }),
);
// Read from the start: Node cancels an unread body once its response is garbage-collected.
const firstTold = firstAlert(stream);

const refused = await client.POST("/v1/events", { body: { type: "", source: "custom", data: {} } });
const fault = refused.error?.error.details?.[0];
if (refused.response.status !== 400 || fault?.field !== "type") throw new Error("a bad event was not refused");
report("read an error", `${fault.field}: ${fault.message}`);

const ids: string[] = [];
for (const attempts of [1, 2]) {
  const body = { type: `client_${LANGUAGE}`, source: "custom", data: { user: "ann", attempts } } as const;
  ids.push(must(await client.POST("/v1/events", { body })).data.id);
}
report("submit events", ids.join(", "));

const events = must(await client.GET("/v1/events", { params: { query: { type: `client_${LANGUAGE}` } } }));
if (events.pagination.total !== 2 || !events.data.every(({ id }) => ids.includes(id)))
  throw new Error("events missing");
report("list events", `${events.pagination.total}, the newest of ${events.data[0]!.timestamp}`);

const search = { query: { bool: { must: [condition] } }, aggs: { attempts: { stats: { field: "raw.attempts" } } } };
const { aggregations } = must(await client.POST("/v1/events/search", { body: search })).data;
const { attempts } = aggregations;
if (!attempts || !("max" in attempts) || attempts.max !== 2) throw new Error("the aggregation is wrong");
report("search", `at most ${attempts.max} attempts`);

const told = await firstTold;
if (told.rule_name !== rule.name) throw new Error(`the stream told of ${told.rule_name}`);
report("read the stream", `an alert of ${told.rule_name}`);

const alerts = must(await client.GET("/v1/alerts", { params: { query: { rule_name: rule.name, status: "open" } } }));
const alert = alerts.data[0];
if (alerts.data.length !== 1 || alert?.severity !== "high") throw new Error("there is not one alert");
report("list alerts", `${alert.id}, ${alert.status}`);

const time_range = { from: new Date(Date.now() - 3_600_000).toISOString(), to: new Date().toISOString() };
const simulation = must(await client.POST("/v1/rules/simulate", { body: { rule, time_range } })).data;
if (simulation.matches !== 2 || simulation.alerts !== 1) throw new Error("the simulation found something else");
report("simulate the rule", `${simulation.matches} matches, ${simulation.alerts} alert`);

const resolved = must(
  await client.POST("/v1/alerts/{id}/resolve", {
    params: { path: { id: alert.id } },
    body: { resolution: "benign", actions_taken: ["nothing"] },
  }),
).data;
if (resolved.status !== "resolved" || resolved.related_events.length !== 2) throw new Error("not resolved");
report("resolve the alert", `${resolved.status}, ${resolved.resolution}`);
process.exit(0);
