import type { EventClass, JsonObject, JsonValue, Severity } from "../../../model/event.ts";
import { addressOf, integerOf, listOf, macOf, objectOf, put, textOf } from "../device-values.ts";

// Records of Suricata about application protocols other than DNS, HTTP and TLS. Each keeps its own part; the well-known fields are
// added to it.

export interface EveMeaning {
  readonly type: string;
  readonly severity: Severity;
  readonly class?: EventClass;
}

/** Adds well-known fields to the record, and returns its meaning. */
export type ReadKind = (raw: JsonObject, part: JsonObject, kind: string) => EveMeaning;

const network = (type: string, severity: Severity = "info"): EveMeaning => ({ type, severity, class: "network" });

const LEASES: Readonly<Record<string, readonly [type: string, severity: Severity]>> = {
  ack: ["dhcp_lease", "info"],
  offer: ["dhcp_offer", "info"],
  discover: ["dhcp_discover", "info"],
  request: ["dhcp_request", "info"],
  inform: ["dhcp_inform", "info"],
  release: ["dhcp_release", "info"],
  decline: ["dhcp_declined", "low"],
  nak: ["dhcp_refused", "low"],
};

export const PROTOCOL_KINDS: Readonly<Record<string, ReadKind>> = {
  dhcp: (raw, dhcp) => {
    const address = [dhcp["assigned_ip"], dhcp["client_ip"], dhcp["requested_ip"]].find(isAssigned);
    // The event is about the client, whichever side sent the packet.
    const server = dhcp["type"] === "reply" ? raw["src_ip"] : raw["dst_ip"];
    for (const name of ["src_ip", "src_port", "dst_ip", "dst_port"]) delete raw[name];
    put(raw, "src_ip", addressOf(address));
    put(raw, "dst_ip", addressOf(server));
    put(raw, "src_mac", macOf(dhcp["client_mac"]));
    put(raw, "host", textOf(dhcp["hostname"]));
    put(raw, "lease_s", integerOf(dhcp["lease_time"]));
    const kind = String(dhcp["dhcp_type"]);
    const [type, severity] = Object.hasOwn(LEASES, kind) ? LEASES[kind]! : (["dhcp", "info"] as const);
    return network(type, severity);
  },
  ssh: (raw, ssh) => {
    put(raw, "service", "ssh");
    put(raw, "version", textOf(objectOf(ssh["client"])?.["software_version"]));
    return network("ssh");
  },
  smtp: (raw, smtp) => {
    put(raw, "service", "smtp");
    put(raw, "src_host", hostOf(smtp["helo"]));
    return network("smtp");
  },
  ftp: (raw, ftp) => {
    put(raw, "service", "ftp");
    const codes = new Set(listOf(ftp["completion_code"]).map(String));
    if (ftp["command"] === "USER") put(raw, "user", textOf(ftp["command_data"]));
    if (ftp["command"] !== "PASS") return network("ftp");
    if (codes.has("530")) return { type: "login_failure", severity: "medium" };
    return codes.has("230") ? { type: "login_success", severity: "info" } : network("ftp");
  },
  ftp_data: (raw, data) => {
    put(raw, "file", textOf(data["filename"]));
    return network("ftp_data");
  },
  tftp: (raw, tftp) => {
    put(raw, "file", textOf(tftp["file"]));
    return network("tftp");
  },
  nfs: (raw, nfs) => {
    put(raw, "file", textOf(nfs["filename"]));
    return network("nfs");
  },
  smb: (raw, smb) => {
    const login = objectOf(smb["ntlmssp"]);
    put(raw, "user", textOf(login?.["user"]));
    put(raw, "file", textOf(smb["filename"]));
    put(raw, "service", "smb");
    if (
      smb["command"] === "SMB2_COMMAND_SESSION_SETUP" &&
      login !== undefined &&
      smb["status"] === "STATUS_LOGON_FAILURE"
    ) {
      return { type: "login_failure", severity: "medium" };
    }
    return network("smb");
  },
  krb5: (raw, kerberos) => {
    put(raw, "user", plain(kerberos["cname"]));
    put(raw, "service", "kerberos");
    const isRefused = kerberos["msg_type"] === "KRB_ERROR";
    if (isRefused) put(raw, "reason", textOf(kerberos["error_code"]));
    return network("krb5", isRefused ? "low" : "info");
  },
  rdp: (raw, rdp) => {
    // `mstshash=robin`
    put(raw, "user", textOf(rdp["cookie"])?.replace(/^mstshash=/, ""));
    put(raw, "service", "rdp");
    return network("rdp");
  },
  rfb: (raw, rfb) => {
    put(raw, "service", "vnc");
    const result = textOf(objectOf(rfb["authentication"])?.["security_result"]);
    if (result === "FAIL" || result === "TOOMANY") return { type: "login_failure", severity: "medium" };
    return result === "OK" ? { type: "login_success", severity: "info" } : network("rfb");
  },
  ldap: (raw, ldap) => {
    const request = objectOf(ldap["request"]);
    put(raw, "user", textOf(objectOf(request?.["bind_request"])?.["name"]));
    put(raw, "service", "ldap");
    return network("ldap");
  },
  pgsql: (raw, pgsql) => {
    const request = objectOf(pgsql["request"]);
    put(raw, "user", textOf(objectOf(request?.["startup_parameters"])?.["user"]));
    put(raw, "service", "postgresql");
    return network("pgsql");
  },
  mqtt: (raw, mqtt) => {
    put(raw, "user", textOf(objectOf(mqtt["connect"])?.["username"]));
    return network("mqtt");
  },
  sip: (raw, sip) => {
    put(raw, "method", textOf(sip["method"]));
    put(raw, "url", textOf(sip["uri"]));
    return network("sip");
  },
  snmp: (raw, snmp) => {
    put(raw, "user", textOf(snmp["usm"]));
    return network("snmp");
  },
  arp: (raw, arp) => {
    put(raw, "src_ip", addressOf(arp["src_ip"]));
    put(raw, "dst_ip", addressOf(arp["dest_ip"]));
    put(raw, "src_mac", macOf(arp["src_mac"]));
    put(raw, "dst_mac", macOf(arp["dest_mac"]));
    return network("arp");
  },
  // Suricata's own messages.
  engine: (raw, engine) => {
    put(raw, "message", textOf(engine["message"]));
    return network("engine");
  },
};

function isAssigned(value: JsonValue | undefined): boolean {
  return addressOf(value) !== undefined && value !== "0.0.0.0";
}

const HOST = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}$/;

function hostOf(value: JsonValue | undefined): string | undefined {
  const text = textOf(value);
  return text !== undefined && HOST.test(text) ? text : undefined;
}

/** Suricata writes `<empty>` for a missing name. */
function plain(value: JsonValue | undefined): string | undefined {
  const text = textOf(value);
  return text === "<empty>" ? undefined : text;
}
