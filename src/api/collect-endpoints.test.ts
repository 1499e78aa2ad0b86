import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changed, openTestServer, type TestServer } from "../../test/api-server.ts";
import { signBody } from "../lib/signature.ts";
import { loadSettings } from "../config/config.ts";
import type { Scope } from "../model/key.ts";
import { StoreUnavailable } from "../store/ports/store-errors.ts";
import type { Store } from "../store/ports/store.ts";

// Bodies through the real server, with a controlled clock for old signatures.

const SECRET = "a secret of the access controller";
const START_MS = Date.parse("2026-11-15T08:30:00Z");

let server: TestServer;
let nowMs = START_MS;

beforeAll(async () => {
  const loaded = loadSettings({ environment: {}, workingFolder: "/" });
  if ("faults" in loaded) throw new Error("the defaults have faults");
  const collectors = { ...loaded.settings.collectors, accessSecret: SECRET };
  server = await openTestServer({ settings: { collectors }, now: () => nowMs });
});
afterAll(() => server.close());

const post = (path: string, body: unknown, options: object = {}) =>
  server.call("POST", `/v1/collect/${path}`, { body, ...options });
const webhook = async (name: string) =>
  (await server.call("GET", "/v1/collectors")).body.data.webhooks.find((one: any) => one.name === name);
const withScopes = async (...scopes: Scope[]) => (await server.addKey({ scopes })).secret;

const UNLOCK = (door: string) => ({
  event: "access.door.unlock",
  event_object_id: "4a98adf6-dbb8-4312-9b8b-593f6eba8c8e",
  data: {
    location: { id: "d2b87427", location_type: "door", name: door },
    actor: { id: "1", name: "Jane Doe", type: "user" },
    object: { authentication_type: "NFC", result: "Access Granted" },
  },
});
const ALERT = {
  timestamp: "2026-11-15T08:29:00.000000+0000",
  event_type: "alert",
  src_ip: "192.0.2.1",
  dest_ip: "198.51.100.2",
  alert: { signature: "made up", signature_id: 7, severity: 1, action: "allowed", category: "x" },
};

describe("posted items become events", () => {
  test("EVE as JSON, one or many, and as lines; the response lists stored and refused items", async () => {
    const one = await post("eve", ALERT);
    expect(one.status).toBe(200);
    expect(one.body.data).toMatchObject({ accepted: 1, nothing: 0, refused: [] });
    const [id] = one.body.data.ids;
    const event = await server.call("GET", `/v1/events/${id}`);
    expect(event.body.data).toMatchObject({ source: "platform_network", raw: { signature_id: 7 } });

    const headers = { "content-type": "application/x-ndjson" };
    const lines = await post("eve", `${JSON.stringify(ALERT)}\n\nnot json\n${JSON.stringify(ALERT)}\n`, { headers });
    expect(lines.body.data).toMatchObject({ accepted: 2, refused: [{ index: 1, reason: "malformed" }] });
    expect(lines.body.data.ids).toHaveLength(2);
    expect(await webhook("eve")).toMatchObject({ requests: 2, lines: 4, events: 3, refused: { malformed: 1 } });
    expect((await webhook("eve")).last_refusal).toMatchObject({ reason: "malformed", sample: "not json" });
    const { collected } = (await server.call("GET", "/v1/collectors")).body.data;
    expect(collected).toMatchObject({ lines: 4, events: 3, refused: { malformed: 1 } });
  });

  test("syslog lines, as text and as JSON", async () => {
    const headers = { "content-type": "text/plain" };
    const text = await post("syslog", "<13>host app: one\r\n<13>host app: two", { headers });
    expect(text.body.data).toMatchObject({ accepted: 2, refused: [] });
    const json = await post("syslog", ["<13>host app: three", 4]);
    expect(json.body.data).toMatchObject({ accepted: 1, refused: [{ index: 1, reason: "malformed" }] });
  });

  test("a line with invalid UTF-8 is marked like one from a socket", async () => {
    const bytes = Buffer.concat([Buffer.from("<13>host app: caf"), Buffer.from([0xe9]), Buffer.from(" is closed")]);
    const { body } = await post("syslog", bytes, { headers: { "content-type": "text/plain" } });
    const event = await server.call("GET", `/v1/events/${body.data.ids[0]}`);
    expect(event.body.data.raw).toMatchObject({ replaced_bytes: true });
  });

  test("EVE flow records become flows and no events, unless they are too old", async () => {
    const flow = {
      timestamp: "2026-11-15T08:29:00.000000+0000",
      event_type: "flow",
      src_ip: "192.0.2.1",
      src_port: 1,
      dest_ip: "198.51.100.2",
      dest_port: 2,
      proto: "UDP",
      flow: { pkts_toserver: 1, pkts_toclient: 1, bytes_toserver: 60, bytes_toclient: 60 },
    };
    expect((await post("eve", flow)).body.data).toMatchObject({ accepted: 1, ids: [] });
    expect(await webhook("eve")).toMatchObject({ flows: 2 });
    const old = { ...flow, timestamp: "2026-11-15T07:29:00.000000+0000" };
    expect((await post("eve", [flow, old])).body.data).toMatchObject({
      accepted: 1,
      refused: [{ index: 1, reason: "too_late", message: expect.stringContaining("more than 3600 s") }],
    });
    expect(await webhook("eve")).toMatchObject({ flows: 4, refused: { too_late: 1 } });
  });

  test("many items at once, in order", async () => {
    const lines = Array.from({ length: 450 }, (_, n) => `<13>host app: many ${n}`);
    const { body } = await post("syslog", lines);
    expect(body.data.accepted).toBe(450);
    expect(new Set(body.data.ids).size).toBe(450);
  });
});

