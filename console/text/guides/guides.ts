import type { WholeSite } from "../../data/site.ts";

// What to do on a device so that it sends to this service. `{address}` and `{port}` are those at which the device reaches it.

export type CollectorName = "syslog" | "syslog_tls" | "netflow" | "ipfix" | "sflow" | "eve" | "webhook";

export interface Guide {
  readonly id: string;
  readonly device: string;
  /** What it sends, in a word or two. */
  readonly sends: string;
  readonly collector: CollectorName;
  /** For a webhook: the last part of its path. */
  readonly hook?: string;
  readonly steps: readonly string[];
  /** To type on the device, or to run near it. */
  readonly command?: string;
}

export const GUIDES: readonly Guide[] = [
  {
    id: "unifi",
    device: "UniFi gateway or console",
    sends: "security events of network, cameras, doors and telephones",
    collector: "syslog",
    steps: [
      "In UniFi Network, open Settings, then CyberSecure, then Traffic logging.",
      "Under Activity logging, choose SIEM server and select every category.",
      "Enter the address {address} and the port {port}, then apply.",
    ],
  },
  {
    id: "unifi-flows",
    device: "UniFi gateway",
    sends: "network flows",
    collector: "netflow",
    steps: [
      "In UniFi Network, open Settings, then CyberSecure, then Traffic logging.",
      "Turn on NetFlow, version 9 or IPFIX.",
      "Enter the server {address} and the port {port}. Choose an active timeout of 60 s and a template refresh of 60 s.",
    ],
  },
  {
    id: "rsyslog",
    device: "Linux with rsyslog",
    sends: "logins, firewall and DHCP lines",
    collector: "syslog",
    steps: ["On the machine, put this line into /etc/rsyslog.d/tocsin.conf, then restart rsyslog."],
    command: 'auth,authpriv,kern,daemon.* action(type="omfwd" target="{address}" port="{port}" protocol="tcp")',
  },
  {
    id: "syslog",
    device: "Any other device with syslog",
    sends: "its log lines",
    collector: "syslog",
    steps: [
      "Look for Remote logging, Syslog server or SIEM in its settings.",
      "Enter the address {address} and the port {port}. UDP and TCP both work; choose RFC 5424 where there is a choice.",
    ],
  },
  {
    id: "syslog-tls",
    device: "A device with syslog over TLS",
    sends: "its log lines, encrypted",
    collector: "syslog_tls",
    steps: [
      "Enter the address {address} and the port {port}, and choose TLS. Install the certificate of this service if it asks for one.",
    ],
  },
  {
    id: "softflowd",
    device: "Linux router with softflowd",
    sends: "network flows",
    collector: "netflow",
    steps: ["Install softflowd, then run this with the name of the interface."],
    command: "softflowd -i eth0 -v 9 -n {address}:{port} -t maxlife=60",
  },
  {
    id: "ipfix",
    device: "Switch or firewall with IPFIX",
    sends: "network flows",
    collector: "ipfix",
    steps: [
      "Look for IPFIX, flow export or application visibility.",
      "Enter the collector {address} and the port {port}. Send templates at least every minute.",
    ],
  },
  {
    id: "sflow",
    device: "Switch with sFlow",
    sends: "sampled network flows",
    collector: "sflow",
    steps: [
      "Enter the collector {address} and the port {port}, and a sampling rate that the switch can bear, such as 1 in 400.",
    ],
  },
  {
    id: "suricata",
    device: "Suricata",
    sends: "intrusion alerts, names asked for, and flows",
    collector: "eve",
    steps: [
      "In suricata.yaml, turn on eve-log with the types alert, dns, http, tls and flow.",
      "Let a shipper such as Vector or rsyslog send its lines over TCP to {address}, port {port}.",
    ],
  },
  {
    id: "unifi-alarms",
    device: "UniFi Protect alarm manager",
    sends: "camera alarms",
    collector: "webhook",
    hook: "protect",
    steps: [
      "Create a key with the scope collect:protect in Settings.",
      "In Protect, open Alarm Manager, add an alarm, and choose Custom webhook, POST, with this address:",
    ],
    command: "{url}/v1/collect/protect/{the key}",
  },
  {
    id: "unifi-access",
    device: "UniFi Access",
    sends: "doors and badges",
    collector: "webhook",
    hook: "access",
    steps: ["Create a key with the scope collect:access in Settings.", "In Access, add a webhook with this address:"],
    command: "{url}/v1/collect/access/{the key}",
  },
  {
    id: "unifi-talk",
    device: "UniFi Talk",
    sends: "calls",
    collector: "webhook",
    hook: "talk",
    steps: ["Create a key with the scope collect:talk in Settings.", "Post call records to this address:"],
    command: "{url}/v1/collect/talk/{the key}",
  },
];

export interface Place {
  /** Undefined: the collector is closed, or only this machine reaches it. */
  readonly address: string | undefined;
  readonly port: number | undefined;
  readonly isOpen: boolean;
}

/** Where a device sends to, as this machine is seen from outside. */
export function placeOf(collector: CollectorName, site: WholeSite): Place {
  if (collector === "webhook") {
    return { address: site.http.reachable_at[0], port: site.http.port, isOpen: true };
  }
  const open = site.collectors.find(({ name }) => name === collector);
  return {
    address: open?.reachable_at[0],
    port: open?.port ?? undefined,
    isOpen: open !== undefined,
  };
}

const bracketed = (address: string) => (address.includes(":") ? `[${address}]` : address);

export function fillGuide(text: string, place: Place, site: WholeSite): string {
  const address = place.address ?? "the address of this machine";
  const url = site.public_url ?? `http://${bracketed(address)}:${site.http.port}`;
  return text
    .replaceAll("{address}", address)
    .replaceAll("{port}", String(place.port ?? "?"))
    .replaceAll("{url}", url)
    .replaceAll("{the key}", "<the key>");
}
