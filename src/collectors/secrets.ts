import type { JsonValue } from "../model/event.ts";

// Controllers put things into their bodies that let somebody in somewhere: those are for nobody who reads events.

const SECRET_KEY = /(?:token|password|passcode|passphrase|secret|apikey|authorization|^pins?|pincodes?)$/;
const SECRET_TEXT =
  /("[^"]{0,64}(?:token|password|passcode|passphrase|secret|api_?key|authorization|pin|pin_?codes?)"\s{0,8}:\s{0,8})("(?:[^"\\]|\\.)*"?|\[[^\]]*\]?|[^,}\]\s]+)/gi;
const HIDDEN = "(hidden)";

function isSecret(key: string): boolean {
  return SECRET_KEY.test(key.toLowerCase().replaceAll(/[_-]/g, ""));
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