describe("an item that is too large or invalid does not affect the others", () => {
  const LARGE = "x".repeat(1_100_000);
  const call = (uuid: string, more: object = {}) => ({ uuid, from: "100", to: "101", direction: "out", ...more });

  test("an object past the size of a submission is refused by its index and not parsed", async () => {
    const { body } = await post("talk", [call("l1"), call("l2", { note: LARGE }), call("l3")]);
    expect(body.data).toMatchObject({ accepted: 2, refused: [{ index: 1, reason: "too_long" }] });
    expect(body.data.ids).toHaveLength(2);
    const alone = await post("talk", `{"note":"${LARGE}", and no JSON at all`);
    expect(alone.body.data).toMatchObject({ accepted: 0, refused: [{ index: 0, reason: "too_long" }] });
    expect((await webhook("talk")).last_refusal).toMatchObject({ reason: "too_long" });
    const headers = { "content-type": "application/x-ndjson" };
    const lines = [call("l4", { note: LARGE }), call("l5")].map((one) => JSON.stringify(one)).join("\n");
    const counted = (await post("talk", lines, { headers })).body.data;
    expect(counted).toMatchObject({ accepted: 1, refused: [{ index: 0, reason: "too_long" }] });
  });

  test("the line limit applies to JSON strings too", async () => {
    const { body } = await post("syslog", ["<13>host app: short", `<13>host app: ${"ä".repeat(33_000)}`]);
    expect(body.data).toMatchObject({ accepted: 1, refused: [{ index: 1, reason: "too_long" }] });
    expect(body.data.refused[0].message).toContain("65536 bytes");
  });

  test("one invalid line of JSON is refused, the others are accepted", async () => {
    const headers = { "content-type": "application/x-ndjson" };
    const lines = [JSON.stringify(call("n1")), "{bad", JSON.stringify(call("n2"))].join("\r\n");
    const { status, body } = await post("talk", lines, { headers });
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ accepted: 2, refused: [{ index: 1, reason: "malformed" }] });
  });

  test("a byte order mark before a body is skipped", async () => {
    expect((await post("talk", `\u{feff}${JSON.stringify(call("b1"))}`)).body.data).toMatchObject({ accepted: 1 });
    const headers = { "content-type": "application/x-ndjson" };
    const lines = await post("talk", `\u{feff}${JSON.stringify(call("b2"))}\n`, { headers });
    expect(lines.body.data).toMatchObject({ accepted: 1, refused: [] });
  });
});

