import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { loadSettings } from "../../config/config.ts";
import type { Message } from "../message.ts";
import { closedMessageOf, messageOf, NO_CHANNELS, someAlert, startHttpPeer, type HttpPeer } from "../peers.fixture.ts";
import { openChannels } from "../open-channels.ts";
import { TEMPLATE_ESCAPES, TEMPLATE_FIELDS } from "../message-template.ts";

let peer: HttpPeer;
beforeAll(async () => {
  peer = await startHttpPeer();
});
afterAll(() => peer.close());
beforeEach(() => void peer.received.splice(0));

type Settings = Partial<typeof NO_CHANNELS>;
const channel = (httpTemplate: string, more: Settings = {}) =>
  openChannels({ ...NO_CHANNELS, httpUrl: peer.url, httpTemplate, ...more }).get("http")!;
const send = async (httpTemplate: string, message: Message, more: Settings = {}) => {
  expect(await channel(httpTemplate, more).send(message, new AbortController().signal)).toEqual({ kind: "sent" });
  return peer.received.at(-1)!;
};
const faultsOf = (flags: Record<string, string>) => {
  const given = {
    "notifications.http_url": "https://example.com/",
    "notifications.http_template": "{{title}}",
    ...flags,
  };
  const outcome = loadSettings({ flags: given, environment: {}, workingFolder: "/" });
  return "faults" in outcome ? outcome.faults.map(({ path, message }) => `${path} ${message}`) : [];
};

test("fields are inserted into the body, with the method, the type and the authorization of the settings", async () => {
  const template = '{"text":"{{headline}}","n":{{count|json}},"tags":{{tags|json}},"by":{{resolved_by|json}}}';
  const more: Settings = { httpMethod: "PUT", httpAuthorization: "Bearer the-token" };
  const { body, method, headers } = await send(template, messageOf([someAlert()]), more);
  expect(body).toEqual({ text: "[high] New alert: Failed logins from 192.0.2.17", n: 1, tags: [], by: null });
  expect([method, headers["content-type"], headers.authorization]).toEqual([
    "PUT",
    "application/json; charset=utf-8",
    "Bearer the-token",
  ]);
});

test("the type of the body decides how fields are escaped, and a field may ask for another escape", async () => {
  const message = messageOf([someAlert({ title: `a&b <"c">` })]);
  const texts = {
    "application/json": `a&b <\\"c\\">`,
    "application/x-www-form-urlencoded": "a%26b%20%3C%22c%22%3E",
    "application/xml": "a&amp;b &lt;&quot;c&quot;&gt;",
    "text/plain": `a&b <"c">`,
  };
  for (const [httpContentType, text] of Object.entries(texts)) {
    const template = httpContentType === "application/json" ? '"{{title}}"' : "{{title}}";
    const { text: sent } = await send(template, message, { httpContentType });
    expect(sent).toBe(httpContentType === "application/json" ? `"${text}"` : text);
  }
  const own = await send("{{title|html}} {{ title | url }} {{title|json}}", message, { httpContentType: "text/plain" });
  expect(own.text).toBe(`a&amp;b &lt;&quot;c&quot;&gt; a%26b%20%3C%22c%22%3E "a&b <\\"c\\">"`);
});

test("fields of the URL are percent-encoded, so that they stay in their place", async () => {
  const httpUrl = `${peer.origin}/hooks/{{severity}}/{{title}}?rule={{rule}}`;
  const { path } = await send("{{text|json}}", messageOf([someAlert({ title: "../../admin?x=1#y" })]), { httpUrl });
  expect(path).toBe("/hooks/high/..%2F..%2Fadmin%3Fx%3D1%23y?rule=site.failed_logins");
});

