import { describe, expect, test } from "vitest";
import type { ParsedEvent } from "./reading.ts";
import { clock, eve, fired, found, line, times } from "./rules-fire.fixture.ts";

// Lines of telephone exchanges, hosts, servers and sensors that built-in rules match.

describe("built-in rules match lines of hosts", () => {
  test.each<[string, () => readonly ParsedEvent[]]>([
    [
      "talk.registration_failures",
      () =>
        times(20, (i) =>
          line(
            `<133>${clock(i)} pbx asterisk[8]: NOTICE[9]: chan_sip.c:28468 in handle_request_register: Registration from '"1${i}" <sip:1${i}@192.0.2.10>' failed for '203.0.113.9:5071' - Wrong password`,
          ),
        ).flat(),
    ],
    [
      "talk.registration_failures",
      () =>
        times(20, (i) =>
          line(
            `<132>${clock(i)} pbx freeswitch[8]: 2026-11-15 19:10:${10 + i}.000000 98.00% [WARNING] sofia_reg.c:1842 SIP auth failure (REGISTER) on sofia profile 'internal' for [${i}@192.0.2.10] from ip 203.0.113.9`,
          ),
        ).flat(),
    ],
    [
      "talk.premium_number_called",
      () =>
        line(
          "<133>Nov 15 19:10:00 sip kamailio[8]: NOTICE: acc [acc.c:287]: acc_log_request(): ACC: transaction answered: timestamp=1794769800;method=INVITE;from_tag=1;to_tag=2;call_id=c;code=200;reason=OK;src_user=101;src_domain=d;src_ip=10.9.5.44;dst_ouser=00449005550100;dst_user=00449005550100;dst_domain=d",
        ),
    ],
    [
      "talk.toll_fraud",
      () =>
        times(5, (i) =>
          line(
            `Call ${i},id${i},00:00:31,2026/11/15 01:0${i}:00,2026/11/15 01:0${i}:04,2026/11/15 01:0${i}:35,TerminatedBySrc,Ext.101,+99955501${i},101,10000,0099955501${i},`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(`<38>${clock(i)} bsd sshd[9]: error: PAM: authentication error for root from 203.0.113.9`),
        ).flat(),
    ],
    [
      "network.password_spraying",
      () =>
        times(5, (i) =>
          line(`<38>${clock(i)} web sshd[9]: User u${i} from 203.0.113.9 not allowed because not listed in AllowUsers`),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `<86>${clock(i)} web xrdp-sesman[9]: pam_unix(xrdp-sesman:auth): authentication failure; logname= uid=0 euid=0 tty=xrdp-sesman ruser= rhost=203.0.113.9  user=root`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `type=USER_LOGIN msg=audit(17947698${10 + i}.000:${i}): pid=9 uid=0 msg='op=login acct="root" exe="/usr/sbin/sshd" hostname=? addr=203.0.113.9 terminal=sshd res=failed'`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `{"EventTime":"2026-11-15 19:10:${10 + i}","EventID":4625,"SourceName":"Microsoft-Windows-Security-Auditing","Channel":"Security","TargetUserName":"u${i}","LogonType":"3","IpAddress":"203.0.113.9"}`,
          ),
        ).flat(),
    ],
    [
      "network.new_admin",
      () =>
        line(
          "<Event><System><EventID>4732</EventID><Channel>Security</Channel></System><EventData><Data Name='MemberSid'>S-1-5-21-1-2-3-1104</Data><Data Name='TargetSid'>S-1-5-32-544</Data><Data Name='SubjectUserName'>robin</Data></EventData></Event>",
        ),
    ],
    [
      "network.dns_many_failures",
      () =>
        times(55, (i) =>
          line(
            `{"ts":${1_794_769_800 + i},"uid":"CAbc1d2EfGhIjKlMn3","id.orig_h":"10.9.3.20","id.orig_p":51522,"id.resp_h":"10.9.0.1","id.resp_p":53,"proto":"udp","trans_id":7,"query":"x${i}.example","qtype_name":"A","rcode_name":"NXDOMAIN"}`,
          ),
        ).flat(),
    ],
    [
      "network.ids_repeated",
      () =>
        times(10, (i) =>
          line(
            `{"ts":${1_794_769_800 + i},"note":"Scan::Port_Scan","msg":"scan","src":"203.0.113.9","dst":"10.9.3.${i}"}`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          eve({
            timestamp: `2026-11-15T19:10:${10 + i}.000000+0000`,
            event_type: "ftp",
            src_ip: "203.0.113.9",
            dest_ip: "10.9.3.20",
            dest_port: 21,
            proto: "TCP",
            ftp: { command: "PASS", completion_code: ["530"] },
          }),
        ).flat(),
    ],
    [
      "network.password_spraying",
      () =>
        times(5, (i) =>
          line(
            `<190>${clock(i)} web nginx: 203.0.113.9 - u${i} [15/Nov/2026:19:10:0${i} +0000] "GET /admin HTTP/1.1" 401 5 "-" "curl"`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `<187>${clock(i)} web apache2: [auth_basic:error] [pid 9] [client 203.0.113.9:5000] AH01617: user robin: authentication failure for "/": Password Mismatch`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `<29>${clock(i)} vpn openvpn[9]: 203.0.113.9:${5000 + i} TLS Auth Error: Auth Username/Password verification failed for peer`,
          ),
        ).flat(),
    ],
    [
      "network.brute_force_then_success",
      () =>
        times(6, (i) =>
          line(
            i < 5
              ? `<29>${clock(i)} vpn openvpn[9]: 203.0.113.9:5000 TLS Auth Error: Auth Username/Password verification failed for peer`
              : `<29>${clock(i)} vpn openvpn[9]: 203.0.113.9:5000 TLS: Username/Password authentication succeeded for username 'robin'`,
          ),
        ).flat(),
    ],
    ...[
      (i: number) => `postfix/smtpd[9]: warning: unknown[203.0.113.9]: SASL LOGIN authentication failed: ${i}`,
      (i: number) =>
        `dovecot: imap-login: Disconnected (auth failed, 1 attempts in 2 secs): user=<u${i}>, method=PLAIN, rip=203.0.113.9, lip=198.51.100.4`,
      (i: number) =>
        `smbd[9]: Auth: [SMB2,(null)] user [CORP]\\[u${i}] at [a] with [NTLMv2] status [NT_STATUS_WRONG_PASSWORD] workstation [L] remote host [ipv4:203.0.113.9:5000]`,
      (i: number) => `vsftpd[9]: [u${i}] FAIL LOGIN: Client "203.0.113.9"`,
      (i: number) =>
        `Connection: User [u${i}] from [203.0.113.9] failed to sign in to [DSM] via [password] due to authorization failure.`,
      (i: number) =>
        `qulogd[9]: conn log: Users: u${i}, Source IP: 203.0.113.9, Computer name: ---, Connection type: HTTPS, Accessed resources: Administration, Action: Login Fail`,
      (i: number) =>
        `pvedaemon[9]: authentication failure; rhost=203.0.113.9 user=u${i}@pam msg=Authentication failure`,
      (i: number) =>
        `Hostd: info hostd[2100] [Originator@6876 sub=Vimsvc.ha-eventmgr] Event ${i} : Cannot login u${i}@203.0.113.9`,
    ].map((message): [string, () => readonly ParsedEvent[]] => [
      "network.brute_force",
      () => times(10, (i) => line(`<22>${clock(i)} mail ${message(i)}`)).flat(),
    ]),
    [
      "network.brute_force",
      () =>
        times(10, (i) =>
          line(
            `{"timestamp":"2026-11-15T19:10:${10 + i}.000+0000","rule":{"level":5,"description":"sshd: authentication failed.","id":"5760","groups":["authentication_failed"]},"agent":{"id":"001"},"data":{"srcip":"203.0.113.9"}}`,
          ),
        ).flat(),
    ],
    [
      "network.ids_repeated",
      () =>
        times(10, (i) =>
          line(
            `{"scenario":"crowdsecurity/http-probing","created_at":"2026-11-15T19:10:${10 + i}Z","source":{"scope":"Ip","value":"203.0.113.9"}}`,
          ),
        ).flat(),
    ],
    [
      "network.remote_access_opened",
      () =>
        line(
          "<14>Nov 15 19:10:00 esx1 vobd: [GenericCorrelator] 7us: [esx.audit.ssh.enabled] SSH access has been enabled.",
        ),
    ],
    ["network.new_admin", () => line("<86>Nov 15 19:10:00 web usermod[9]: add 'robin' to group 'sudo'")],
    [
      "talk.account_taken_over",
      () =>
        times(6, (i) =>
          line(
            `<133>${clock(i)} pbx asterisk[8]: SECURITY[9]: res_security_log.c:114 in security_event_stasis_cb: SecurityEvent="${i < 5 ? "InvalidPassword" : "SuccessfulAuth"}",EventTV="2026-11-15T19:10:0${i}.000+0000",Severity="Error",Service="PJSIP",EventVersion="2",AccountID="101",SessionID="a",LocalAddress="IPV4/UDP/192.0.2.10/5060",RemoteAddress="IPV4/UDP/203.0.113.9/5071"`,
          ),
        ).flat(),
    ],
  ])("%s", (name, events) => {
    expect(fired(events())).toContain(name);
    expect(found(events()).filter(({ title }) => title.includes("(none)"))).toEqual([]);
  });
});
