import type { JsonObject, Severity } from "../../model/event.ts";
import { addressOf, integerOf, portOf, put } from "../fields.ts";
import type { ReadEvent } from "../reading.ts";

// Logins to a device, as sshd and dropbear write them. The pattern of each begins at the beginning and has nothing in it
// that could be tried in many ways: what an attacker chooses is his name, and it may hold anything.

const MESSAGE_CHARACTERS_MAX = 2048;

const FAILED = "Failed ";

interface Told {
  readonly type: string;
  readonly severity: Severity;
  readonly begins: string;
  readonly reason?: string;
  /** Where the message does not name it. */
  readonly method?: string;
}

/**
 * By how the message begins; the first that fits counts. An attempt that fails is one `login_failure`, however many lines sshd
 * writes about it: `Failed` is told of each attempt, but with PAM of a user who exists only now and then, and then PAM's own
 * line is told of each. The others are a `login_attempt`, which is not counted as a failure.
 */
const OPENINGS: readonly Told[] = [
  { begins: "Failed password for ", type: "login_failure", severity: "medium" },
  // Whether a password is needed at all is asked before the first one is tried.
  { begins: "Failed none for ", type: "login_attempt", severity: "low" },
  { begins: "Failed keyboard-interactive/pam for invalid user ", type: "login_failure", severity: "medium" },
  { begins: "Failed keyboard-interactive/pam for ", type: "login_attempt", severity: "low" },
  { begins: FAILED, type: "login_failure", severity: "medium" },
  { begins: "Invalid user ", type: "login_attempt", severity: "low", reason: "unknown user" },
  ...["error: maximum authentication attempts exceeded for ", "maximum authentication attempts exceeded for "].map(
    (begins): Told => ({ begins, type: "login_failure", severity: "medium", reason: "too many attempts" }),
  ),
  {
    begins: "error: PAM: Authentication failure for illegal user ",
    type: "login_attempt",
    severity: "low",
    reason: "unknown user",
  },
  { begins: "error: PAM: Authentication failure for ", type: "login_failure", severity: "medium" },
  ...["Bad password attempt for ", "Bad PAM password attempt for "].map((begins): Told => ({
    begins,
    type: "login_failure",
    severity: "medium",
    method: "password",
  })),
  { begins: "Login attempt for nonexistent user", type: "login_failure", severity: "medium", reason: "unknown user" },
  { begins: "Accepted ", type: "login_success", severity: "info" },
  ...["Password auth succeeded for ", "PAM password auth succeeded for "].map((begins): Told => ({
    begins,
    type: "login_success",
    severity: "info",
    method: "password",
  })),
  { begins: "Pubkey auth succeeded for ", type: "login_success", severity: "info", method: "publickey" },
  { begins: "Received disconnect from ", type: "session_closed", severity: "info" },
  { begins: "Disconnected from ", type: "session_closed", severity: "info" },
  { begins: "Connection closed by ", type: "session_closed", severity: "info" },
  { begins: "Connection reset by ", type: "session_closed", severity: "info" },
];

const REPEATED = /^message repeated (\d{1,6}) times: \[ ?/;

/** Who writes such lines. */
export const LOGIN_PROGRAMS: readonly string[] = ["sshd", "sshd-session", "sshd-auth", "dropbear"];

/** The event in a message of one of these; undefined where it says nothing about a login. */
export function readLogin(message: string): ReadEvent | undefined {
  const raw: JsonObject = { service: "ssh" };
  let text = message.slice(0, MESSAGE_CHARACTERS_MAX).trimEnd();
  const repeated = REPEATED.exec(text);
  if (repeated) {
    text = text.slice(repeated[0].length).replace(/\]$/, "");
    put(raw, "repeated", integerOf(repeated[1]));
  }
  const pam = readPam(text, raw);
  if (pam) return loginEvent(pam, text, raw);
  const told = OPENINGS.find(({ begins }) => text.startsWith(begins));
  if (!told) return undefined;
  put(raw, "reason", told.reason);
  put(raw, "method", told.method);
  readPeer(text, told, raw);
  return loginEvent(told, text, raw);
}

function loginEvent({ type, severity }: Pick<Told, "type" | "severity">, text: string, raw: JsonObject): ReadEvent {
  put(raw, "message", text);
  return { type, source: "network", severity, timestampMs: null, raw };
}

