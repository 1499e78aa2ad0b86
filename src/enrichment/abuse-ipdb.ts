import { z } from "zod";
import { canonicalAddress } from "../lib/ip.ts";
import { send } from "../lib/outgoing.ts";
import { formatTime, parseTime } from "../lib/time.ts";
import type { JsonObject } from "../model/event.ts";

// Queries AbuseIPDB (API v2) for one address. The key appears in a header and nowhere else.

const AGE_DAYS_MAX = 90;
const ANSWER_MS_MAX = 10_000;
const ANSWER_BYTES_MAX = 256 * 1024;
const TEXT_CHARACTERS_MAX = 200;

export interface AbuseIpdbService {
  readonly url: string;
  readonly key: string;
}

export type AbuseIpdbResult =
  /** `isLast`: the quota is used up until `untilMs`, if that is known. */
  | { readonly kind: "report"; readonly report: JsonObject; readonly isLast: boolean; readonly untilMs: number | null }
  | { readonly kind: "limited"; readonly untilMs: number | null }
  | { readonly kind: "key_refused"; readonly message: string }
  | { readonly kind: "address_refused"; readonly message: string }
  | { readonly kind: "failed"; readonly message: string };

const text = z.string().transform((given) => given.slice(0, TEXT_CHARACTERS_MAX));
const answerSchema = z.object({
  data: z.object({
    ipAddress: z.string(),
    abuseConfidenceScore: z.int().min(0).max(100),
    totalReports: z.int().min(0).nullish(),
    lastReportedAt: z.string().nullish(),
    usageType: text.nullish(),
    isp: text.nullish(),
    domain: text.nullish(),
    isWhitelisted: z.boolean().nullish(),
    isTor: z.boolean().nullish(),
  }),
});

export async function queryAbuseIpdb(
  { url, key }: AbuseIpdbService,
  address: string,
  nowMs: number,
  signal: AbortSignal,
): Promise<AbuseIpdbResult> {
  const query = new URLSearchParams({ ipAddress: address, maxAgeInDays: String(AGE_DAYS_MAX) });
  try {
    const answer = await send({
      method: "GET",
      url: `${url.replace(/\/+$/, "")}/check?${query}`,
      headers: { Key: key, Accept: "application/json" },
      timeoutMs: ANSWER_MS_MAX,
      answerBytesMax: ANSWER_BYTES_MAX,
      // The operator configures this address and may choose an internal proxy.
      allowsPrivate: true,
      signal,
    });
    const headers = answer.headers as Readonly<Record<string, string | undefined>>;
    if (answer.status === 200) {
      const report = answer.isCut ? undefined : readReport(answer.body.toString(), address);
      if (!report) return { kind: "failed", message: "the response is not a valid AbuseIPDB report" };
      const isLast = headers["x-ratelimit-remaining"] === "0";
      return { kind: "report", report, isLast, untilMs: rateLimitReset(headers) };
    }
    if (answer.status === 429)
      return { kind: "limited", untilMs: retryAfter(headers, nowMs) ?? rateLimitReset(headers) };
    const message = `the response has status ${answer.status}`;
    if (answer.status === 401 || answer.status === 403)
      return { kind: "key_refused", message: `AbuseIPDB refused the key: ${message}` };
    if (answer.status === 422) return { kind: "address_refused", message };
    return { kind: "failed", message };
  } catch (error) {
    return { kind: "failed", message: error instanceof Error ? error.message : String(error) };
  }
}

/** The report as stored in events; undefined if it is not a report on this address. */
function readReport(body: string, address: string): JsonObject | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const { data: given } = answerSchema.safeParse(value).data ?? {};
  if (!given || canonicalAddress(given.ipAddress) !== address) return undefined;
  const lastReportedAt = parseTime(given.lastReportedAt ?? "");
  return {
    score: given.abuseConfidenceScore,
    address,
    ...(typeof given.totalReports === "number" && { total_reports: given.totalReports }),
    ...(lastReportedAt !== undefined && { last_reported_at: formatTime(lastReportedAt) }),
    ...(given.usageType && { usage_type: given.usageType }),
    ...(given.isp && { isp: given.isp }),
    ...(given.domain && { domain: given.domain }),
    ...(given.isWhitelisted === true && { is_whitelisted: true }),
    ...(given.isTor === true && { is_tor: true }),
  };
}

/** The time in Retry-After, which is in seconds or a date. */
function retryAfter(headers: Readonly<Record<string, string | undefined>>, nowMs: number): number | null {
  const given = headers["retry-after"];
  if (given === undefined) return null;
  const ms = /^\d{1,9}$/.test(given) ? nowMs + Number(given) * 1000 : Date.parse(given);
  return Number.isFinite(ms) ? ms : null;
}

function rateLimitReset(headers: Readonly<Record<string, string | undefined>>): number | null {
  const given = headers["x-ratelimit-reset"];
  return given !== undefined && /^\d{9,11}$/.test(given) ? Number(given) * 1000 : null;
}
