import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../../test/api-server.ts";
import { fieldsOf } from "../../test/alert-server.ts";
import { alertsOf, eventually, uniqueType } from "../../test/detection.ts";
import { readCsv } from "../exports/csv-reader.fixture.ts";
import { casesFile } from "../store/files/layout.ts";

// The entities of alerts on the real server: from events through detection to lists, filters and the stream.

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer();
});
afterAll(() => server.close());

const rule = { name: "entities.logins" };
const type = uniqueType();
const submit = async (raw: object, timestamp?: string): Promise<string> => {
  const body = { type, source: "custom", data: raw, ...(timestamp && { timestamp }) };
  return (await server.call("POST", "/v1/events", { body })).body.data.id as string;
};
const list = async (query: string) => {
  const { body } = await server.call("GET", `/v1/alerts?rule_name=${rule.name}&${query}`);
  return body.data.map(({ group }: any) => group.value) as string[];
};

describe("an alert", () => {
  const events: string[] = [];

  beforeAll(async () => {
    const created = await server.call("POST", "/v1/rules", {
      body: {
        ...rule,
        description: "Logins.",
        severity: "high",
        conditions: [{ field: "type", equals: type }],
        window: "10m",
        threshold: { count: 2, group_by: "raw.src_ip" },
        actions: [{ alert: { channels: [] } }],
      },
    });
    expect(created.status).toBe(201);
    events.push(await submit({ src_ip: "192.0.2.1", user: "Eva" }));
    // The first event is in an earlier chunk than the one that fires.
    await eventually(
      async () => (await server.call("GET", `/v1/rules/${created.body.data.id}`)).body.data.stats.matches_24h,
      (matches) => expect(matches).toBe(1),
    );
    events.push(await submit({ src_ip: "192.0.2.1", user: "Eva", door: "Loading dock" }));
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts).toHaveLength(1),
    );
    events.push(await submit({ src_ip: "192.0.2.1", user: "noah", src_mac: "02:00:5E:00:53:01" }));
    await submit({ src_ip: "192.0.2.2" });
    await submit({ src_ip: "192.0.2.2" });
    await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.map(({ event_count }: any) => event_count).sort()).toEqual([2, 3]),
    );
  });

  test("names the entities of all its events, the most frequent first, in lists and in its detail", async () => {
    const alerts = await alertsOf(server, rule);
    const alert = alerts.find(({ group }: any) => group.value === "192.0.2.1");
    expect(alert).toMatchObject({ group: { field: "raw.src_ip", value: "192.0.2.1" }, entities_cut: false });
    expect(alert.entities).toEqual([
      { kind: "address", value: "192.0.2.1", count: 3 },
      { kind: "user", value: "Eva", count: 2 },
      { kind: "user", value: "noah", count: 1 },
      { kind: "device", value: "02:00:5E:00:53:01", count: 1 },
      { kind: "door", value: "Loading dock", count: 1 },
    ]);
    const { body } = await server.call("GET", `/v1/alerts/${alert.id}`);
    expect(body.data).toMatchObject({ group: alert.group, entities: alert.entities, entities_cut: false });
  });

  test("is exported with its entities", async () => {
    const { body } = await server.call("POST", "/v1/alerts/export", {
      body: {
        format: "csv",
        query: { rule_name: rule.name },
        fields: ["group.value", "entities.kind", "entities.value"],
      },
    });
    const { download_url } = await eventually(
      async () => (await server.call("GET", `/v1/alerts/exports/${body.data.id}`)).body.data,
      ({ status }) => expect(status).toBe("completed"),
    );
    expect(readCsv((await server.call("GET", download_url)).text).slice(1)).toEqual([
      ["192.0.2.2", "address", "192.0.2.2"],
      ["192.0.2.1", "address; user; user; device; door", "192.0.2.1; Eva; noah; 02:00:5E:00:53:01; Loading dock"],
    ]);
  });

  test.each([
    ["entity=user:eva", ["192.0.2.1"]],
    ["entity=EVA", ["192.0.2.1"]],
    ["entity=door:eva", []],
    ["entity=192.0.2.2,loading%20dock", ["192.0.2.2", "192.0.2.1"]],
    ["entity=device:02:00:5e:00:53:01", ["192.0.2.1"]],
    ["search=noah", ["192.0.2.1"]],
    ["search=loading", ["192.0.2.1"]],
    ["assignee=none", ["192.0.2.2", "192.0.2.1"]],
    ["assignee=none&entity=noah", ["192.0.2.1"]],
  ])("is found by %s", async (query, wanted) => {
    expect(await list(query)).toEqual(wanted);
  });

  test("is found by each of its events", async () => {
    for (const id of events) expect(await list(`event_id=${id}`)).toEqual(["192.0.2.1"]);
    expect(await list(`event_id=evt_0,${events[0]}&search=noah`)).toEqual(["192.0.2.1"]);
    expect(await list(`event_id=${events[0]}&entity=192.0.2.2`)).toEqual([]);
    expect(await list("event_id=evt_0")).toEqual([]);
  });

  test("overlaps a range by its events, not by its creation", async () => {
    const alert = (await alertsOf(server, rule)).find(({ group }: any) => group.value === "192.0.2.1");
    const after = (at: string, ms: number) => new Date(Date.parse(at) + ms).toISOString();
    const { first_event_at: first, last_event_at: last } = alert;
    expect(await list(`entity=eva&time=overlap&from=${last}&to=${after(last, 1)}`)).toEqual(["192.0.2.1"]);
    expect(await list(`entity=eva&time=overlap&from=${after(last, 1)}`)).toEqual([]);
    expect(await list(`entity=eva&time=overlap&to=${after(first, 1)}`)).toEqual(["192.0.2.1"]);
    expect(await list(`entity=eva&time=overlap&to=${first}`)).toEqual([]);
    expect(await list(`entity=eva&time=created&to=${after(first, 1)}`)).toEqual([]);
  });

  test("faulty filters are refused by name", async () => {
    const answer = await server.call("GET", "/v1/alerts?time=later&entity=,&event_id=&entities=x");
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer).sort()).toEqual(["entities", "entity", "event_id", "time"]);
    const events = await server.call("GET", "/v1/stream?kinds=events&time=overlap&entity=eva");
    expect(fieldsOf(events).sort()).toEqual(["entity", "time"]);
  });

  test("of an earlier version gets its entities from the stored events after a start", async () => {
    const before = await alertsOf(server, rule);
    server = await server.restart(() => {
      const db = new DatabaseSync(casesFile(server.dataDir));
      db.exec(`UPDATE documents SET document = json_remove(document, '$.entities');
        DROP INDEX alerts_without_entities; ALTER TABLE alerts DROP COLUMN entities;
        ALTER TABLE alerts DROP COLUMN group_field; ALTER TABLE alerts DROP COLUMN group_value;
        ALTER TABLE alerts DROP COLUMN threat_score; DROP TABLE alert_events; DELETE FROM alert_terms WHERE word = 'noah';
        ALTER TABLE alerts DROP COLUMN tags; DROP TABLE views; DROP TABLE older_events;
        DROP INDEX alerts_definition; ALTER TABLE alerts DROP COLUMN definition_id; DROP TABLE definitions;
        PRAGMA user_version = 1;`);
      db.close();
    });
    const filled = await eventually(
      () => alertsOf(server, rule),
      (alerts) => expect(alerts.flatMap(({ entities }: any) => entities)).toHaveLength(6),
    );
    expect(filled).toEqual(before);
    expect(await list("entity=noah")).toEqual(["192.0.2.1"]);
    expect(await list("search=noah")).toEqual(["192.0.2.1"]);
    expect(await list(`event_id=${events[0]}`)).toEqual(["192.0.2.1"]);
  });
});
