import type { JsonObject, Severity } from "../../../model/event.ts";
import { readAnyTime } from "../device-times.ts";
import { addressOf, integerOf, listOf, objectOf, put, textOf } from "../device-values.ts";
import type { LineFormat } from "../line-format.ts";
import type { ParsedEvent, ReadContext } from "../reading.ts";
import { rateThreat } from "../threat-severity.ts";
import { alertReaders } from "./alert-records.ts";

// Alerts of CrowdSec as JSON, one object per line, as its notification plugins send them.

export const CROWDSEC = {
  name: "crowdsec",
  about: "alerts of CrowdSec as JSON",
  devices: ["CrowdSec"],
  page: "crowdsec",
  example:
    '{"scenario":"crowdsecurity/ssh-bf","message":"Ip 192.0.2.9 performed \'crowdsecurity/ssh-bf\'","events_count":6,' +
    '"created_at":"2026-11-15T10:00:00Z","source":{"scope":"Ip","value":"192.0.2.9","ip":"192.0.2.9","cn":"NL"},' +
    '"decisions":[{"type":"ban","scope":"Ip","value":"192.0.2.9","duration":"4h","scenario":"crowdsecurity/ssh-bf"}]}',
  ...alertReaders({ product: "CrowdSec", contains: ['"scenario"', '"source"'], recognises, readAlert }),
} as const satisfies LineFormat;

function recognises(object: JsonObject): boolean {
  const source = objectOf(object["source"]);
  return typeof object["scenario"] === "string" && source?.["scope"] !== undefined && source["value"] !== undefined;
}

/** Takes over the record and adds fields to it. */
function readAlert(raw: JsonObject, context: ReadContext): ParsedEvent {
  const source = objectOf(raw["source"]) ?? {};
  const scenario = textOf(raw["scenario"]) ?? "";
  put(raw, "signature", scenario);
  put(raw, "src_ip", addressOf(source["ip"]) ?? addressOf(source["value"]));
  put(raw, "country", textOf(source["cn"]));
  put(raw, "repeated", integerOf(raw["events_count"]));
  put(raw, "category", categoryOf(scenario));
  // A simulated decision is not carried out.
  const isStopped = listOf(raw["decisions"]).some((one) => objectOf(one)?.["simulated"] !== true);
  put(raw, "action", isStopped && raw["simulated"] !== true ? "block" : "allow");
  return {
    type: "ids_alert",
    source: "network",
    severity: rate(raw, scenario),
    timestampMs: readAnyTime(raw["created_at"] ?? raw["start_at"], context),
    raw,
  };
}

/** Words in names of scenarios, such as `crowdsecurity/http-path-traversal-probing`; the first entry counts. */
const CATEGORIES: readonly (readonly [words: RegExp, category: string])[] = [
  [/(?:^|[/_-])(?:cve|exploit|log4j|rce)/i, "attempted-admin"],
  [
    /(?:sqli|xss|traversal|backdoor|sensitive|bad-user-agent|http-admin|open-proxy|w00tw00t)/i,
    "web-application-attack",
  ],
  [/(?:[/_-])(?:bf|bruteforce|slow-bf|user-enum|user_enum)/i, "attempted-user"],
  [/(?:scan|probing|crawl|enum)/i, "attempted-recon"],
];

function categoryOf(scenario: string): string | undefined {
  return CATEGORIES.find(([words]) => words.test(scenario))?.[1];
}

function rate(raw: JsonObject, scenario: string): Severity {
  return rateThreat(raw, /(?:^|[/_-])(?:cve|exploit|log4j|rce)/i.test(scenario) ? 2 : 3);
}
