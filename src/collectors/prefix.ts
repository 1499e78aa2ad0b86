// What stands in a message before that which a reader knows. Relays and rules put words there; but what a stranger has typed
// stands behind words too, as his name does in a line about his login, and must not be read as if a device had said it.

const QUOTE = 0x22;
const COLON = 0x3a;
const EQUALS = 0x3d;
const BRACE = 0x7b;
const SPACE = 0x20;

/** Whether the message up to here is but words: nothing quoted, no field, and nobody who speaks before the last of them. */
export function isPlain(message: string, end: number): boolean {
  for (let at = 0; at < end; at++) {
    const code = message.charCodeAt(at);
    if (code === QUOTE || code === EQUALS || code === BRACE) return false;
    if (code === COLON && message.charCodeAt(at + 1) === SPACE && at + 2 < end) return false;
  }
  return true;
}