/** A module says what it has done, and at the end of several attempts PAM itself how many more there were. */
const PAM_FAILURE =
  /^(?:pam_[a-z\d_]{1,32}\([^\s():]{1,32}:auth\): authentication failure|PAM \d{1,6} more authentication failures?); /;
const PAM_STRANGER = /^pam_[a-z\d_]{1,32}\([^\s():]{1,32}:auth\): check pass; user unknown$/;
const PAM_SESSION = /^pam_[a-z\d_]{1,32}\([^\s():]{1,32}:session\): session (opened|closed) for user /;
/** `root by (uid=0)`, `root(uid=0) by root(uid=0)`. */
const SESSION_OWNER = /(?:\(uid=\d{1,10}\))?(?: by [^ ]{0,64}\(uid=\d{1,10}\))?$/;

/**
 * What PAM writes under the name of the program that asked it. An attempt that fails is told by the program too, and counts
 * as that. The user is the last thing in the line, since he may be called anything.
 */
function readPam(text: string, raw: JsonObject): Pick<Told, "type" | "severity"> | undefined {
  const session = PAM_SESSION.exec(text);
  if (session) {
    put(raw, "user", text.slice(session[0].length).replace(SESSION_OWNER, ""));
    return { type: `session_${session[1]!}`, severity: "info" };
  }
  const failure = PAM_FAILURE.exec(text);
  if (failure) readPamPeer(text.slice(failure[0].length), raw);
  else if (PAM_STRANGER.test(text)) put(raw, "reason", "unknown user");
  else return undefined;
  return { type: "login_attempt", severity: "low" };
}

/** `logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.9  user=root`, without the user where he does not exist. */
function readPamPeer(words: string, raw: JsonObject): void {
  const at = words.indexOf("rhost=");
  if (at < 0) return;
  const [, where, user] = /^([^ ]*)(?: +user=(.*))?/s.exec(words.slice(at + "rhost=".length)) ?? [];
  const address = addressOf(where);
  put(raw, address === undefined ? "src_host" : "src_ip", address ?? where);
  put(raw, "user", user);
}

/** The user, and the address at the end: what stands between the opening and the last ` from ` is whatever the attacker typed. */
function readPeer(text: string, { begins, type }: Told, raw: JsonObject): void {
  const isSession = type === "session_closed";
  const opening = begins.startsWith(FAILED) ? FAILED : begins;
  const last = isSession ? -1 : text.lastIndexOf(" from ");
  const who = text.slice(opening.length, last < 0 ? text.length : last);
  const where = last < 0 ? who : text.slice(last + " from ".length);
  if (isSession) readSessionPeer(where, raw);
  else {
    readAddress(where.split(" "), raw);
    readUser(who, opening, raw);
  }
}

/** `192.0.2.1 port 22 ssh2`, `192.0.2.1:4711`. */
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

/** `password for invalid user bob`, `publickey for root`, `'root'`, `'root' with ssh-ed25519 key SHA256:...`, `bob`. */
function readUser(who: string, opening: string, raw: JsonObject): void {
  let user = who;
  if (opening === FAILED || opening === "Accepted ") {
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

/** dropbear quotes the name, and says behind it which key was shown. */
function withoutQuotes(user: string): string {
  const end = user.lastIndexOf("'");
  const isQuoted = end > 0 && user.startsWith("'") && (end === user.length - 1 || user.startsWith(" with ", end + 1));
  return isQuoted ? user.slice(1, end) : user;
}

/** `192.0.2.1 port 22:11: bye`, `user bob 192.0.2.1 port 22`, `authenticating user bob 192.0.2.1 port 22 [preauth]`. */
function readSessionPeer(text: string, raw: JsonObject): void {
  const words = text.split(" ");
  const port = words.indexOf("port");
  const address = port > 0 ? port - 1 : 0;
  if (!readAddress(words.slice(address), raw)) return;
  const before = words.slice(0, address).join(" ");
  const user = before.replace(/^(?:invalid |authenticating )?user ?/, "");
  put(raw, "user", user);
  if (text.endsWith("[preauth]")) put(raw, "reason", "before logging in");
}
