import type { JsonValue } from "../model/event.ts";

// Controllers put things into their bodies that let somebody in somewhere: those are for nobody who reads events.

/** What the names of such things end in; a dash stands where some write a mark and others none. */
const ENDINGS =
  "token|pass-word|passwd|pass-code|pass-phrase|secret|credential|cookie|bearer|private-key|api-key|authorization";
const SECRET_KEY = new RegExp(`(?:(?:${ENDINGS.replaceAll("-", "")})s?|^pins?|pincodes?)$`);
/** Other words end in these too: bypass is none. */
const SHORT_KEY = /(?:^|[_.-])(?:pass|pwd)$/i;
const SHORT_CAMEL_KEY = /[a-z\d](?:Pass|Pwd)$/;
// In a text rather too much than too little: of an object the end is not looked for, and nothing after it is shown.
const TEXT_NAMES = `[^"]{0,64}(?:(?:${ENDINGS}|pin|pin-code)s?|pass|pwd)`.replaceAll("-", "[_-]?");
const TEXT_VALUES = String.raw`"(?:[^"\\]|\\.)*"?|\[[^\]]*\]?|\{.*|[^,}\]\s]+`;
const SECRET_TEXT = new RegExp(String.raw`("${TEXT_NAMES}"\s{0,8}:\s{0,8})(${TEXT_VALUES})`, "gis");
const HIDDEN = "(hidden)";

function isSecret(key: string): boolean {
  if (SECRET_KEY.test(key.toLowerCase().replaceAll(/[_-]/g, ""))) return true;
  return SHORT_KEY.test(key) || SHORT_CAMEL_KEY.test(key);
}

/** Changes the value itself: whatever stands under such a name, one or many, is hidden. */
export function hideSecrets(value: JsonValue, isBelow = false): void {
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value)) {
    const held = value as Record<string, JsonValue>;
    const inner = held[key]!;
    const hides = isBelow || (!Array.isArray(value) && isSecret(key));
    if (typeof inner === "object") hideSecrets(inner, hides);
    else if (hides && inner !== "" && typeof inner !== "boolean") held[key] = HIDDEN;
  }
}

/** The same for the text of a body, whole or not, that could not be read. */
export function hideSecretsInText(text: string): string {
  return text.replaceAll(SECRET_TEXT, `$1"${HIDDEN}"`);
}
