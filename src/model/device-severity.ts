import type { Severity } from "./event.ts";

// How bad a device says it is, in our words. One table for each scale; the docs are printed from them.

interface Scale {
  readonly name: string;
  readonly about: string;
  /** From the least to the worst of the device's values. */
  readonly values: Readonly<Record<string, Severity>>;
}

const CEF: Scale = {
  name: "CEF",
  about: "0 to 10, of 7.5 the 7, and above 10 as 10; also in the bodies of the network's alarms",
  values: {
    0: "info",
    1: "info",
    2: "low",
    3: "low",
    4: "medium",
    5: "medium",
    6: "medium",
    7: "high",
    8: "high",
    9: "critical",
    10: "critical",
  },
};

const NAMES: Scale = {
  name: "names",
  about: "where a word stands in place of a number, in any case",
  values: {
    informational: "info",
    info: "info",
    unknown: "info",
    minor: "low",
    low: "low",
    warning: "medium",
    medium: "medium",
    major: "high",
    high: "high",
    "very-high": "critical",
    critical: "critical",
  },
};

const EVE: Scale = {
  name: "EVE",
  about:
    "an IDS counts from 1, the worst, down to 4; what the signature's class, the action, the direction and the signature's author say may lower it",
  values: { 4: "low", 3: "medium", 2: "high", 1: "critical" },
};

const SYSLOG: Scale = {
  name: "syslog",
  about: "0, the worst, to 7; only for lines that say nothing else about it",
  values: { 7: "info", 6: "info", 5: "info", 4: "low", 3: "medium", 2: "high", 1: "critical", 0: "critical" },
};

export const SEVERITY_SCALES: readonly Scale[] = [CEF, NAMES, EVE, SYSLOG];

const CEF_WORST = 10;

/** A number or a word; undefined where it is neither. */
export function severityOfCef(value: string | number): Severity | undefined {
  const text = String(value).trim();
  const isNumber = /^\d{1,4}(?:\.\d{1,4})?$/.test(text);
  if (isNumber) return onScale(CEF, String(Math.min(CEF_WORST, Math.floor(Number(text)))));
  return onScale(NAMES, text.toLowerCase().replace(" ", "-"));
}

/** Some shippers make a text of the number. */
export function severityOfEve(value: unknown): Severity {
  const isNumber = typeof value === "number" || (typeof value === "string" && /^\d{1,3}$/.test(value));
  return isNumber ? (onScale(EVE, String(Number(value))) ?? "low") : "medium";
}

export function severityOfSyslog(value: number | null): Severity {
  return (value === null ? undefined : onScale(SYSLOG, String(value))) ?? "info";
}

/** What stands in the table, and not what every object has: devices send any word. */
function onScale({ values }: Scale, value: string): Severity | undefined {
  return Object.hasOwn(values, value) ? values[value] : undefined;
}
