import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const AT = "[15/Nov/2026:10:00:00 +0100]";
const TIME = Date.parse("2026-11-15T09:00:00Z");

describe("access logs of nginx and Apache", () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      `192.0.2.9 - - ${AT} "GET /a?b=c HTTP/1.1" 200 512 "https://www.example.org/" "Mozilla/5.0 (X11) a \\"b\\""`,
      "http",
      {
        src_ip: "192.0.2.9",
        method: "GET",
        url: "/a?b=c",
        http_status: 200,
        bytes: 512,
        referrer: "https://www.example.org/",
        user_agent: 'Mozilla/5.0 (X11) a "b"',
      },
    ],
    [`2001:db8::9 - - ${AT} "GET / HTTP/2.0" 304 - "-" "-"`, "http", { src_ip: "2001:db8::9", http_status: 304 }],
    [`192.0.2.9 - - ${AT} "POST /login HTTP/1.1" 302 0`, "http", { method: "POST", url: "/login", bytes: 0 }],
    [`192.0.2.9 - robin ${AT} "GET / HTTP/1.1" 200 5 "-" "-"`, "http", { user: "robin" }],
    [`192.0.2.9 - robin ${AT} "GET / HTTP/1.1" 401 5 "-" "-"`, "login_failure", { user: "robin", service: "web" }],
    [`192.0.2.9 - - ${AT} "GET / HTTP/1.1" 401 5 "-" "-"`, "http", { http_status: 401 }],
    // A name that imitates the fields behind it; quotation marks are escaped.
    [
      `192.0.2.9 - x [15/Nov/2026:10:00:00 +0000] \\x22GET / HTTP/1.1\\x22 200 1 ${AT} "GET /a HTTP/1.1" 401 5 "-" "-"`,
      "login_failure",
      { src_ip: "192.0.2.9", url: "/a" },
    ],
    [
      `www.example.org:443 192.0.2.9 - - ${AT} "GET / HTTP/1.1" 200 5 "-" "a"`,
      "http",
      { host: "www.example.org", dst_port: 443, src_ip: "192.0.2.9" },
    ],
    [`client.example - - ${AT} "GET / HTTP/1.1" 200 5`, "http", { src_host: "client.example" }],
    [
      `192.0.2.9 - - ${AT} "\\x16\\x03\\x01" 400 150 "-" "-"`,
      "http",
      { reason: "malformed request", http_status: 400 },
    ],
    [`192.0.2.9 - - ${AT} "GET /a b HTTP/1.1" 400 0`, "http", { url: "/a b" }],
    [
      `192.0.2.9 - - ${AT} "GET / HTTP/1.1" 200 5 "-" "a" "198.51.100.7" rt=0.1`,
      "http",
      { user_agent: "a", src_ip: "192.0.2.9" },
    ],
  ])("%s", (line, type, expected) => {
    expect(read(line)).toMatchObject({ type, timestampMs: TIME, raw: { ...expected, line } });
    for (const program of ["nginx", "apache2[7]", "httpd"]) {
      const inSyslog = `<190>Nov 15 10:00:00 web-1 ${program}: ${line}`;
      expect(read(inSyslog)).toMatchObject({ type, raw: { ...expected, device: "web-1" } });
    }
    expect(read(`<190>Nov 15 10:00:00 web-1 shop: ${line}`).type).toBe("unparsed");
  });

  test.each([
    `192.0.2.9 - - "GET / HTTP/1.1" 200 5`,
    `192.0.2.9 - - ${AT} "GET / HTTP/1.1`,
    `192.0.2.9 - - ${AT} "GET / HTTP/1.1" x 5`,
    `a b c - - ${AT}`,
    `=== - - ${AT} "GET / HTTP/1.1" 200 5`,
    `192.0.2.9 - - [never] "GET / HTTP/1.1" 200 5`,
  ])("is not %s", (line) => {
    expect(read(`<190>Nov 15 10:00:00 web-1 nginx: ${line}`).type).toBe("unparsed");
  });

  test("no request is read as the address of another", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (url, agent) => {
        const escaped = (text: string) => text.replaceAll("\\", "\\x5C").replaceAll('"', "\\x22");
        const { raw } = read(
          `<190>Nov 15 10:00:00 web-1 nginx: 192.0.2.9 - - ${AT} "GET /${escaped(url)} HTTP/1.1" 200 5 "-" "${escaped(agent)}"`,
        );
        expect(raw["src_ip"]).toBe("192.0.2.9");
      }),
    );
  });
});
