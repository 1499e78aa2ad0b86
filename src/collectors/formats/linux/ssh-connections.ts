import type { JsonObject, Severity } from "../../../model/event.ts";
import { addressOf, portOf, put } from "../device-values.ts";
import type { ParsedEvent } from "../reading.ts";

// Lines of sshd and dropbear about connections that did not come to a login, and about accounts that may not log in. All patterns
// are anchored at both ends of what a client chose.

interface ConnectionKind {
  /** With the groups `ip`, `port`, `user`, `reason` and `to`. */
  readonly pattern: RegExp;
  readonly type: string;
  readonly severity: Severity;
  readonly reason?: string;
}

const IP = String.raw`\[?(?<ip>[0-9A-Fa-f:.]{2,45}(?:%[\w.-]{1,32})?)\]?`;
const PEER = String.raw`${IP}(?: port (?<port>\d{1,5}))?`;
/** sshd puts it in front of messages that end the process. */
const FATAL = "^(?:fatal: |error: )?";
const PREAUTH = String.raw`(?: \[preauth\])?$`;

const FAILED: Pick<ConnectionKind, "type" | "severity"> = { type: "ssh_connection_failed", severity: "low" };

/** Tried by the first word that must occur in the message. */
const KINDS: readonly (readonly [words: string, ConnectionKind])[] = [
  [
    "Unable to negotiate with ",
    {
      ...FAILED,
      pattern: new RegExp(`${FATAL}Unable to negotiate with ${PEER}: (?<reason>no matching [a-z ]{1,64} found)`),
    },
  ],
  [
    "Did not receive identification string from ",
    {
      ...FAILED,
      pattern: new RegExp(`^Did not receive identification string from ${PEER}${PREAUTH}`),
      reason: "no identification",
    },
  ],
  [
    "Bad protocol version identification ",
    {
      ...FAILED,
      pattern: new RegExp(`^Bad protocol version identification '.*' from ${PEER}${PREAUTH}`, "s"),
      reason: "bad protocol version identification",
    },
  ],
  [
    "banner exchange: Connection from ",
    {
      ...FAILED,
      pattern: new RegExp(`^(?:error: )?banner exchange: Connection from ${PEER}: (?<reason>[^\\n]{1,128})$`),
    },
  ],
  [
    "kex_exchange_identification: ",
    { ...FAILED, pattern: /^(?:fatal: |error: )?kex_exchange_identification: (?<reason>[^"\n]{1,128})/ },
  ],
  [
    "Timeout before authentication for ",
    {
      ...FAILED,
      pattern: new RegExp(
        `${FATAL}Timeout before authentication for (?:connection from )?${PEER}(?: to (?<to>[0-9A-Fa-f:.]{2,45}))?(?:, pid = \\d{1,9})?\\.?${PREAUTH}`,
      ),
      reason: "timeout before authentication",
    },
  ],
  [
    "drop connection #",
    {
      ...FAILED,
      pattern: new RegExp(
        `^(?:error: )?drop connection #\\d{1,9} from \\[(?<ip>[^\\]\\s]{2,64})\\]:(?<port>\\d{1,5}) on \\[(?<to>[^\\]\\s]{2,64})\\]:\\d{1,5} (?<reason>[^\\n]{1,128})$`,
      ),
    },
  ],
  [
    "ssh_dispatch_run_fatal: Connection from ",
    {
      ...FAILED,
      pattern: new RegExp(
        `${FATAL}ssh_dispatch_run_fatal: Connection from (?:(?:authenticating |invalid )?user .{0,1024} )?${PEER}: (?<reason>[^:\\n]{1,128})$`,
        "s",
      ),
    },
  ],
  [
    " not allowed because ",
    {
      pattern: new RegExp(`^User (?<user>.*) from (?<ip>[^ ]{1,255}) not allowed because (?<reason>.{1,256})$`, "s"),
      type: "login_attempt",
      severity: "low",
    },
  ],
  [
    "ROOT LOGIN REFUSED FROM ",
    {
      pattern: new RegExp(`^ROOT LOGIN REFUSED FROM ${PEER}${PREAUTH}`),
      type: "login_attempt",
      severity: "low",
      reason: "root login refused",
    },
  ],
  [
    "by PAM account configuration",
    {
      pattern:
        /^(?:fatal: |error: )?Access denied for user (?<user>.*) by PAM account configuration(?: \[preauth\])?$/s,
      type: "login_failure",
      severity: "medium",
      reason: "denied by PAM account configuration",
    },
  ],
  [
    "error: PAM: ",
    {
      pattern: new RegExp(
        `^error: PAM: (?<reason>[A-Za-z][A-Za-z ]{3,80}?) for (?:illegal user )?(?<user>.*) from ${IP}$`,
        "s",
      ),
      type: "login_failure",
      severity: "medium",
    },
  ],
  [
    "input_userauth_request: invalid user ",
    {
      pattern: /^input_userauth_request: invalid user (?<user>.*?)(?: \[preauth\])?$/s,
      type: "login_attempt",
      severity: "low",
      reason: "unknown user",
    },
  ],
  [
    "POSSIBLE BREAK-IN ATTEMPT!",
    {
      pattern: new RegExp(
        `^(?:reverse mapping checking getaddrinfo for (?:[^ \\[]{1,255}) \\[(?<ip>[^\\]\\s]{2,64})\\] failed|Address (?<address>[^ ]{2,64}) maps to [^ ]{1,255}, but this does not map back to the address) - POSSIBLE BREAK-IN ATTEMPT!$`,
      ),
      type: "ssh_reverse_mapping_failed",
      severity: "info",
    },
  ],
  [
    "Starting session: ",
    {
      pattern: new RegExp(`^Starting session: .{1,512} for (?<user>.{1,256}) from ${PEER} id \\d{1,6}$`, "s"),
      type: "session_opened",
      severity: "info",
    },
  ],
  [
    "Close session: user ",
    {
      pattern: new RegExp(`^Close session: user (?<user>.{1,256}) from ${PEER} id \\d{1,6}$`, "s"),
      type: "session_closed",
      severity: "info",
    },
  ],
  [
    "Connection from ",
    {
      pattern: new RegExp(`^Connection from ${PEER} on (?<to>[0-9A-Fa-f:.]{2,45}) port \\d{1,5}`),
      type: "ssh_connection",
      severity: "info",
    },
  ],
  [
    "Child connection from ",
    {
      pattern: /^Child connection from \[?(?<ip>[0-9A-Fa-f:.]{2,45}?)\]?:(?<port>\d{1,5})$/,
      type: "ssh_connection",
      severity: "info",
    },
  ],
  [
    "Exit before auth",
    {
      pattern:
        /^Exit before auth(?: \(user '(?<user>.{0,256})', \d{1,6} fails\))?(?: from <\[?(?<ip>[0-9A-Fa-f:.]{2,45}?)\]?:(?<port>\d{1,5})>)?: /s,
      type: "session_closed",
      severity: "info",
      reason: "before logging in",
    },
  ],
  [
    "Exit (",
    {
      pattern: /^Exit \((?<user>.{1,256})\)(?: from <\[?(?<ip>[0-9A-Fa-f:.]{2,45}?)\]?:(?<port>\d{1,5})>)?: /s,
      type: "session_closed",
      severity: "info",
    },
  ],
];

/** Undefined if the message is about something else. */
export function readConnection(text: string, raw: JsonObject): ParsedEvent | undefined {
  for (const [words, { pattern, type, severity, reason }] of KINDS) {
    if (!text.includes(words)) continue;
    const groups = pattern.exec(text)?.groups;
    if (groups === undefined) continue;
    const where = groups["ip"] ?? groups["address"];
    const address = addressOf(where);
    if (address !== undefined) put(raw, "src_ip", address);
    else if (where !== undefined && HOST_NAME.test(where)) put(raw, "src_host", where);
    put(raw, "src_port", portOf(groups["port"]));
    put(raw, "dst_ip", addressOf(groups["to"]));
    put(raw, "user", groups["user"]);
    put(raw, "reason", reason ?? groups["reason"]);
    put(raw, "message", text);
    const eventClass = type.startsWith("ssh_connection") && severity === "info" ? "network" : "security";
    return { type, source: "network", severity, class: eventClass, timestampMs: null, raw };
  }
  return undefined;
}

const HOST_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;