test("a digest has the fields of its most severe alert and a list; per notification there is no digest", async () => {
  const worst = someAlert({ severity: "critical" });
  const { body } = await send('{"id":"{{alert_id}}","alerts":{{alerts|json}}}', messageOf([someAlert(), worst]));
  expect(body.id).toBe(worst.id);
  expect(body.alerts.map(({ alert }: any) => alert.severity)).toEqual(["critical", "high"]);
  expect([
    channel("{{text|json}}").messageMax,
    channel("{{text|json}}", { httpPer: "notification" }).messageMax,
  ]).toEqual([undefined, 1]);
});

test("every field can be inserted with every escape, also of a resolved alert", async () => {
  const all = Object.keys(TEMPLATE_FIELDS).flatMap((field) =>
    Object.keys(TEMPLATE_ESCAPES).map((escape) => `{{${field}|${escape}}}`),
  );
  const settings: Settings = { httpContentType: "text/plain" };
  await send(all.join("\n"), closedMessageOf(someAlert(), { comment: "a drill" }), settings);
  await send(all.join("\n"), messageOf([someAlert({ group: null })]), settings);
  expect(peer.received[0]!.text).toContain("a drill");
  expect(peer.received[1]!.text).not.toMatch(/\{\{|undefined/);
});

test("text from events stays within its string, whatever it contains", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), async (title, description) => {
      const alert = someAlert({ title, description: `{{url}}${description}`, group: { field: title, value: title } });
      const template = '{"a":"{{title}} {{description}}","b":{{group_value|json}},"c":"{{group_field}}"}';
      const { body } = await send(template, messageOf([alert]));
      expect(Object.keys(body)).toEqual(["a", "b", "c"]);
      expect(body.a).toContain("{{url}}");
    }),
    { numRuns: 20 },
  );
});

test("a template is checked at start", () => {
  const flag = (template: string, type = "text/plain") =>
    faultsOf({ "notifications.http_template": template, "notifications.http_content_type": type });
  const path = "notifications.http_template";
  expect(flag("{{title}} and {{ severity | url }}")).toEqual([]);
  expect(flag("{{titel}}")).toEqual([`${path} has the unknown field "titel"; did you mean title?`]);
  expect(flag("{{constructor}}")[0]).toContain('unknown field "constructor"');
  expect(flag("{{title|jsn}}")).toEqual([`${path} has the unknown escape "jsn"; did you mean json?`]);
  expect(flag("{{title|url|json}}")).toEqual([`${path} has two escapes for title`]);
  expect(flag("{{title")).toEqual([`${path} has {{ without }}`]);
  expect(flag("{{title}}".repeat(201))[0]).toContain("more than 200 fields");
  expect(flag('{"a":{{title}}}', "application/json")[0]).toContain(`${path} does not become JSON`);
  expect(flag('{"a":"{{title|text}}"}', "application/json")[0]).toContain("does not become JSON");
  expect(flag('{"a":"{{title}}","n":{{count}},"x":{{tags|json}}}', "application/json")).toEqual([]);
  const url = (text: string) =>
    faultsOf({ "notifications.http_url": text, "notifications.http_content_type": "text/plain" });
  expect(url("https://{{title}}.example/")[0]).toMatch(/has a field before its path|must be a URL/);
  expect(url("https://ann:{{title}}@example.com/")[0]).toContain("has a field before its path");
  expect(url("https://example.com/{{title|text}}")[0]).toContain("another escape than url");
});

test("an answer that repeats the authorization does not reveal it", async () => {
  const echo = await startHttpPeer((_, { headers }) => ({ status: 401, text: `no ${headers.authorization}` }));
  const outcome = await channel("{{text|json}}", {
    httpUrl: echo.url,
    httpAuthorization: "Bearer the-token-of-ours",
  }).send(messageOf([someAlert()]), new AbortController().signal);
  await echo.close();
  expect(outcome).toMatchObject({ kind: "refused", error: expect.stringMatching(/^answered 401: no /) });
  expect(JSON.stringify(outcome)).not.toContain("the-token-of-ours");
});
