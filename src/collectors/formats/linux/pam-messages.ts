import type { EventClass, JsonObject, Severity } from "../../../model/event.ts";
import { addressOf, put } from "../device-values.ts";

// Messages of PAM modules, which are logged under the name of the calling program.

export interface PamMeaning {
  readonly type: string;
  readonly severity: Severity;
  readonly class?: EventClass;
}

/** A failure reported by a PAM module, or PAM's summary after several attempts. */
const PAM_FAILURE =
  /^(?:pam_[a-z\d_]{1,32}\([^\s():]{1,32}:auth\): authentication failure|PAM \d{1,6} more authentication failures?); /;
const PAM_UNKNOWN_USER = /^pam_[a-z\d_]{1,32}\([^\s():]{1,32}:auth\): check pass; user unknown$/;
const PAM_PASSWORD = /^pam_[a-z\d_]{1,32}\([^\s():]{1,32}:chauthtok\): password changed for (.*)$/s;
const PAM_ACCOUNT = /^pam_[a-z\d_]{1,32}\([^\s():]{1,32}:account\): account (.*) has expired \((.{1,64})\)$/s;
const PAM_LOCKED =
  /^pam_(?:faillock|tally2?)\([^\s():]{1,32}:auth\): (?:Consecutive login failures for user (.*) account temporarily locked|user (.*) \(\d{1,10}\) tally \d{1,9}, deny \d{1,9})$/s;
const PAM_SESSION = /^pam_[a-z\d_]{1,32}\([^\s():]{1,32}:session\): session (opened|closed) for user /;
/** `root by (uid=0)`, `root(uid=0) by root(uid=0)`. */
const SESSION_OWNER = /(?:\(uid=\d{1,10}\))?(?: by [^ ]{0,64}\(uid=\d{1,10}\))?$/;

/** The user that the client named; FTP servers put it here. */
const REMOTE_USER = / ruser=(.+) $/s;

/**
 * Reads PAM's messages under the name of the calling program. The program reports a failed attempt too, and only that report
 * counts as a failure. The user name ends the line, since it may contain anything.
 */
export function readPam(text: string, raw: JsonObject): PamMeaning | undefined {
  const session = PAM_SESSION.exec(text);
  if (session) {
    put(raw, "user", text.slice(session[0].length).replace(SESSION_OWNER, ""));
    return { type: `session_${session[1]!}`, severity: "info" };
  }
  const failure = PAM_FAILURE.exec(text);
  if (failure) readPamPeer(text.slice(failure[0].length), raw);
  else if (PAM_UNKNOWN_USER.test(text)) put(raw, "reason", "unknown user");
  else return readPamAccount(text, raw);
  return { type: "login_attempt", severity: "low" };
}

function readPamAccount(text: string, raw: JsonObject): PamMeaning | undefined {
  const changed = PAM_PASSWORD.exec(text);
  if (changed) {
    put(raw, "target", changed[1]);
    return { type: "password_changed", severity: "low", class: "audit" };
  }
  const locked = PAM_LOCKED.exec(text);
  if (locked) {
    put(raw, "user", locked[1] ?? locked[2]);
    return { type: "account_locked", severity: "medium", class: "security" };
  }
  const expired = PAM_ACCOUNT.exec(text);
  if (!expired) return undefined;
  put(raw, "user", expired[1]);
  put(raw, "reason", expired[2]);
  return { type: "login_attempt", severity: "low" };
}

/** Reads `logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.9  user=root`; an unknown user is omitted. */
function readPamPeer(words: string, raw: JsonObject): void {
  const at = words.indexOf("rhost=");
  // Servers other than sshd put a name that the client chose in front of the host.
  const isCertain = words.startsWith("ruser= ", at - "ruser= ".length) || at === words.lastIndexOf("rhost=");
  if (at < 0 || !isCertain) return;
  const [, where, user] = /^([^ ]*)(?: +user=(.*))?/s.exec(words.slice(at + "rhost=".length)) ?? [];
  const address = addressOf(where);
  put(raw, address === undefined ? "src_host" : "src_ip", address ?? where);
  put(raw, "user", user);
  if (raw["user"] === undefined) put(raw, "user", REMOTE_USER.exec(words.slice(0, at))?.[1]);
}
