import type { JsonObject, Severity } from "../../../model/event.ts";
import { put } from "../device-values.ts";
import { oneEvent, type LineFormat } from "../line-format.ts";
import type { ParsedEvent } from "../reading.ts";

// Commands that users run as others with sudo, and those that sudo refused.

const MESSAGE_CHARACTERS_MAX = 8192;
const COMMAND = " ; COMMAND=";
const USER = " ; USER=";

export const SUDO = {
  name: "sudo",
  about: "commands run and refused by sudo",
  devices: ["Linux", "FreeBSD", "macOS"],
  page: "linux",
  example: "sudo[812]:    robin : TTY=pts/0 ; PWD=/home/robin ; USER=root ; COMMAND=/usr/bin/systemctl restart nginx",
  programs: ["sudo"],
  ownsPrograms: true,
  read: ({ message }) => oneEvent(readCommand(message)),
} as const satisfies LineFormat;

/** What sudo says in front of the first field if it refuses a command. */
const REFUSALS: readonly (readonly [pattern: RegExp, type: string, severity: Severity])[] = [
  [/^\d{1,3} incorrect password attempts?$/, "login_failure", "medium"],
  [
    /^(?:a password is required|a terminal is required.*|no tty present and no askpass program specified)$/,
    "sudo_refused",
    "low",
  ],
  [
    /^(?:user NOT (?:in sudoers|authorized on host)|command not allowed|user not allowed.*|NOT in sudoers)$/i,
    "sudo_refused",
    "medium",
  ],
];

/** `    robin : TTY=pts/0 ; PWD=/home/robin ; USER=root ; COMMAND=...`; a refusal has its reason before TTY. */
function readCommand(message: string): ParsedEvent | undefined {
  const text = message.slice(0, MESSAGE_CHARACTERS_MAX).trim();
  const speaker = text.indexOf(" : ");
  if (speaker <= 0 || text.slice(0, speaker).includes(" ")) return undefined;
  const raw: JsonObject = { service: "sudo" };
  put(raw, "user", text.slice(0, speaker));
  const rest = text.slice(speaker + " : ".length);
  const isFirst = /^(?:HOST|TTY|PWD|USER)=/.test(rest);
  const reasonEnd = isFirst ? 0 : rest.indexOf(" ; ");
  const reason = isFirst ? "" : reasonEnd < 0 ? rest : rest.slice(0, reasonEnd);
  const refusal = REFUSALS.find(([pattern]) => pattern.test(reason));
  if (!isFirst && refusal === undefined) return undefined;
  put(raw, "reason", reason);
  if (!readFields(isFirst ? ` ; ${rest}` : rest, raw) && isFirst) return undefined;
  put(raw, "message", text);
  const [type, severity] = refusal === undefined ? ["sudo_command", "info" as const] : [refusal[1], refusal[2]];
  const eventClass = refusal === undefined ? "audit" : "security";
  return { type, source: "network", severity, class: eventClass, timestampMs: null, raw };
}

/** False without a command. A folder's name may contain anything, so a repeated USER before the command is not certain. */
function readFields(text: string, raw: JsonObject): boolean {
  const command = text.indexOf(COMMAND);
  if (command < 0) return false;
  const before = text.slice(0, command);
  const tty = / ; TTY=([^ ;]{1,64})/.exec(before)?.[1];
  if (tty !== undefined) raw["tty"] = tty;
  const user = before.indexOf(USER);
  if (user >= 0 && user === before.lastIndexOf(USER))
    put(raw, "target", before.slice(user + USER.length).split(" ; ", 1)[0]);
  raw["command"] = text.slice(command + COMMAND.length);
  return true;
}
