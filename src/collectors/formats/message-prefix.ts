import type { LineMessage } from "./line-format.ts";

// Text in front of the part of a message that a reader understands. Relays and firewall rules put words there. Text that a
// stranger typed, such as the user name in a line about a login, also follows words, and must not pass for a device's report.

/** Characters in front of a format's own header. */
const PREFIX_CHARACTERS_MAX = 256;

/** Matches each character in one way only, so the time is linear. */
const PLAIN = /^(?:[^"={:]|:(?! [^]))*$/;

/** True for words alone: no quotation, no field, and no speaker (`name: `) before the end. */
export function isPlain(prefix: string): boolean {
  return PLAIN.test(prefix);
}

/**
 * Position after the start of a format's own header, such as `CEF:`; -1 if the message has none. Plain words may precede it
 * only if no program wrote the line.
 */
export function ownHeaderEnd(header: string, { program, message }: LineMessage): number {
  const start = message.startsWith(header) ? 0 : program === null ? message.indexOf(header) : -1;
  if (start < 0 || start > PREFIX_CHARACTERS_MAX || (start > 0 && !isPlain(message.slice(0, start)))) return -1;
  return start + header.length;
}
