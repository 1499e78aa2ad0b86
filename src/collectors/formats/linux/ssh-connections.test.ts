import { describe, expect, test } from "vitest";
import { CONTEXT, onlyEvent } from "../context.fixture.ts";
import { readLine } from "../read-line.ts";

const read = (message: string) => onlyEvent(readLine(`<38>Nov 15 20:00:00 gw sshd[99]: ${message}`, CONTEXT));

describe("sshd on Linux, FreeBSD and macOS", () => {
  test.each<[string, string, Record<string, unknown>]>([
    [
      "Unable to negotiate with 192.0.2.9 port 4711: no matching key exchange method found. Their offer: a from 198.51.100.1 port 1 [preauth]",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", src_port: 4711, reason: "no matching key exchange method found" },
    ],
    [
      "fatal: Unable to negotiate with 2001:db8::9 port 4711: no matching host key type found. Their offer: ssh-dss [preauth]",
      "ssh_connection_failed",
      { src_ip: "2001:db8::9", reason: "no matching host key type found" },
    ],
    [
      "Did not receive identification string from 192.0.2.9 port 4711",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", src_port: 4711, reason: "no identification" },
    ],
    ["Did not receive identification string from 2001:DB8::9", "ssh_connection_failed", { src_ip: "2001:db8::9" }],
    [
      "Bad protocol version identification 'GET / from 198.51.100.1 port 1' from 192.0.2.9 port 4711",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", src_port: 4711 },
    ],
    [
      "banner exchange: Connection from 192.0.2.9 port 4711: invalid format",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", reason: "invalid format" },
    ],
    [
      "error: kex_exchange_identification: Connection closed by remote host",
      "ssh_connection_failed",
      { reason: "Connection closed by remote host" },
    ],
    [
      "fatal: Timeout before authentication for 192.0.2.9 port 4711",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", src_port: 4711, reason: "timeout before authentication" },
    ],
    [
      "Timeout before authentication for connection from 2001:db8::9 to 2001:db8::1, pid = 812",
      "ssh_connection_failed",
      { src_ip: "2001:db8::9", dst_ip: "2001:db8::1" },
    ],
    [
      "drop connection #10 from [192.0.2.9]:4711 on [198.51.100.4]:22 past MaxStartups",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", src_port: 4711, dst_ip: "198.51.100.4", reason: "past MaxStartups" },
    ],
    [
      "drop connection #0 from [2001:db8::9]:4711 on [2001:db8::1]:22 penalty: failed authentication",
      "ssh_connection_failed",
      { src_ip: "2001:db8::9", reason: "penalty: failed authentication" },
    ],
    [
      "ssh_dispatch_run_fatal: Connection from 192.0.2.9 port 4711: message authentication code incorrect",
      "ssh_connection_failed",
      { src_ip: "192.0.2.9", reason: "message authentication code incorrect" },
    ],
    [
      "User robin from 192.0.2.9 not allowed because not listed in AllowUsers",
      "login_attempt",
      { user: "robin", src_ip: "192.0.2.9", reason: "not listed in AllowUsers" },
    ],
    [
      "User a from 198.51.100.1 not allowed because b from client.example not allowed because account is locked",
      "login_attempt",
      { src_host: "client.example", reason: "account is locked" },
    ],
    [
      "User robin from 192.0.2.9 not allowed because none of user's groups are listed in AllowGroups",
      "login_attempt",
      { user: "robin", reason: "none of user's groups are listed in AllowGroups" },
    ],
    ["ROOT LOGIN REFUSED FROM 192.0.2.9 port 4711 [preauth]", "login_attempt", { src_ip: "192.0.2.9" }],
    [
      "fatal: Access denied for user robin by PAM account configuration [preauth]",
      "login_failure",
      { user: "robin", reason: "denied by PAM account configuration" },
    ],
    [
      "error: PAM: User account has expired for robin from 192.0.2.9",
      "login_failure",
      { user: "robin", src_ip: "192.0.2.9", reason: "User account has expired" },
    ],
    [
      "error: PAM: authentication error for root from 192.0.2.9",
      "login_failure",
      { user: "root", src_ip: "192.0.2.9" },
    ],
    [
      "error: PAM: Authentication error for illegal user oracle from client.example",
      "login_attempt",
      { user: "oracle", src_host: "client.example", reason: "unknown user" },
    ],
    [
      "error: Received disconnect from 192.0.2.9 port 4711:3: a port 22 b [preauth]",
      "session_closed",
      { src_ip: "192.0.2.9", src_port: 4711 },
    ],
    [
      "Disconnected from invalid user 198.51.100.1 port 22 192.0.2.9 port 4711 [preauth]",
      "session_closed",
      { src_ip: "192.0.2.9", src_port: 4711 },
    ],
    ["input_userauth_request: invalid user oracle [preauth]", "login_attempt", { user: "oracle" }],
    [
      "reverse mapping checking getaddrinfo for client.example [192.0.2.9] failed - POSSIBLE BREAK-IN ATTEMPT!",
      "ssh_reverse_mapping_failed",
      { src_ip: "192.0.2.9" },
    ],
    [
      "Partial publickey for robin from 192.0.2.9 port 22 ssh2: ED25519 SHA256:abc",
      "login_attempt",
      { user: "robin", method: "publickey", src_ip: "192.0.2.9" },
    ],
    [
      "Postponed keyboard-interactive for invalid user oracle from 192.0.2.9 port 22 ssh2 [preauth]",
      "login_attempt",
      { user: "oracle", src_ip: "192.0.2.9" },
    ],
    [
      "Starting session: shell on pts/0 for robin from 192.0.2.9 port 4711 id 0",
      "session_opened",
      { user: "robin", src_ip: "192.0.2.9", src_port: 4711 },
    ],
    ["Close session: user robin from 192.0.2.9 port 4711 id 0", "session_closed", { user: "robin" }],
    [
      'Connection from 192.0.2.9 port 4711 on 198.51.100.4 port 22 rdomain ""',
      "ssh_connection",
      { src_ip: "192.0.2.9", dst_ip: "198.51.100.4" },
    ],
    ["Child connection from [2001:db8::9]:4711", "ssh_connection", { src_ip: "2001:db8::9", src_port: 4711 }],
    [
      "Exit before auth from <192.0.2.9:4711>: (user 'root', 3 fails): Max auth tries reached",
      "session_closed",
      { src_ip: "192.0.2.9", src_port: 4711, reason: "before logging in" },
    ],
  ])("%s", (message, type, expected) => {
    expect(read(message)).toMatchObject({ type, source: "network", raw: { ...expected, service: "ssh" } });
  });

  test.each([
    "Unable to negotiate with somebody: no matching key exchange method found",
    "Did not receive identification string from nowhere port 22",
    "error: kex_exchange_identification: ",
    "User robin from 192.0.2.9 not allowed",
    "drop connection #10 from [192.0.2.9",
    "Timeout before authentication for robin from 192.0.2.9 port 22",
  ])("a spoiled line is kept as it is: %s", (message) => {
    expect(read(message).type).toBe("unparsed");
  });

  test("a long name of a stranger takes linear time", () => {
    const name = " from 192.0.2.1 not allowed because ".repeat(50);
    expect(read(`User ${name}`).type).toBe("login_attempt");
    expect(read(`Starting session: ${" for a from ".repeat(150)}`).type).toBe("unparsed");
  });
});
