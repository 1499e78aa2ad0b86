import type { JsonObject } from "../../../model/event.ts";
import { put } from "../device-values.ts";
import { oneEvent, type LineFormat, type LineMessage } from "../line-format.ts";
import type { ParsedEvent } from "../reading.ts";
import { readPam } from "./pam-messages.ts";

// PAM's messages under the names of programs other than sshd.

const MESSAGE_CHARACTERS_MAX = 2048;

/** Programs that report a failed attempt themselves, so that PAM's line does not count as another. */
const REPORTS_FAILURES: ReadonlySet<string> = new Set(["sudo", "su", "login", "vsftpd", "dovecot", "auth", "smbd"]);

export const PAM = {
  name: "pam",
  about:
    "logins, sessions and password changes that PAM reports for sudo, su, login, cron, display managers and servers",
  devices: ["Linux", "FreeBSD", "macOS"],
  page: "linux",
  example:
    "xrdp-sesman[812]: pam_unix(xrdp-sesman:auth): authentication failure; logname= uid=0 euid=0 tty=xrdp-sesman ruser= rhost=192.0.2.9  user=robin",
  programs: [
    "sudo",
    "su",
    "su-l",
    "runuser",
    "login",
    "passwd",
    "chpasswd",
    "polkitd",
    "polkit-agent-helper-1",
    "pkexec",
    "systemd",
    "systemd-user",
    "(systemd)",
    "systemd-logind",
    "gdm",
    "gdm-password",
    "gdm3",
    "lightdm",
    "sddm",
    "xrdp-sesman",
    "cockpit-session",
    "cockpit-tls",
    "CRON",
    "cron",
    "crond",
    "atd",
    "vsftpd",
    "proftpd",
    "pure-ftpd",
    "ftpd",
    "dovecot",
    "auth",
    "saslauthd",
    "smbd",
    "openvpn",
    "remote",
    "i3lock",
    "xscreensaver",
    "kscreenlocker_greet",
  ],
  ownsPrograms: true,
  read: (message) => oneEvent(readMessage(message)),
} as const satisfies LineFormat;

const SERVICE = /^pam_[a-z\d_]{1,32}\(([^\s():]{1,32}):/;

function readMessage({ program, message }: LineMessage): ParsedEvent | undefined {
  const text = message.slice(0, MESSAGE_CHARACTERS_MAX).trimEnd();
  const service = SERVICE.exec(text)?.[1];
  if (service === undefined) return undefined;
  const raw: JsonObject = { service };
  const meaning = readPam(text, raw);
  if (meaning === undefined) return undefined;
  const isOnlyReport = meaning.type === "login_attempt" && text.includes("authentication failure; ");
  const counts = isOnlyReport && !REPORTS_FAILURES.has(program ?? "");
  put(raw, "message", text);
  return {
    ...meaning,
    ...(counts && { type: "login_failure", severity: "medium" }),
    source: "network",
    timestampMs: null,
    raw,
  };
}
