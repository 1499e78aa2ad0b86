import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { queryAbuseIpdb } from "./abuse-ipdb.ts";

const NOW = Date.UTC(2026, 5, 1, 12);
let answer: (response: ServerResponse) => void;
const server = createServer((_, response) => answer(response)).listen(0, "127.0.0.1");
let url: string;
beforeAll(async () => {
  if (!server.listening) await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v2/`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const ask = (answering: typeof answer) => {
  answer = answering;
  return queryAbuseIpdb({ url, key: "secret" }, "8.8.8.8", NOW, new AbortController().signal);
};
const body = (data: unknown) => (to: ServerResponse) => to.end(JSON.stringify({ data }));

test.each<[string, unknown, object]>([
  ["a minimal response", { ipAddress: "8.8.8.8", abuseConfidenceScore: 0 }, { score: 0, address: "8.8.8.8" }],
  [
    "a response without reports",
    { ipAddress: "8.8.8.8", abuseConfidenceScore: 0, lastReportedAt: null, usageType: null, isp: "", totalReports: 0 },
    { score: 0, address: "8.8.8.8", total_reports: 0 },
  ],
  [
    "a whitelisted address",
    { ipAddress: "8.8.8.8", abuseConfidenceScore: 1, isWhitelisted: true, isTor: true, isp: "x".repeat(999) },
    { score: 1, address: "8.8.8.8", is_whitelisted: true, is_tor: true, isp: "x".repeat(200) },
  ],
  [
    "an invalid date",
    { ipAddress: "8.8.8.8", abuseConfidenceScore: 1, lastReportedAt: "May" },
    { score: 1, address: "8.8.8.8" },
  ],
])("%s becomes a report", async (_, data, report) => {
  expect(await ask(body(data))).toEqual({ kind: "report", report, isLast: false, untilMs: null });
});

test.each<[string, unknown]>([
  ["without data", undefined],
  ["on another address", { ipAddress: "8.8.4.4", abuseConfidenceScore: 3 }],
  ["with a score as text", { ipAddress: "8.8.8.8", abuseConfidenceScore: "high" }],
  ["with a score above 100", { ipAddress: "8.8.8.8", abuseConfidenceScore: 101 }],
  ["with a fractional score", { ipAddress: "8.8.8.8", abuseConfidenceScore: 0.5 }],
  ["with an array", []],
])("a response %s is refused", async (_, data) => {
  expect(await ask(body(data))).toMatchObject({
    kind: "failed",
    message: "the response is not a valid AbuseIPDB report",
  });
});

test.each<[string, Record<string, string>, number | null]>([
  ["in seconds", { "Retry-After": "90" }, NOW + 90_000],
  ["as a date", { "Retry-After": new Date(NOW + 60_000).toUTCString() }, NOW + 60_000],
  ["as the time of a reset", { "X-RateLimit-Reset": String(NOW / 1000 + 30) }, NOW + 30_000],
  ["in an unknown format", { "Retry-After": "soon" }, null],
  ["not at all", {}, null],
])("the time of the next lookup is given %s", async (_, headers, untilMs) => {
  expect(await ask((to) => to.writeHead(429, headers).end())).toEqual({ kind: "limited", untilMs });
});

test("the last report within the quota is marked", async () => {
  const headers = { "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": String(NOW / 1000 + 30) };
  const data = { ipAddress: "8.8.8.8", abuseConfidenceScore: 3 };
  const verdict = await ask((to) => to.writeHead(200, headers).end(JSON.stringify({ data })));
  expect(verdict).toMatchObject({ kind: "report", isLast: true, untilMs: NOW + 30_000 });
});
