// The name of a program after one or two words that are not a syslog header: the time is missing, or the host has a second name.

const WORDS_MAX = 2;
const WORD_BEFORE = /[^\s:=|[\]]{1,255} /y;
const NAME_CHARACTERS_MAX = 140;
/** Programs whose names are also ordinary words: behind other words they are part of a sentence. */
const COMMON_WORDS: ReadonlySet<string> = new Set([
  "auth",
  "cron",
  "docker",
  "ipsec",
  "login",
  "remote",
  "samba",
  "shell",
  "su",
  "systemd",
]);
const PROCESS = /\[(\d{1,9})\]$/;

export interface LateProgram {
  /** Position of the name. */
  readonly start: number;
  /** Position of the message behind it. */
  readonly end: number;
  readonly program: string;
  readonly processId: number | null;
}

/** Undefined if none of the programs begins the message, nor follows its first words. */
export function lateProgram(message: string, programs: ReadonlySet<string>): LateProgram | undefined {
  let found: LateProgram | undefined;
  let start = 0;
  for (let words = 0; words <= WORDS_MAX; words++) {
    found = programAt(message, start, programs) ?? found;
    WORD_BEFORE.lastIndex = start;
    if (!WORD_BEFORE.test(message)) break;
    start = WORD_BEFORE.lastIndex;
  }
  return found;
}

function programAt(message: string, start: number, programs: ReadonlySet<string>): LateProgram | undefined {
  const colon = message.indexOf(":", start);
  if (colon < 0 || colon - start > NAME_CHARACTERS_MAX) return undefined;
  const name = message.slice(start, colon);
  const process = name.endsWith("]") ? PROCESS.exec(name) : null;
  const program = process === null ? name : name.slice(0, process.index);
  if (!programs.has(program) || (start > 0 && COMMON_WORDS.has(program))) return undefined;
  let end = colon + 1;
  while (message.charCodeAt(end) === 0x20) end++;
  return { start, end, program, processId: process === null ? null : Number(process[1]) };
}
