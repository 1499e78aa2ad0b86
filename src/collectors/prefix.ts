// What stands in a message before that which a reader knows. Relays and rules put words there; but what a stranger has typed
// stands behind words too, as his name does in a line about his login, and must not be read as if a device had said it.

/** Each letter can be passed in one way only, so that it takes no longer than it is long. */
const PLAIN = /^(?:[^"={:]|:(?! [^]))*$/;

/** Whether it is but words: nothing quoted, no field, and nobody who speaks before the last of them. */
export function isPlain(prefix: string): boolean {
  return PLAIN.test(prefix);
}
