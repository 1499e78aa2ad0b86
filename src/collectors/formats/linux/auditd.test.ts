import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (line: string) => onlyEvent(readLine(line, CONTEXT));
const AT = "msg=audit(1794736800.250:812): ";

describe("records of the Linux audit system", () => {
  test("a failed login", () => {
    const line = `type=USER_LOGIN ${AT}pid=4242 uid=0 auid=4294967295 ses=4294967295 subj=unconfined msg='op=login acct="robin" exe="/usr/sbin/sshd" hostname=? addr=192.0.2.9 terminal=sshd res=failed'`;
    expect(read(line)).toMatchObject({
      type: "login_failure",
      severity: "medium",
      class: "security",
      timestampMs: 1_794_736_800_250,
      raw: {
        type: "USER_LOGIN",
        user: "robin",
        src_ip: "192.0.2.9",
        service: "sshd",
        process_id: 4242,
        terminal: "sshd",
        event_id: "812",
        program: "auditd",
        line,
      },
    });
  });

  test.each<[string, string, Record<string, unknown>]>([
    [
      `type=USER_AUTH ${AT}pid=1 uid=0 msg='op=PAM:authentication grantors=? acct="root" exe="/usr/sbin/sshd" hostname=2001:db8::9 addr=2001:db8::9 terminal=ssh res=failed'`,
      "login_attempt",
      { user: "root", src_ip: "2001:db8::9" },
    ],
    [
      `type=USER_LOGIN ${AT}pid=1 uid=0 msg='op=login id=1000 exe="/usr/sbin/sshd" hostname=10.9.1.7 addr=10.9.1.7 terminal=/dev/pts/0 res=success'\u001dUID="root" ID="robin"`,
      "login_success",
      { user: "robin", src_ip: "10.9.1.7", UID: "root" },
    ],
    // An account with a blank and a quotation mark, in digits.
    [
      `type=USER_LOGIN ${AT}pid=1 uid=0 msg='op=login acct=6122206164647220 exe="/usr/sbin/sshd" hostname=? addr=192.0.2.9 terminal=ssh res=failed'`,
      "login_failure",
      { user: 'a" addr', src_ip: "192.0.2.9" },
    ],
    [
      `type=EXECVE ${AT}argc=3 a0="curl" a1="-o" a2=2F746D702F6120622E7368`,
      "audit_execve",
      { type: "EXECVE", a0: "curl", a1: "-o", a2: "/tmp/a b.sh" },
    ],
    [
      `type=SYSCALL ${AT}arch=c000003e syscall=59 success=yes exit=0 a0=55d0 a1=55d1 items=2 ppid=1 pid=77 auid=1000 uid=0 tty=pts0 comm="curl" exe="/usr/bin/curl" key="download"\u001dARCH=x86_64 SYSCALL=execve AUID="robin" UID="root"`,
      "audit_syscall",
      {
        a0: "55d0",
        comm: "curl",
        exe: "/usr/bin/curl",
        key: "download",
        SYSCALL: "execve",
        user: "robin",
        process_id: 77,
      },
    ],
    [
      `type=PATH ${AT}item=0 name="/etc/shadow" inode=12 dev=fd:00 mode=0100000 ouid=0 ogid=0 nametype=NORMAL`,
      "audit_path",
      { name: "/etc/shadow", nametype: "NORMAL" },
    ],
    [`type=PROCTITLE ${AT}proctitle=6375726C002D6F002F746D702F61`, "audit_proctitle", { proctitle: "curl -o /tmp/a" }],
    [
      `type=ADD_USER ${AT}pid=1 uid=0 msg='op=add-user acct="mallory" exe="/usr/sbin/useradd" hostname=? addr=? terminal=pts/0 res=success'`,
      "user_created",
      { user: "mallory" },
    ],
    [
      `type=CONFIG_CHANGE ${AT}auid=0 ses=1 op=remove_rule key="shadow" list=4 res=1`,
      "audit_config_changed",
      { op: "remove_rule" },
    ],
    [`type=DAEMON_END ${AT}op=terminate auid=0 pid=1 res=success`, "audit_stopped", {}],
    [
      `type=AVC ${AT}avc:  denied  { read } for  pid=77 comm="httpd" name="shadow" dev="sda1" scontext=a tcontext=b tclass=file permissive=0`,
      "avc_denied",
      { comm: "httpd", tclass: "file" },
    ],
    [`type=ANOM_PROMISCUOUS ${AT}dev=eth0 prom=256 old_prom=0 auid=0`, "audit_anom_promiscuous", { dev: "eth0" }],
    [`node=web-1 type=CWD ${AT}cwd="/root"`, "audit_cwd", { device: "web-1", cwd: "/root" }],
    [
      `<13>Nov 15 10:00:00 web-1 audisp-syslog[9]: type=CWD ${AT}cwd="/root"`,
      "audit_cwd",
      { program: "audisp-syslog" },
    ],
    [
      `<5>Nov 15 10:00:00 web-1 kernel: [ 12.345678] audit: type=1400 audit(1794736800.250:9): apparmor="DENIED" operation="open" profile="cupsd" name="/etc/x" pid=7 comm="cupsd"`,
      "avc_denied",
      { apparmor: "DENIED", name: "/etc/x" },
    ],
    [`<13>Nov 15 10:00:00 web-1 audit[77]: EXECVE argc=1 a0="id"`, "audit_execve", { a0: "id" }],
  ])("%s", (line, type, expected) => {
    expect(read(line)).toMatchObject({ type, raw: { ...expected, line } });
  });

  test.each([
    ["type=USER_LOGIN msg=audit(now:1): pid=1", "log_line"],
    ["type= msg=audit(1794736800.250:812): pid=1", "log_line"],
    [`<13>Nov 15 10:00:00 web-1 shop: type=USER_LOGIN ${AT}acct="root" res=failed`, "log_line"],
    ["<13>Nov 15 10:00:00 web-1 audit[77]: backlog limit exceeded", "unparsed"],
  ])("is not %s", (line, type) => {
    expect(read(line).type).toBe(type);
  });

  test("reads anything behind the header", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (text) => {
        expect(read(`type=USER_LOGIN ${AT}${text}`).raw["type"]).toBe("USER_LOGIN");
      }),
    );
  });
});
