import type { JsonValue } from "../../model/event.ts";

// Redacts secrets in bodies of controllers, such as tokens and PINs, so that readers of events do not see them.

/** Endings of secret field names; a dash stands for an optional separator. */
const ENDINGS =
  "token|pass-word|passwd|pass-code|pass-phrase|secret|credential|cookie|bearer|private-key|api-key|authorization";
const SECRET_KEY = new RegExp(`(?:(?:${ENDINGS.replaceAll("-", "")})s?|^pins?|pincodes?)$`);
/** Short endings that need a separator: `bypass` is not a secret. */
const SHORT_KEY = /(?:^|[_.-])(?:pass|pwd)$/i;
const SHORT_CAMEL_KEY = /[a-z\d](?:Pass|Pwd)$/;
// In a text it is safer to redact too much: the end of an object is not searched, and nothing after its start is shown.
const TEXT_NAMES = `[^"]{0,64}(?:(?:${ENDINGS}|pin|pin-code)s?|pass|pwd)`.replaceAll("-", "[_-]?");
const TEXT_VALUES = String.raw`"(?:[^"\\]|\\.)*"?|\[[^\]]*\]?|\{.*|[^,}\]\s]+`;
const SECRET_TEXT = new RegExp(String.raw`("${TEXT_NAMES}"\s{0,8}:\s{0,8})(${TEXT_VALUES})`, "gis");
/** `password=hunter2`, `Authorization: Bearer abc`; in a text without JSON. */
const PLAIN_NAMES = `[\\w.-]{0,64}(?:(?:${ENDINGS}|pin|pin-code)s?|pass|pwd)`.replaceAll(
  /(?<=[a-z])-(?=[a-z])/g,
  "[_-]?",
);
const PLAIN_VALUES = String.raw`(?:(?:bearer|basic|digest|token) +)?(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"',;&]+)`;
const PLAIN_SECRET = new RegExp(String.raw`(?<![\w.-])(${PLAIN_NAMES}\s?[=:]\s?)(${PLAIN_VALUES})`, "gi");
/** The password of a user in a URL. */
const URL_PASSWORD = /(:\/\/[^\s/:@]{1,64}:)[^\s/@]{1,256}(?=@)/g;
const REDACTED = "(hidden)";

function isSecret(key: string): boolean {
  if (SECRET_KEY.test(key.toLowerCase().replaceAll(/[_-]/g, ""))) return true;
  return SHORT_KEY.test(key) || SHORT_CAMEL_KEY.test(key);
}

/** Redacts in place all values under secret names, nested ones included. */
export function redactSecrets(value: JsonValue, isBelow = false): void {
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value)) {
    const fields = value as Record<string, JsonValue>;
    const inner = fields[key]!;
    const isRedacted = isBelow || (!Array.isArray(value) && isSecret(key));
    if (typeof inner === "object") redactSecrets(inner, isRedacted);
    else if (isRedacted && inner !== "" && typeof inner !== "boolean") fields[key] = REDACTED;
  }
}

/** Redacts a line, or the text of a complete or truncated body that could not be parsed. */
export function redactSecretsInText(text: string): string {
  return text
    .replaceAll(SECRET_TEXT, `$1"${REDACTED}"`)
    .replaceAll(PLAIN_SECRET, `$1${REDACTED}`)
    .replaceAll(URL_PASSWORD, `$1${REDACTED}`);
}