describe("items that the store refuses count as new when they are sent again", () => {
  let refusals = 0;
  let refusing: TestServer;
  const around = (store: Store) =>
    changed(store, {
      events: changed(store.events, {
        append: (events) =>
          refusals-- > 0
            ? Promise.reject(new StoreUnavailable("disk_full", "there is no room", 5))
            : store.events.append(events),
      }),
    });
  beforeAll(async () => (refusing = await openTestServer({ around })));
  afterAll(() => refusing.close());
  const send = (name: string, body: unknown) => refusing.call("POST", `/v1/collect/${name}`, { body });
  const typesOf = async (ids: string[]) =>
    Promise.all(ids.map(async (id) => (await refusing.call("GET", `/v1/events/${id}`)).body.data.type));

  test("a camera detection, from its start to its end", async () => {
    const frame = (type: string, more: object) => ({ type, item: { id: "66d1", modelKey: "event", ...more } });
    const begun = frame("add", { type: "smartDetectZone", start: START_MS, camera: "c", smartDetectTypes: ["person"] });
    const ended = frame("update", { end: START_MS + 5000 });
    refusals = 1;
    expect((await send("protect", [begun, ended])).status).toBe(503);
    const told = (await send("protect", begun)).body.data;
    expect(told).toMatchObject({ accepted: 1, nothing: 0 });
    expect(await typesOf(told.ids)).toEqual(["person"]);
    expect((await send("protect", begun)).body.data).toMatchObject({ accepted: 0, nothing: 1 });
    refusals = 1;
    expect((await send("protect", ended)).status).toBe(503);
    expect(await typesOf((await send("protect", ended)).body.data.ids)).toEqual(["detection_ended"]);
  });

  test("a call", async () => {
    const call = { uuid: "c1", from: "100", to: "101", direction: "out" };
    refusals = 1;
    expect((await send("talk", call)).status).toBe(503);
    expect((await send("talk", call)).body.data).toMatchObject({ accepted: 1, nothing: 0 });
  });

  test("flow records are counted once, regardless of how often the alerts beside them are refused", async () => {
    const { alert: _, ...ends } = ALERT;
    const flow = { ...ends, timestamp: new Date().toISOString(), event_type: "flow", proto: "UDP" };
    const counts = { pkts_toserver: 1, pkts_toclient: 0, bytes_toserver: 60, bytes_toclient: 0 };
    const body = [ALERT, { ...flow, flow: counts }];
    refusals = 2;
    for (const status of [503, 503, 200]) expect((await send("eve", body)).status).toBe(status);
    const { text } = await refusing.call("GET", "/metrics");
    expect(text).toContain("tocsin_flows_records_total 1\n");
  });
});

describe("an invalid body", () => {
  test.each([
    ["not JSON", "network", "{", "malformed_json"],
    ["an empty list", "network", [], "validation_error"],
    ["no body", "network", undefined, "validation_error"],
    ["too many items", "syslog", Array.from({ length: 10_001 }, () => "x"), "validation_error"],
  ])("%s", async (_, name, body, code) => {
    const answer = await post(name, body);
    expect(answer).toMatchObject({ status: 400, body: { error: { code } } });
  });

  test("an unknown name is a 404 that lists the known ones", async () => {
    const { status, body } = await post("toaster", {});
    expect(status).toBe(404);
    expect(body.error.message).toContain("network, protect, access, talk, eve, syslog");
  });

  test("unlimited nesting is refused without being parsed", async () => {
    const deep = `${"[".repeat(5000)}${"]".repeat(5000)}`;
    const { status, body } = await post("network", `[{"a":${deep}}]`);
    expect(status).toBe(200);
    expect(body.data.refused).toMatchObject([{ index: 0, reason: "malformed" }]);
  });
});

