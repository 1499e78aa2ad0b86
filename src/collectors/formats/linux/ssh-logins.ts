import type { JsonObject, Severity } from "../../../model/event.ts";
import { addressOf, integerOf, portOf, put } from "../device-values.ts";
import { oneEvent, type LineFormat } from "../line-format.ts";
import type { ParsedEvent } from "../reading.ts";
import { readPam } from "./pam-messages.ts";
import { readConnection } from "./ssh-connections.ts";

// Logins to a device, as reported by sshd and dropbear. All patterns are anchored and match in one way only, since an attacker
// chooses the user name and it may contain anything.

const MESSAGE_CHARACTERS_MAX = 2048;

const FAILED = "Failed ";

/** Openings that the method follows: `password for bob`. */
const NAMES_METHOD: ReadonlySet<string> = new Set([FAILED, "Accepted ", "Partial ", "Postponed "]);

interface LoginOpening {
  readonly type: string;
  readonly severity: Severity;
  readonly begins: string;
  readonly reason?: string;
  /** Login method, for messages that do not name it. */
  readonly method?: string;
}

/**
 * Meaning by the start of the message; the first match counts. A failed attempt is one `login_failure`, however many lines sshd
 * writes about it. `Failed` is written for each attempt, except that with PAM it appears only sometimes for an existing user;
 * there PAM's own line appears for each attempt. The other lines are a `login_attempt`, which does not count as a failure.
 */
const OPENINGS: readonly LoginOpening[] = [
  { begins: "Failed password for ", type: "login_failure", severity: "medium" },
  // Clients try `none` first, to learn which methods are accepted.
  { begins: "Failed none for ", type: "login_attempt", severity: "low" },
  { begins: "Failed keyboard-interactive/pam for invalid user ", type: "login_failure", severity: "medium" },
  { begins: "Failed keyboard-interactive/pam for ", type: "login_attempt", severity: "low" },
  { begins: FAILED, type: "login_failure", severity: "medium" },
  { begins: "Invalid user ", type: "login_attempt", severity: "low", reason: "unknown user" },
  ...["error: maximum authentication attempts exceeded for ", "maximum authentication attempts exceeded for "].map(
    (begins): LoginOpening => ({ begins, type: "login_failure", severity: "medium", reason: "too many attempts" }),
  ),
  // Linux-PAM's words, then those of OpenPAM on FreeBSD and macOS.
  ...["Authentication failure", "authentication error", "Authentication error"].flatMap((words): LoginOpening[] => [
    {
      begins: `error: PAM: ${words} for illegal user `,
      type: "login_attempt",
      severity: "low",
      reason: "unknown user",
    },
    { begins: `error: PAM: ${words} for `, type: "login_failure", severity: "medium" },
  ]),
  ...["Bad password attempt for ", "Bad PAM password attempt for "].map((begins): LoginOpening => ({
    begins,
    type: "login_failure",
    severity: "medium",
    method: "password",
  })),
  { begins: "Login attempt for nonexistent user", type: "login_failure", severity: "medium", reason: "unknown user" },
  { begins: "Partial ", type: "login_attempt", severity: "info" },
  { begins: "Postponed ", type: "login_attempt", severity: "info" },
  { begins: "Accepted ", type: "login_success", severity: "info" },
  ...["Password auth succeeded for ", "PAM password auth succeeded for "].map((begins): LoginOpening => ({
    begins,
    type: "login_success",
    severity: "info",
    method: "password",
  })),
  { begins: "Pubkey auth succeeded for ", type: "login_success", severity: "info", method: "publickey" },
  ...["Received disconnect from ", "error: Received disconnect from "].map((begins): LoginOpening => ({
    begins,
    type: "session_closed",
    severity: "info",
  })),
  { begins: "Disconnected from ", type: "session_closed", severity: "info" },
  { begins: "Connection closed by ", type: "session_closed", severity: "info" },
  { begins: "Connection reset by ", type: "session_closed", severity: "info" },
];

