import type { EventClass, JsonObject, Severity } from "../../../model/event.ts";
import { addressOf, FIELDS_MAX, integerOf, put, putForeign, typeOf } from "../device-values.ts";
import { isFieldName } from "../described/field-values.ts";
import { oneEvent, type LineFormat, type LineMessage } from "../line-format.ts";
import type { ParsedEvent } from "../reading.ts";

// Records of the Linux audit system. Each keeps its own field names, which Sigma rules ask for. The kernel writes a text that
// contains blanks, quotes or control characters in hexadecimal digits, so nothing that a user typed can imitate a field.

const MESSAGE_CHARACTERS_MAX = 32_768;

const about = "records of the Linux audit system";
const example =
  `type=USER_LOGIN msg=audit(1794736800.000:812): pid=4242 uid=0 auid=4294967295 ses=4294967295 msg='op=login acct="robin" ` +
  `exe="/usr/sbin/sshd" hostname=? addr=192.0.2.9 terminal=sshd res=failed'`;

export const AUDITD = {
  name: "auditd",
  about: `${about}, from auditd's plugin for syslog`,
  devices: ["Linux audit system (auditd)"],
  page: "auditd",
  example: `audispd: ${example}`,
  programs: ["auditd", "audispd", "audisp-syslog"],
  ownsPrograms: true,
  read: (message) => oneEvent(readRecord(message)),
} as const satisfies LineFormat;

/** Lines of audit.log, of a kernel without a running auditd, and of journald. Other devices call a program `audit`, too. */
export const AUDIT_LOG = {
  name: "audit-log",
  about: `${about}, as they stand in audit.log or come from the kernel`,
  devices: ["Linux audit system (auditd)"],
  page: "auditd",
  example,
  read: (message) =>
    message.program === null || WRITERS.has(message.program) ? oneEvent(readRecord(message)) : undefined,
} as const satisfies LineFormat;

const WRITERS: ReadonlySet<string> = new Set(["kernel", "audit"]);

/** `type=SYSCALL msg=audit(1794736800.000:812): `, also with `node=`, and the kernel's `audit: type=1400 audit(...): `. */
const HEADER =
  /^(?:\[ *\d{1,9}\.\d{1,6}\] )?(?:audit: )?(?:node=(\S{1,255}) )?type=([A-Z_0-9]{1,40}|UNKNOWN\[\d{1,5}\]) (?:msg=)?audit\((\d{1,12})\.(\d{3}):(\d{1,12})\): ?/;
/** journald's form, without a time: `SYSCALL arch=...`. */
const JOURNAL_HEADER = /^(?:<audit-\d{4}>|[A-Z][A-Z_0-9]{2,40}) (?=[a-z]\w{0,31}=)/;

/** Numbers that the kernel writes instead of names. */
const NAMES: Readonly<Record<string, string>> = {
  1100: "USER_AUTH",
  1101: "USER_ACCT",
  1103: "CRED_ACQ",
  1104: "CRED_DISP",
  1105: "USER_START",
  1106: "USER_END",
  1112: "USER_LOGIN",
  1130: "SERVICE_START",
  1131: "SERVICE_STOP",
  1300: "SYSCALL",
  1302: "PATH",
  1305: "CONFIG_CHANGE",
  1307: "CWD",
  1309: "EXECVE",
  1326: "SECCOMP",
  1327: "PROCTITLE",
  1400: "AVC",
};

interface Meaning {
  readonly type: string;
  readonly severity: Severity;
  readonly class: EventClass;
}

const audit = (type: string, severity: Severity): Meaning => ({ type, severity, class: "audit" });
const security = (type: string, severity: Severity): Meaning => ({ type, severity, class: "security" });

function meaningOf(kind: string, raw: JsonObject): Meaning {
  const isFailed = raw["res"] === "failed" || raw["res"] === "no" || raw["res"] === "0";
  switch (kind) {
    case "USER_LOGIN":
      return isFailed ? security("login_failure", "medium") : security("login_success", "info");
    case "USER_AUTH":
      return isFailed ? security("login_attempt", "low") : audit("audit_user_auth", "info");
    case "ADD_USER":
      return audit(isFailed ? "audit_add_user" : "user_created", "low");
    case "DEL_USER":
      return audit(isFailed ? "audit_del_user" : "user_deleted", "low");
    case "ADD_GROUP":
      return audit(isFailed ? "audit_add_group" : "group_created", "info");
    case "USER_CHAUTHTOK":
      return audit(isFailed ? "audit_user_chauthtok" : "password_changed", "low");
    case "CONFIG_CHANGE":
      return audit("audit_config_changed", "low");
    case "DAEMON_END":
    case "DAEMON_ABORT":
      return security("audit_stopped", "medium");
    case "AVC":
    case "USER_AVC":
    case "APPARMOR_DENIED":
      return security("avc_denied", "low");
    default:
      return kind.startsWith("ANOM_") || kind === "SECCOMP"
        ? security(typeOf(`audit_${kind}`, "audit"), "low")
        : audit(typeOf(`audit_${kind}`, "audit"), "info");
  }
}