describe("permissions", () => {
  test("events:write allows every name, collect:<name> only its own", async () => {
    expect((await post("eve", ALERT, { key: await withScopes("events:write") })).status).toBe(200);
    expect((await post("eve", ALERT, { key: await withScopes("collect:eve") })).status).toBe(200);
    const other = await post("eve", ALERT, { key: await withScopes("collect:talk", "events:read") });
    expect(other).toMatchObject({ status: 403, body: { error: { code: "forbidden" } } });
    expect(other.body.error.message).toContain("collect:eve");
    expect((await post("eve", ALERT, { key: null })).status).toBe(401);
  });

  test("a key with only collect scopes can be in the path, without any header", async () => {
    const key = await withScopes("collect:eve", "collect:talk");
    // Bytes are sent without a content type.
    const answer = await fetch(`http://127.0.0.1:${server.port}/v1/collect/eve/${key}`, {
      method: "POST",
      body: new TextEncoder().encode(JSON.stringify(ALERT)),
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-ratelimit-limit")).toBe("1000");
    const text = await answer.text();
    expect((await post(`syslog/${key}`, ["<13>x"], { key: null })).status).toBe(403);
    const toaster = await post(`toaster/${key}`, {}, { key: null });
    expect(toaster.status).toBe(404);
    for (const line of [text, toaster.text, JSON.stringify(server.log), (await server.call("GET", "/metrics")).text])
      expect(line).not.toContain(key.slice(-64));
  });

  test("a webhook with a wrong token is a 401", async () => {
    const { key, secret } = await server.addKey({ scopes: ["collect:eve"] });
    expect((await post(`eve/${secret}`, ALERT, { key: null })).status).toBe(200);
    const another = secret.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    for (const token of [another, key.id, "wrong", `${secret}0`]) {
      const answer = await post(`eve/${token}`, ALERT, { key: null });
      expect(answer, token).toMatchObject({ status: 401, body: { error: { code: "unauthorized" } } });
    }
  });

  test("a stronger, a wrong or a revoked key in the path is refused, even with a valid key in the header", async () => {
    const strong = await withScopes("collect:eve", "events:read");
    const refused = await post(`eve/${strong}`, ALERT, { key: null });
    expect([refused.status, refused.body.error.message]).toEqual([401, expect.stringContaining("collect: scopes")]);
    expect((await post(`eve/${server.key.secret}`, ALERT)).status).toBe(401);
    expect((await post("eve/wrong", ALERT)).status).toBe(401);
    const long = await post(`eve/${strong}${"0".repeat(100)}`, ALERT);
    expect(long.status).toBeGreaterThanOrEqual(400);
    expect(long.text + JSON.stringify(server.log)).not.toContain(strong.slice(-64));
    const weak = await server.addKey({ scopes: ["collect:eve"] });
    expect((await post(`eve/${weak.secret.slice(0, -1)}${weak.secret.endsWith("0") ? "1" : "0"}`, ALERT)).status).toBe(
      401,
    );
    await server.call("DELETE", `/v1/keys/${weak.key.id}`);
    expect((await post(`eve/${weak.secret}`, ALERT)).status).toBe(401);
  });

  test("a path that ends before the key is a 404, with and without a valid key in the header", async () => {
    for (const key of [undefined, null, await withScopes("collect:network")]) {
      const { status, body } = await post("network/", {}, key === undefined ? {} : { key });
      expect([status, body.error.code]).toEqual([404, "not_found"]);
    }
  });

  test("a key that can submit events can grant a collect scope", async () => {
    const key = await withScopes("keys:manage", "events:write");
    const made = await server.call("POST", "/v1/keys", { key, body: { name: "door", scopes: ["collect:access"] } });
    expect(made.status).toBe(201);
    const without = await withScopes("keys:manage");
    const refused = await server.call("POST", "/v1/keys", {
      key: without,
      body: { name: "door", scopes: ["collect:access"] },
    });
    expect(refused.status).toBe(403);
  });
});

describe("with a secret, posts of the access controller must be signed", () => {
  const signed = (text: string, signature: string, options: object = {}) =>
    post("access", text, { headers: { signature }, ...options });
  const text = (door: string) => JSON.stringify(UNLOCK(door));

  test("a valid signature over the exact bytes is accepted", async () => {
    const spaced = JSON.stringify(UNLOCK("spaced"), undefined, 2);
    const answer = await signed(spaced, signBody(SECRET, spaced, nowMs));
    expect(answer.body.data).toMatchObject({ accepted: 1 });
    const event = await server.call("GET", `/v1/events/${answer.body.data.ids[0]}`);
    expect(event.body.data).toMatchObject({ source: "platform_access", raw: { door: "spaced" } });
  });

  test.each([
    ["no signature", () => ""],
    ["a signature with another secret", (body: string) => signBody("another", body, nowMs)],
    ["a signature of another body", () => signBody(SECRET, "{}", nowMs)],
    ["an old signature", (body: string) => signBody(SECRET, body, nowMs - 301_000)],
    ["a signature from the future", (body: string) => signBody(SECRET, body, nowMs + 302_000)],
    ["garbage", () => "t=1,v1=zz"],
  ])("%s is refused, and the sample does not show it", async (_, signatureOf) => {
    const body = text("refused").replace("{", '{"nfc_token":"t0ken","pin_codes":["4711"],');
    const before = (await webhook("access")).refused.bad_signature;
    const answer = await signed(body, signatureOf(body));
    expect(answer).toMatchObject({ status: 401, body: { error: { code: "unauthorized" } } });
    const { refused, last_refusal } = await webhook("access");
    expect(refused.bad_signature).toBe(before + 1);
    expect(last_refusal.sample).toContain('"nfc_token":"(hidden)","pin_codes":"(hidden)",');
    expect(answer.text).not.toContain(SECRET);
  });

  test("a signature just below the maximum age is accepted once and refused as a replay, in any letter case", async () => {
    const body = text("replayed");
    const signature = signBody(SECRET, body, nowMs - 299_000);
    expect((await signed(body, signature)).status).toBe(200);
    expect((await signed(body, signature)).body.error.message).toContain("sent before");
    expect((await signed(body, signature.toUpperCase().replace("T=", "t=").replace("V1=", "v1="))).status).toBe(401);
  });

  test("two concurrent posts with one signature count as one", async () => {
    const body = text("twice");
    const signature = signBody(SECRET, body, nowMs);
    const answers = await Promise.all([signed(body, signature), signed(body, signature)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401]);
  });

  test("a replay across a restart is recognised by its event and stored once", async () => {
    const body = text("restarted");
    const signature = signBody(SECRET, body, nowMs);
    expect((await signed(body, signature)).body.data.ids).toHaveLength(1);
    server = await server.restart();
    const again = await signed(body, signature);
    expect(again).toMatchObject({ status: 401, body: { error: { code: "unauthorized" } } });
    expect(again.body.error.message).toContain("sent before");
    expect((await webhook("access")).refused.bad_signature).toBe(1);
    const { body: found } = await server.call("GET", "/v1/events?search=restarted");
    expect(found.pagination.total).toBe(1);
  });

  test("the error for a body that is not JSON does not quote the body", async () => {
    const answer = await server.call("POST", "/v1/collect/network", { body: '{"a":1,"token":hunter2-secret}' });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: "malformed_json" } } });
    expect(answer.text).not.toContain("hunter2");
    const { last_refusal } = await webhook("network");
    expect(last_refusal).toMatchObject({ message: "Unexpected token 'h'", sample: '{"a":1,"token":"(hidden)"}' });
  });

  test("other names need no signature", async () => {
    expect((await post("talk", { call: 1 })).status).toBe(200);
  });
});