const REPEATED = /^message repeated (\d{1,6}) times: \[ ?/;

export const SSH_LOGINS = {
  name: "ssh-logins",
  about: "logins to sshd and dropbear, and PAM's messages under their names",
  devices: ["OpenSSH", "dropbear"],
  page: "linux",
  example: "sshd[4242]: Failed password for root from 192.0.2.9 port 4711 ssh2",
  programs: ["sshd", "sshd-session", "sshd-auth", "dropbear"],
  ownsPrograms: true,
  read: ({ message }) => oneEvent(readLogin(message)),
} as const satisfies LineFormat;

/** Undefined if the message is not about a login. */
function readLogin(message: string): ParsedEvent | undefined {
  const raw: JsonObject = { service: "ssh" };
  let text = message.slice(0, MESSAGE_CHARACTERS_MAX).trimEnd();
  const repeated = REPEATED.exec(text);
  if (repeated) {
    text = text.slice(repeated[0].length).replace(/\]$/, "");
    put(raw, "repeated", integerOf(repeated[1]));
  }
  const pam = readPam(text, raw);
  if (pam) return loginEvent(pam, text, raw);
  const opening = OPENINGS.find(({ begins }) => text.startsWith(begins));
  if (!opening) return readConnection(text, raw);
  put(raw, "reason", opening.reason);
  put(raw, "method", opening.method);
  readPeer(text, opening, raw);
  return loginEvent(opening, text, raw);
}

function loginEvent(
  { type, severity, class: eventClass }: Pick<LoginOpening, "type" | "severity"> & Partial<Pick<ParsedEvent, "class">>,
  text: string,
  raw: JsonObject,
): ParsedEvent {
  put(raw, "message", text);
  return { type, source: "network", severity, class: eventClass, timestampMs: null, raw };
}

/** Reads the user and the address. Everything between the opening and the last ` from ` was typed by the client. */
function readPeer(text: string, { begins, type }: LoginOpening, raw: JsonObject): void {
  const isSession = type === "session_closed";
  const prefix = begins.startsWith(FAILED) ? FAILED : begins;
  const last = isSession ? -1 : text.lastIndexOf(" from ");
  const who = text.slice(prefix.length, last < 0 ? text.length : last);
  const where = last < 0 ? who : text.slice(last + " from ".length);
  if (isSession) readSessionPeer(where, raw);
  else {
    const isFound = readAddress(where.split(" "), raw);
    if (!isFound && begins.startsWith("error: PAM: ") && HOST_NAME.test(where)) put(raw, "src_host", where);
    readUser(who, prefix, raw);
  }
}

const HOST_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;

/** Reads `192.0.2.1 port 22 ssh2` or `192.0.2.1:4711`; returns false if there is no address. */
function readAddress(words: readonly string[], raw: JsonObject): boolean {
  const [first = "", second, third] = words;
  const colon = first.lastIndexOf(":");
  const address = addressOf(first);
  if (address !== undefined) {
    put(raw, "src_ip", address);
    if (second === "port") put(raw, "src_port", portOf((third ?? "").split(":", 1)[0]));
    return true;
  }
  const before = colon < 0 ? undefined : addressOf(first.slice(0, colon).replace(/^\[|\]$/g, ""));
  put(raw, "src_ip", before);
  if (before !== undefined) put(raw, "src_port", portOf(first.slice(colon + 1)));
  return before !== undefined;
}

/** Reads `password for invalid user bob`, `publickey for root`, `'root'`, `'root' with ssh-ed25519 key SHA256:...`, `bob`. */
function readUser(who: string, prefix: string, raw: JsonObject): void {
  let user = who;
  if (NAMES_METHOD.has(prefix)) {
    const at = who.indexOf(" for ");
    if (at < 0) return;
    put(raw, "method", who.slice(0, at));
    user = who.slice(at + " for ".length);
  }
  if (user.startsWith("invalid user ")) {
    user = user.slice("invalid user ".length);
    put(raw, "reason", "unknown user");
  }
  put(raw, "user", withoutQuotes(user).replace(/^illegal user /, ""));
}

/** Removes dropbear's quotes around the name, and the key after it. */
function withoutQuotes(user: string): string {
  const end = user.lastIndexOf("'");
  const isQuoted = end > 0 && user.startsWith("'") && (end === user.length - 1 || user.startsWith(" with ", end + 1));
  return isQuoted ? user.slice(1, end) : user;
}

/** Reads `192.0.2.1 port 22:11: bye`, `user bob 192.0.2.1 port 22`, `authenticating user bob 192.0.2.1 port 22 [preauth]`. */
function readSessionPeer(text: string, raw: JsonObject): void {
  const words = text.split(" ");
  // The client chooses the user in front of the address and the farewell behind it.
  const port = addressOf(words[0]) === undefined ? words.lastIndexOf("port") : 1;
  const address = port > 0 ? port - 1 : 0;
  if (!readAddress(words.slice(address), raw)) return;
  const before = words.slice(0, address).join(" ");
  const user = before.replace(/^(?:invalid |authenticating )?user ?/, "");
  put(raw, "user", user);
  if (text.endsWith("[preauth]")) put(raw, "reason", "before logging in");
}
