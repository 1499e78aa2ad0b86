import type { Severity } from "./event.ts";

// Maps severities reported by devices to ours. One table per scale; the docs are generated from them.

interface Scale {
  readonly name: string;
  readonly about: string;
  /** The device's values, from the least to the most severe. */
  readonly values: Readonly<Record<string, Severity>>;
}

const CEF: Scale = {
  name: "CEF",
  about: "0 to 10, fractions rounded down, above 10 as 10; also in the bodies of network alarms",
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
  about: "words instead of numbers, in upper or lower case",
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
    "1, the most severe, to 4; the class of the signature, the action, the direction and the author of the signature may lower it",
  values: { 4: "low", 3: "medium", 2: "high", 1: "critical" },
};

const SYSLOG: Scale = {
  name: "syslog",
  about: "0, the most severe, to 7; only for lines that state no other severity",
  values: { 7: "info", 6: "info", 5: "info", 4: "low", 3: "medium", 2: "high", 1: "critical", 0: "critical" },
};

export const SEVERITY_SCALES: readonly Scale[] = [CEF, NAMES, EVE, SYSLOG];

const CEF_WORST = 10;

/** Severity of a CEF number or word; undefined if it is neither. */
export function severityOfCef(value: string | number): Severity | undefined {
  const text = String(value).trim();
  const isNumber = /^\d{1,4}(?:\.\d{1,4})?$/.test(text);
  if (isNumber) return onScale(CEF, String(Math.min(CEF_WORST, Math.floor(Number(text)))));
  return onScale(NAMES, text.toLowerCase().replace(" ", "-"));
}

/** Severity of an EVE number, which some shippers send as a string. */
export function severityOfEve(value: unknown): Severity {
  const isNumber = typeof value === "number" || (typeof value === "string" && /^\d{1,3}$/.test(value));
  return isNumber ? (onScale(EVE, String(Number(value))) ?? "low") : "medium";
}

export function severityOfSyslog(value: number | null): Severity {
  return (value === null ? undefined : onScale(SYSLOG, String(value))) ?? "info";
}

/** Looks up own entries only: a device may send any word, such as the name of an inherited property. */
function onScale({ values }: Scale, value: string): Severity | undefined {
  return Object.hasOwn(values, value) ? values[value] : undefined;
}
