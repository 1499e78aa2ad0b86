import { isIP } from "node:net";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonValue } from "../../../model/event.ts";
import { FIELD_NAMES } from "../../../model/field-names.ts";
import { eventsOf } from "../context.fixture.ts";
import { event, read } from "./bodies.fixture.ts";
import { BODY_NAMES, BODY_OBJECTS_MAX } from "./webhooks.ts";

describe("any body", () => {
  test("has its secrets redacted at any depth", () => {
    const keys = {
      nfc_token: "s1",
      pinCode: "s2",
      api_key: "s3",
      Authorization: "s4",
      pin_codes: ["s5", { code: "s6" }],
    };
    const body = { event: "access.remote_view", data: { token: "s7", rooms: [{ PIN: 4711, name: "Hall" }], keys } };
    const { raw } = event("access", body);
    expect(JSON.stringify(raw)).not.toMatch(/s[1-7]"|4711/);
    expect(JSON.stringify(raw)).toContain('"PIN":"(hidden)","name":"Hall"');
  });

  test.each(BODY_NAMES)("%s: has only valid, canonical values in well-known fields", (name) => {
    const body = {
      key: "EVT_XX_Foo",
      src_ip: "2001:DB8:0:0::9",
      device_ip: "nowhere",
      src_port: "443",
      dst_port: 99_999,
      src_mac: "02-00-00-AA-BB-CC",
      dst_mac: "none",
      action: "Blocked",
      protocol: "6",
      bytes: "many",
      reason: "",
    };
    const { raw } = event(name, body);
    expect(raw).toMatchObject({
      src_ip: "2001:db8::9",
      device_ip_told: "nowhere",
      src_port: 443,
      dst_port_told: 99_999,
      src_mac: "02:00:00:aa:bb:cc",
      dst_mac_told: "none",
      action: "block",
      protocol: "tcp",
      bytes_told: "many",
    });
    for (const missing of ["device_ip", "dst_port", "dst_mac", "bytes"]) expect(raw).not.toHaveProperty(missing);
  });

  test.each([
    ["passwd", "pwd", "pass", "private_key", "Cookie", "set-cookie", "credentials", "bearer", "privateKey"],
    ["pass_word", "PASS", "user_pass", "dbPass", "dbPwd", "API-Key", "passcodes", "client_secret", "tokens"],
  ])(
    "has values under %s, %s, %s and similar names redacted, but not under names that only sound alike",
    (...secrets) => {
      const others = ["bypass", "compass", "passed", "token_type", "pinned", "spin", "cookie_count"];
      const held = Object.fromEntries([...secrets, ...others].map((name) => [name, `v-${name}`]));
      const { raw } = event("network", { some: held, credentials: { user: { name: "deep" } } });
      const kept = Object.fromEntries([
        ...secrets.map((name) => [name, "(hidden)"]),
        ...others.map((name) => [name, `v-${name}`]),
      ]) as JsonValue;
      expect(raw).toMatchObject({ some: kept, credentials: { user: { name: "(hidden)" } } });
    },
  );

  test.each(BODY_NAMES)("%s: an unknown object is kept unchanged", (name) => {
    expect(event(name, { some: "thing" })).toMatchObject({ type: "unparsed", source: name, raw: { some: "thing" } });
    expect(event(name, ["text"])).toMatchObject({ type: "unparsed", raw: { body: "text" } });
    expect(read(name, [])).toEqual({ kind: "nothing" });
  });

  test.each<JsonValue>(["text", 7, null, true])("%j is refused", (body) =>
    expect(read("network", body)).toEqual({
      kind: "refused",
      reason: "malformed",
      message: "the body is neither an object nor a list of objects",
    }),
  );

  test("is refused if it is too deep or has too many objects", () => {
    const deep = JSON.parse(`${"[".repeat(5000)}${"]".repeat(5000)}`) as JsonValue;
    expect(read("access", deep)).toMatchObject({ kind: "refused" });
    expect(
      read(
        "access",
        Array.from({ length: BODY_OBJECTS_MAX + 1 }, () => ({})),
      ),
    ).toMatchObject({ kind: "refused" });
  });

  test("is read without a throw, can be stored, and has well-known fields of the right type", () => {
    const key = fc.constantFrom(
      "event",
      "data",
      "item",
      "alarm",
      "triggers",
      "type",
      "id",
      "modelKey",
      "start",
      "end",
      "from",
      "to",
      "key",
      "name",
      "parameters",
      "_source",
      "actor",
      "object",
      "metadata",
      "user",
      "camera",
      "status",
      "direction",
      "__proto__",
      "src_ip",
      "duration_s",
      "smartDetectTypes",
      "time",
    );
    const text = fc.constantFrom(
      "access.door.unlock",
      "access.logs.add",
      "event",
      "motion",
      "add",
      "EVT_AD_Login",
      "10.0.0.1",
      "\ud800",
      "null",
      "",
    );
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.constant(null),
        fc.boolean(),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(key, tie("value"), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(fc.constantFrom(...BODY_NAMES), value, (name, body) => {
        const before = JSON.stringify(body);
        const written = JSON.stringify(eventsOf(read(name, body)));
        expect(JSON.stringify(body)).toBe(before);
        expect(/(?<!\\)(?:\\\\)*\\ud[89ab]/i.test(written)).toBe(false);
        for (const { raw } of eventsOf(read(name, body))) {
          for (const [field, { type }] of Object.entries(FIELD_NAMES)) {
            const found = raw[field];
            if (found === undefined) continue;
            if (type === "text") expect(typeof found).toBe("string");
            if (type === "number") expect(typeof found).toBe("number");
            if (field.endsWith("_ip")) expect(isIP(found as string)).not.toBe(0);
          }
        }
      }),
      { numRuns: 1500 },
    );
  });
});