function readRecord({ program, message }: LineMessage): ParsedEvent | undefined {
  const text = message.length > MESSAGE_CHARACTERS_MAX ? message.slice(0, MESSAGE_CHARACTERS_MAX) : message;
  const header = HEADER.exec(text);
  const short = header === null && program === "audit" ? JOURNAL_HEADER.exec(text) : null;
  if (header === null && short === null) return undefined;
  const kind = nameOf(header?.[2] ?? short![0].trim());
  const raw: JsonObject = { type: kind };
  const leftOut = readFields(text, (header ?? short)![0].length, kind, raw, 0);
  if (leftOut > 0) put(raw, "fields_left_out", leftOut);
  put(raw, "device", header?.[1]);
  put(raw, "event_id", header?.[5]);
  if (program === null) put(raw, "program", "auditd");
  putOurs(raw);
  const timestampMs = header === null ? null : Number(header[3]) * 1000 + Number(header[4]);
  return { ...meaningOf(kind, raw), source: "network", timestampMs, raw };
}

function nameOf(kind: string): string {
  const number = /\d{4}/.exec(kind)?.[0];
  return number !== undefined && Object.hasOwn(NAMES, number) ? NAMES[number]! : kind;
}

/** Fields whose text is in hexadecimal digits unless it is in quotes. */
const ENCODED = /^(?:acct|cmd|comm|cwd|data|dir|exe|file|grp|key|name|new-\w+|ocomm|old-\w+|path|proctitle|tty)$/;
const ARGUMENT = /^a\d{1,4}(?:\[\d{1,4}\])?$/;
const HEXADECIMAL = /^(?:[0-9A-F]{2}){1,16384}$/;
/** Of a repeated field, such as a second `op`, the first value counts. */
const UNKNOWN = new Set(["?", "(null)", ""]);
/** Parts in quotation marks that contain fields. */
const NESTING_MAX = 1;

/** Number of fields past the limit. */
function readFields(text: string, start: number, kind: string, raw: JsonObject, depth: number): number {
  let count = 0;
  let leftOut = 0;
  let at = start;
  while (at < text.length) {
    const equals = text.indexOf("=", at);
    if (equals < 0) break;
    const between = text.slice(at, equals);
    const key = between.slice(Math.max(between.lastIndexOf(" "), between.lastIndexOf("\u001d")) + 1);
    const first = text.charCodeAt(equals + 1);
    if (first === 0x27 && depth < NESTING_MAX) {
      const end = text.lastIndexOf("'");
      const inner = text.slice(equals + 2, end > equals + 1 ? end : text.length);
      leftOut += readFields(inner, 0, kind, raw, depth + 1);
      at = end > equals + 1 ? end + 1 : text.length;
      continue;
    }
    const isQuoted = first === 0x22;
    const end = isQuoted ? endOfQuoted(text, equals + 2) : endOfWord(text, equals + 1);
    const value = isQuoted ? text.slice(equals + 2, end) : text.slice(equals + 1, end);
    at = isQuoted ? end + 1 : end;
    if (key === "" || UNKNOWN.has(value) || Object.hasOwn(raw, key)) continue;
    if (count++ >= FIELDS_MAX) leftOut++;
    else putForeign(raw, isFieldName(key) ? `audit_${key}` : key, isQuoted ? value : decoded(key, value, kind));
  }
  return leftOut;
}

function endOfQuoted(text: string, start: number): number {
  const end = text.indexOf('"', start);
  return end < 0 ? text.length : end;
}

/** auditd separates the fields that it adds itself by a group separator. */
function endOfWord(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) !== 0x20 && text.charCodeAt(at) !== 0x1d) at++;
  return at;
}

/** Arguments of a system call are numbers; those of a command are texts. */
function decoded(key: string, value: string, kind: string): string {
  const isText = ENCODED.test(key) || (kind === "EXECVE" && ARGUMENT.test(key));
  if (!isText || !HEXADECIMAL.test(value)) return value;
  return Buffer.from(value, "hex").toString("utf8").replaceAll("\u0000", " ").trimEnd();
}

function putOurs(raw: JsonObject): void {
  const { acct, addr, hostname, exe, pid, res, ID, AUID } = raw;
  if (typeof acct === "string") put(raw, "user", acct);
  else if (typeof ID === "string" && ID !== "unset") put(raw, "user", ID);
  else if (typeof AUID === "string" && AUID !== "unset") put(raw, "user", AUID);
  const address = addressOf(addr) ?? addressOf(hostname);
  put(raw, "src_ip", address);
  if (address === undefined && typeof hostname === "string") put(raw, "src_host", hostname);
  if (typeof exe === "string") put(raw, "service", exe.slice(exe.lastIndexOf("/") + 1));
  put(raw, "process_id", integerOf(pid));
  if (res === "failed") put(raw, "reason", "failed");
}
