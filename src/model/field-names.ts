// Field names in `raw` that mean the same for every device, so that rules, filters and reports can rely on them. A parser
// stores such a value under this name and with this type, or not at all.

export type FieldType = "text" | "number" | "yes or no" | "list" | "object";

export interface FieldName {
  readonly type: FieldType;
  readonly about: string;
}

const text = (about: string): FieldName => ({ type: "text", about });
const number = (about: string): FieldName => ({ type: "number", about });

export const FIELD_NAMES = {
  src_ip: text("source IP address in canonical form; for a network client, the client's address"),
  src_port: number("source port"),
  src_mac: text("source MAC address: `02:00:00:aa:bb:cc`"),
  src_host: text("source host name, where the device reports a name instead of an address"),
  dst_ip: text("destination IP address"),
  dst_port: number("destination port"),
  dst_mac: text("destination MAC address"),
  dst_host: text("destination host name"),
  protocol: text("`tcp`, `udp`, `icmp`... in lower case"),
  app_protocol: text("application protocol: `http`, `tls`..."),
  direction: text("`incoming` or `outgoing`, as the device sees it; for a call `in` or `out`"),
  in_interface: text("ingress interface"),
  out_interface: text("egress interface"),
  bytes: number("bytes transferred"),
  packets: number("packets transferred"),
  action: text("action taken: `allow`, `block` or `reject`"),
  rule: text("firewall rule or policy on the device that made the decision"),
  signature_id: number("id of the IDS signature"),
  signature: text("name of the IDS signature"),
  category: text(
    "for an IDS alert, its short class name: `trojan-activity`, `attempted-recon`...; otherwise the device's own category",
  ),
  reputation_list: text(
    "address list behind a signature that reports a listed address rather than an attack: `ET CINS`, `ET DROP`",
  ),
  local_ip: text("for an IDS alert, the site's own address, if exactly one of the two addresses is private"),
  risk: text("the device's own risk rating, in addition to the severity"),
  host: text("host name of the machine concerned: a client or a server"),
  device: text("device that the event concerns or that reported it: gateway, access point, sensor, hub"),
  device_ip: text("IP address of the device"),
  device_mac: text("MAC address of the device"),
  relay: text("syslog relay that forwarded the line, if the line also names the original device"),
  model: text("model of the device"),
  version: text("version of the software or firmware"),
  user: text("user who performed or attempted the action"),
  target: text("object of the action: the account created, the rule changed"),
  role: text("role that was granted"),
  service: text("service logged in to: `ssh`, `web`..."),
  method: text(
    "authentication method: `password`, `publickey`; at a door `badge`, `phone`, `code`, `face`, `plate`, `remote`...; for a web request `GET`, `POST`...",
  ),
  setting: text("changed setting, in lower case with `_`"),
  automatic: { type: "yes or no", about: "true: the device acted automatically, on a schedule" },
  reason: text("reason in the device's words"),
  known: {
    type: "yes or no",
    about: "false: a client or device not seen before, or an unnamed face or plate",
  },
  network: text("name of the network or WLAN"),
  link: text("uplink: `WAN1`"),
  site: text("site, where one controller manages several"),
  zone: text("zone of the building or of a camera's picture"),
  lease_s: number("duration of a DHCP lease in seconds"),
  query: text("name queried in DNS"),
  query_type: text("DNS record type queried"),
  answer: text("DNS response code: `NOERROR`, `NXDOMAIN`..."),
  url: text("URL of a web request"),
  user_agent: text("user agent of the client"),
  http_status: number("HTTP response status"),
  server_name: text("server name (SNI) requested by a TLS client"),
  file: text("file name"),
  sha256: text("SHA-256 checksum of the file"),
  camera: text("camera: its name if known, otherwise its id or MAC address"),
  score: number("confidence of a detection, 0 to 100"),
  plate: text("licence plate"),
  detections: { type: "list", about: "all objects of one detection: `person`, `vehicle`..." },
  door: text("door"),
  badge: text("card, tag or other credential presented"),
  visitor: text("visitor"),
  duration_s: number("duration in seconds"),
  from: text("calling number or extension"),
  to: text("called number or extension"),
  call: text("call id, the same at the start and the end of a call"),
  country: text("country reported by the device"),
  event_id: text("the device's own id of the event"),
  event_name: text("the device's own name of the event"),
  event_code: text("the device's own event number; an update may change its meaning"),
  message: text("message text for people"),
  program: text("program that wrote the line"),
  process_id: number("process id"),
  facility: number("syslog facility"),
  structured_data: { type: "object", about: "structured data of RFC 5424, by id" },
  repeated: number("number of occurrences, where the sender reports several in one line"),
  line: text("the original line; absent for EVE and webhooks, which keep all their own fields"),
  fields_left_out: number("number of fields left out because the line has too many; `line` contains them"),
  replaced_bytes: { type: "yes or no", about: "true: invalid UTF-8 in the line was replaced" },
  reported_at: text("time reported by the device, if it is implausible"),
} as const satisfies Record<string, FieldName>;

export type FieldNameKey = keyof typeof FIELD_NAMES;
