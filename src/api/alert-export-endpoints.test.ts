import { beforeAll, describe, expect, test } from "vitest";
import { alertServer, fieldsOf } from "../../test/alert-server.ts";
import { eventually } from "../../test/detection.ts";
import { readCsv } from "../exports/csv-reader.fixture.ts";
import { ALERT_EXPORT_COLUMNS } from "../model/alert-export.ts";

const { clock, current, raise, post, get } = alertServer();

const call = (method: string, path: string, body?: unknown, key?: string) =>
  current.server.call(method, path, { body, ...(key !== undefined && { key }) });
const finished = (id: string) =>
  eventually(
    async () => (await call("GET", `/v1/alerts/exports/${id}`)).body.data,
    ({ status }) => expect(["completed", "failed"]).toContain(status),
  );
const exported = async (body: object) => {
  const made = await call("POST", "/v1/alerts/export", body);
  expect(made.status, made.text).toBe(201);
  expect(made.headers.location).toBe(`/v1/alerts/exports/${made.body.data.id}`);
  const done = await finished(made.body.data.id);
  expect(done.error).toBeNull();
  return { done, file: await call("GET", done.download_url) };
};

const ids: string[] = [];
beforeAll(async () => {
  for (let i = 0; i < 450; i++) {
    clock.ms += 1000;
    const title = i === 449 ? "=HYPERLINK(1)" : `Gate ${i}`;
    ids.unshift(await raise({ name: "export.rule", severity: i % 3 === 0 ? "high" : "low", title }));
  }
  await post(`${ids[0]}/resolve`, { resolution: "benign", actions_taken: ["closed it", "told them"] });
  await call("PUT", `/v1/alerts/${ids[0]}/tags`, { tags: ["b", "a"] });
});

describe("an export of alerts", () => {
  test("has all fields of the matching alerts, newest first", async () => {
    const { done, file } = await exported({ format: "ndjson", query: { rule_name: "export.rule" } });
    expect(done).toMatchObject({ status: "completed", format: "ndjson", row_count: 450 });
    expect(file.headers["content-disposition"]).toBe(`attachment; filename="alerts-${done.id}.ndjson"`);
    const rows = file.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ id }) => id)).toEqual(ids);
    const { timeline: _t, related_events: _r, related_events_total: _n, match: _m, ...own } = await get(ids[0]!);
    expect(rows[0]).toEqual(own);
  });

  test("has the same columns for every alert in a spreadsheet, and no formulas", async () => {
    const { file } = await exported({ format: "csv", query: { rule_name: ["export.rule"], severity: "low" } });
    const [header, newest, ...others] = readCsv(file.text);
    expect(header).toEqual(ALERT_EXPORT_COLUMNS);
    expect(others).toHaveLength(299);
    const cell = (name: string) => newest![header!.indexOf(name)];
    expect(["id", "title", "tags", "actions_taken", "group.value", "rule.tags", "event_count"].map(cell)).toEqual([
      ids[0],
      "'=HYPERLINK(1)",
      "a; b",
      "closed it; told them",
      "192.0.2.17",
      "attack.t1110",
      "1",
    ]);
  });

  test("has the named fields, of the alerts that a search finds", async () => {
    const query = { rule_name: "export.rule", search: '"gate 44"' };
    const { file } = await exported({
      format: "json",
      query,
      fields: ["title", "group.value", "ai_analysis.threat_score"],
    });
    expect(JSON.parse(file.text)).toEqual([
      { title: "Gate 44", "group.value": "192.0.2.17", "ai_analysis.threat_score": null },
    ]);
  });

  test("is also a Parquet file", async () => {
    const { done, file } = await exported({ format: "parquet", query: { tag: "a" } });
    expect(done).toMatchObject({ format: "parquet", row_count: 1 });
    expect(file.text.slice(0, 4)).toBe("PAR1");
  });

  test.each([
    [{}, ["format"]],
    [{ format: "xml" }, ["format"]],
    [{ format: "csv", time_range: {} }, ["time_range"]],
    [{ format: "csv", query: { status: "shut" } }, ["query.status"]],
    [{ format: "csv", query: { unknown: "x" } }, ["query.unknown"]],
    [{ format: "csv", fields: [] }, ["fields"]],
    [{ format: "csv", fields: ["id", "raw.a", "rule..id"] }, ["fields[1]", "fields[2]"]],
    [{ format: "csv", fields: ["id", "id"] }, ["fields"]],
  ])("refuses %j, naming %j", async (body, named) => {
    const answer = await call("POST", "/v1/alerts/export", body);
    expect([answer.status, fieldsOf(answer)]).toEqual([400, named]);
  });

  test("exists for alerts alone, and for keys that may read them", async () => {
    const { done } = await exported({ format: "csv", query: { tag: "a" } });
    for (const path of ["", "/download"]) {
      expect((await call("GET", `/v1/events/exports/${done.id}${path}`)).status).toBe(404);
    }
    expect((await call("DELETE", `/v1/events/exports/${done.id}`)).status).toBe(404);
    const { secret } = await current.server.addKey({ scopes: ["events:read"] });
    expect((await call("GET", `/v1/alerts/exports/${done.id}/download`, undefined, secret)).status).toBe(403);
    expect((await call("POST", "/v1/alerts/export", { format: "csv" }, secret)).status).toBe(403);
    const time_range = { from: "2000-01-01", to: "2100-01-01" };
    const ofEvents = (await call("POST", "/v1/events/export", { format: "csv", time_range })).body.data;
    expect((await call("GET", `/v1/alerts/exports/${ofEvents.id}`)).status).toBe(404);
    expect((await call("DELETE", `/v1/alerts/exports/${done.id}`)).body.data).toEqual({ id: done.id, deleted: true });
    expect((await call("GET", done.download_url)).status).toBe(404);
  });

  test("resumes after a restart", async () => {
    const { done } = await exported({ format: "ndjson", query: { rule_name: "export.rule" } });
    const { exports } = current.server.store;
    const { id, completedAt, ...job } = (await exports.get(done.id))!;
    expect(completedAt).not.toBeNull();
    const interrupted = `${id.slice(0, -4)}ffff`;
    await exports.put({
      ...job,
      id: interrupted,
      completedAt: null,
      rowCount: null,
      sizeBytes: null,
      status: "running",
    });
    current.server = await current.server.restart();
    expect(await finished(interrupted)).toMatchObject({ status: "completed", row_count: 450 });
    expect((await call("GET", `/v1/alerts/exports/${id}`)).body.data).toEqual(done);
  });
});
