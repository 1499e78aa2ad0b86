import type { Severity } from "../model/event.ts";
import { eventKind, type EventKind } from "./event-kind.ts";
import { administrators, GATEWAY, randomOutsider } from "./site.ts";

const DOMAINS = [
  "www.example.com",
  "mail.example.com",
  "cdn.example.net",
  "updates.example.org",
  "time.example.net",
  "docs.example.com",
  "api.example.org",
  "video.example.net",
  "telemetry.example.com",
];

const SIGNATURES: readonly (readonly [id: number, signature: string, category: string, severity: Severity])[] = [
  [2001219, "Possible SSH scan", "attempted-recon", "medium"],
  [2010935, "Suspicious inbound to MSSQL port 1433", "bad-unknown", "medium"],
  [2024364, "Possible Nmap user agent observed", "web-application-attack", "medium"],
  [2034647, "Apache log4j remote code execution attempt", "attempted-admin", "high"],
  [2027865, "Query for a suspicious top-level domain", "bad-unknown", "low"],
  [2013028, "Policy: curl user agent outbound", "policy-violation", "low"],
  [2025275, "Observed malicious certificate", "trojan-activity", "high"],
  [2016141, "Executable download from dotted-quad host", "trojan-activity", "high"],
];

const BLOCKED_PORTS = [22, 23, 80, 443, 445, 1433, 2323, 3389, 5060, 5900, 8080, 8443];
const MINUTE_MS = 60_000;

/** Everyday events of the network. A new entry is a new kind of demo event. */
export const NETWORK_KINDS: readonly EventKind[] = [
  eventKind("network", "dns_query", "info", [240, 120], (site, random) => {
    const device = random.pick(site.devices);
    return {
      raw: {
        src_ip: device.ip,
        src_mac: device.mac,
        host: device.host,
        dst_ip: GATEWAY.ip,
        dst_port: 53,
        protocol: "udp",
        query: random.pick(DOMAINS),
        answer: random.onceIn(20) ? "NXDOMAIN" : "NOERROR",
      },
    };
  }),
  eventKind("network", "client_connected", "info", [70, 8], (site, random) => {
    const device = random.pick(site.devices);
    return {
      raw: {
        src_mac: device.mac,
        src_ip: device.ip,
        host: device.host,
        user: device.user!,
        device: device.uplink,
        network: "staff",
        signal_dbm: -random.between(38, 82),
      },
    };
  }),
  eventKind("network", "dhcp_lease", "info", [45, 25], (site, random) => {
    const device = random.pick(site.devices);
    return {
      raw: { src_ip: device.ip, src_mac: device.mac, host: device.host, device: GATEWAY.device, lease_s: 43_200 },
    };
  }),
  eventKind("network", "firewall_blocked", "low", [110, 130], (site, random) => {
    const from = randomOutsider(site, random);
    return {
      raw: {
        src_ip: from.ip,
        src_port: random.between(1024, 65_535),
        dst_ip: GATEWAY.wan,
        dst_port: random.pick(BLOCKED_PORTS),
        protocol: random.onceIn(5) ? "udp" : "tcp",
        action: "block",
        rule: "wan-in default",
        device: GATEWAY.device,
      },
      enrichment: from.enrichment,
    };
  }),
  eventKind("network", "ids_alert", "medium", [26, 30], (site, random) => {
    const from = randomOutsider(site, random);
    const [id, signature, category, severity] = random.pick(SIGNATURES);
    return {
      severity,
      raw: {
        signature_id: id,
        signature,
        category,
        src_ip: from.ip,
        src_port: random.between(1024, 65_535),
        dst_ip: random.pick(site.devices).ip,
        dst_port: random.pick(BLOCKED_PORTS),
        protocol: "tcp",
        action: random.onceIn(4) ? "allow" : "block",
        device: GATEWAY.device,
      },
      enrichment: from.enrichment,
    };
  }),
  eventKind("network", "vpn_connected", "info", [6, 2], (site, random) => {
    const { user, remote } = random.pick(site.people);
    return { raw: { user, src_ip: remote.ip, device: GATEWAY.device }, enrichment: remote.enrichment };
  }),
  eventKind("network", "login_failure", "medium", [5, 3], (site, random) => {
    const from = random.onceIn(2) ? randomOutsider(site, random) : undefined;
    const person = random.pick(site.people);
    return {
      raw: {
        user: from ? random.pick(["admin", "root", "support"]) : person.user,
        src_ip: from?.ip ?? person.laptop.ip,
        device: GATEWAY.device,
        service: random.pick(["ssh", "web"]),
      },
      ...(from && { enrichment: from.enrichment }),
    };
  }),
  eventKind("network", "admin_login", "info", [2, 0.1], (site, random) => {
    const { user, laptop } = random.pick(administrators(site));
    return { raw: { user, src_ip: laptop.ip, device: GATEWAY.device, service: "web" } };
  }),
  eventKind("network", "config_changed", "low", [1.5, 0.05], (site, random) => {
    const { user, laptop } = random.pick(administrators(site));
    return {
      raw: {
        user,
        src_ip: laptop.ip,
        device: GATEWAY.device,
        setting: random.pick(["wifi.guest.password", "firewall.rule", "dns.servers", "switch.port.profile"]),
      },
    };
  }),
  eventKind("network", "wan_link_down", "high", [0.06, 0.08], (_, random, atMs) => {
    const raw = { device: GATEWAY.device, link: random.onceIn(3) ? "wan2" : "wan1" };
    return {
      raw,
      later: {
        type: "wan_link_up",
        source: "network",
        severity: "info",
        atMs: atMs + random.between(1, 30) * MINUTE_MS,
        raw,
      },
    };
  }),
];
