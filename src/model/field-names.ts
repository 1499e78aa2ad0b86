// The names in `raw` that mean the same whichever device has spoken: what rules, filters and reports may rely on. A
// reader that has something to say under one of them says it under this name and in this type, or not at all.

export type FieldType = "text" | "number" | "yes or no" | "list" | "object";

export interface FieldName {
  readonly type: FieldType;
  readonly about: string;
}

const text = (about: string): FieldName => ({ type: "text", about });
const number = (about: string): FieldName => ({ type: "number", about });

export const FIELD_NAMES = {
  src_ip: text("address that it came from, in its one spelling; for a client of the network, the client's"),
  src_port: number("port that it came from"),
  src_mac: text("hardware address that it came from, as `02:00:00:aa:bb:cc`"),
  src_host: text("name of where it came from, where the device gives a name in place of an address"),
  dst_ip: text("address that it went to"),
  dst_port: number("port that it went to"),
  dst_mac: text("hardware address that it went to"),
  dst_host: text("name of where it went to"),
  protocol: text("`tcp`, `udp`, `icmp`... in lower case"),
  app_protocol: text("what was spoken over it: `http`, `tls`..."),
  direction: text("`incoming` or `outgoing`, as the device sees it; of a call `in` or `out`"),
  in_interface: text("interface that it came in by"),
  out_interface: text("interface that it went out by"),
  bytes: number("how much it was"),
  packets: number("how many packets it was"),
  action: text("what was done about it: `allow`, `block` or `reject`"),
  rule: text("rule or policy of the device that decided"),
  signature_id: number("number of an intrusion signature"),
  signature: text("its name"),
  category: text(
    "of an intrusion, its class in short: `trojan-activity`, `attempted-recon`...; else what the device says",
  ),
  reputation_list: text(
    "list of addresses that a signature stands for, where it tells of no attack: `ET CINS`, `ET DROP`",
  ),
  local_ip: text("of an intrusion, the site's own end, where one of the two addresses is private"),
  risk: text("how the device rates it, besides the severity"),
  host: text("name of the machine that it is about: a client, a server"),
  device: text("the device that it is about, or that tells of it: gateway, access point, sensor, hub"),
  device_ip: text("its address"),
  device_mac: text("its hardware address"),
  relay: text("syslog relay that passed the line on, where the line names the original device as well"),
  model: text("its model"),
  version: text("version of what speaks"),
  user: text("who did it, or tried to"),
  target: text("whom or what it was done to: the account that was made, the rule that was changed"),
  role: text("role that was given"),
  service: text("what was logged in to: `ssh`, `web`..."),
  method: text(
    "how: `password`, `publickey`; at a door `badge`, `phone`, `code`, `face`, `plate`, `remote`...; of a web request `GET`, `POST`...",
  ),
  setting: text("setting that was changed, in lower case with `_`"),
  automatic: { type: "yes or no", about: "true: the device did it by itself, on its schedule" },
  reason: text("why, in the device's words"),
  known: {
    type: "yes or no",
    about: "false: a client or device that was never seen before, a face or a plate that nobody has named",
  },
  network: text("name of the network or WLAN"),
  link: text("uplink, as `WAN1`"),
  site: text("site of several that one controller looks after"),
  zone: text("part of the house, or of a camera's picture"),
  lease_s: number("seconds that an address is lent for"),
  query: text("name that was asked for in DNS"),
  query_type: text("kind of record that was asked for"),
  answer: text("code that DNS answered with: `NOERROR`, `NXDOMAIN`..."),
  url: text("address of a web request"),
  user_agent: text("what the client calls itself"),
  http_status: number("status of the answer to a web request"),
  server_name: text("name that a TLS client asked for"),
  file: text("name of a file"),
  sha256: text("its checksum"),
  camera: text("camera, by name where one is known, else by its id or hardware address"),
  score: number("how sure a detection is, 0 to 100"),
  plate: text("licence plate"),
  detections: { type: "list", about: "all that one detection has seen: `person`, `vehicle`..." },
  door: text("door"),
  badge: text("card, tag or other credential that was shown"),
  visitor: text("visitor"),
  duration_s: number("seconds that it lasted"),
  from: text("number or extension that called"),
  to: text("number or extension that was called"),
  call: text("the call's id: the same for its start and its end"),
  country: text("country that the device names"),
  event_id: text("the device's own id of it"),
  event_name: text("the device's own name for it"),
  event_code: text("the device's own number for it; it may mean something else after an update"),
  message: text("what the device says to people"),
  program: text("program that wrote the line"),
  process_id: number("number of its process"),
  facility: number("facility of syslog"),
  structured_data: { type: "object", about: "structured data of RFC 5424, by its ids" },
  repeated: number("how often the sender says that it happened, where it says it once for several"),
  line: text("the line as it came; not for EVE and webhooks, whose own fields are all there"),
  fields_left_out: number("fields of a line beyond those that are taken; the line has them"),
  replaced_bytes: { type: "yes or no", about: "bytes of the line were no UTF-8 and have been replaced" },
  reported_at: text("time that the device gave, where it cannot be right"),
} as const satisfies Record<string, FieldName>;

export type FieldNameKey = keyof typeof FIELD_NAMES;
