import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(`<86>Nov 15 20:00:00 web-1 ${line}`, CONTEXT));

describe("PAM under the name of another program", () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      "sudo[7]: pam_unix(sudo:auth): authentication failure; logname=robin uid=1000 euid=0 tty=/dev/pts/0 ruser=robin rhost=  user=robin",
      "login_attempt",
      { user: "robin", service: "sudo" },
    ],
    [
      "xrdp-sesman[7]: pam_unix(xrdp-sesman:auth): authentication failure; logname= uid=0 euid=0 tty=xrdp-sesman ruser= rhost=2001:db8::9  user=robin",
      "login_failure",
      { user: "robin", src_ip: "2001:db8::9", service: "xrdp-sesman" },
    ],
    [
      "proftpd[7]: pam_unix(proftpd:auth): authentication failure; logname= uid=0 euid=0 tty=ftp ruser=a rhost=198.51.100.1 b rhost=192.0.2.9",
      "login_failure",
      { service: "proftpd" },
    ],
    [
      "CRON[7]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)",
      "session_opened",
      { user: "root" },
    ],
    ["systemd[7]: pam_unix(systemd-user:session): session closed for user robin", "session_closed", { user: "robin" }],
    ["passwd[7]: pam_unix(passwd:chauthtok): password changed for robin", "password_changed", { target: "robin" }],
    [
      "login[7]: pam_faillock(login:auth): Consecutive login failures for user robin account temporarily locked",
      "account_locked",
      { user: "robin" },
    ],
    [
      "cockpit-session[7]: pam_unix(cockpit:account): account robin has expired (account expired)",
      "login_attempt",
      { user: "robin", reason: "account expired" },
    ],
    [
      "gdm-password[7]: pam_unix(gdm-password:auth): check pass; user unknown",
      "login_attempt",
      { reason: "unknown user" },
    ],
    ["sudo[7]: pam_unix(sudo:auth): conversation failed", "unparsed", {}],
  ])("%s", (line, type, expected) => {
    expect(read(line)).toMatchObject({ type, source: "network", raw: { ...expected, device: "web-1" } });
  });
});

test("a client's name that imitates a host leaves the host open", () => {
  const failure = "pam_unix(proftpd:auth): authentication failure; logname= uid=0 euid=0 tty=ftp";
  const known = read(`proftpd[7]: ${failure} ruser=ann rhost=192.0.2.9`);
  expect(known.raw).toMatchObject({ user: "ann", src_ip: "192.0.2.9" });
  const imitated = read(`proftpd[7]: ${failure} ruser=a rhost=198.51.100.1 b rhost=192.0.2.9`);
  expect(imitated.raw).not.toHaveProperty("src_ip");
});

describe("sudo", () => {
  test.each<[string, string, string, Record<string, unknown>]>([
    [
      "   robin : TTY=pts/0 ; PWD=/home/robin ; USER=root ; COMMAND=/usr/bin/id",
      "sudo_command",
      "info",
      { user: "robin", target: "root", command: "/usr/bin/id", tty: "pts/0" },
    ],
    [
      "robin : HOST=web-1 ; TTY=pts/0 ; PWD=/tmp ; USER=www ; GROUP=www ; ENV=A=b ; COMMAND=/bin/sh -c a ; USER=b",
      "sudo_command",
      "info",
      { target: "www", command: "/bin/sh -c a ; USER=b" },
    ],
    [
      "robin : 3 incorrect password attempts ; TTY=pts/0 ; PWD=/home/robin ; USER=root ; COMMAND=/usr/bin/id",
      "login_failure",
      "medium",
      { user: "robin", target: "root", service: "sudo", reason: "3 incorrect password attempts" },
    ],
    [
      "robin : user NOT in sudoers ; TTY=pts/0 ; PWD=/home/robin ; USER=root ; COMMAND=/usr/bin/id",
      "sudo_refused",
      "medium",
      { user: "robin", command: "/usr/bin/id" },
    ],
    [
      "robin : command not allowed ; TTY=pts/0 ; PWD=/home/robin ; USER=root ; COMMAND=/usr/bin/id",
      "sudo_refused",
      "medium",
      { reason: "command not allowed" },
    ],
    ["robin : a password is required ; TTY=unknown ; PWD=/ ; USER=root ; COMMAND=list", "sudo_refused", "low", {}],
    ["a b : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/bin/id", "unparsed", "info", {}],
    ["robin : something else ; TTY=pts/0", "unparsed", "info", {}],
    ["robin : TTY=pts/0 ; PWD=/home/robin", "unparsed", "info", {}],
  ])("%s", (message, type, severity, expected) => {
    expect(read(`sudo[7]: ${message}`)).toMatchObject({
      type,
      ...(type !== "unparsed" && { severity }),
      raw: expected,
    });
  });

  test("a folder that imitates a user leaves the user open", () => {
    const { raw } = read("sudo: robin : TTY=pts/0 ; PWD=/tmp/a ; USER=nobody ; USER=root ; COMMAND=/bin/sh");
    expect(raw).toMatchObject({ user: "robin", command: "/bin/sh" });
    expect(raw).not.toHaveProperty("target");
  });
});
