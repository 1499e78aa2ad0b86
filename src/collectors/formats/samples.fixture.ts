// Made-up lines in the form that devices send, for tests and benchmarks.

/** A threat with every field that a console reports. */
export const CEF_THREAT =
  "<134>Nov 15 19:58:12 North-Gateway CEF:0|Ubiquiti|UniFi Network|10.6.101|201|Threat Detected and Blocked|7|" +
  "UNIFIcategory=Security UNIFIsubCategory=Intrusion Prevention UNIFIhost=North Gateway proto=TCP spt=51200 dpt=8443 act=blocked " +
  "app=Other UNIFIrisk=medium UNIFIpolicyName=Known Scanners UNIFIpolicyType=IDS/IPS UNIFIdirection=incoming " +
  "deviceInboundInterface=Internet 1 UNIFIdeviceMac=02:00:00:11:22:33 UNIFIdeviceName=North Gateway UNIFIdeviceModel=UDM-Pro " +
  "UNIFIdeviceIp=10.9.0.1 UNIFIdeviceVersion=5.1.31 src=192.0.2.44 dst=10.9.3.20 UNIFIsrcRegion=NL UNIFIdstZone=Internal " +
  "UNIFIdstClientAlias=Build server UNIFIdstClientMac=02:00:00:44:55:66 UNIFItotalBytes=1,460 UNIFItotalPackets=3 " +
  "UNIFIpacketsReceived=0 UNIFIpacketsSent=3 UNIFIbytesReceived=0 UNIFIbytesSent=1460 UNIFIflowCount=1 UNIFIflowId=null " +
  "UNIFIflowStartTime=Nov 15, 2026 at 8:58:11.120 PM UNIFIipsSessionId=7100220033 UNIFIipsSignature=ET SCAN Made-up Scanner " +
  "UNIFIipsSignatureId=2900001 UNIFIutcTime=2026-11-15T19:58:12.250Z msg=An attempt from 192.0.2.44 to Build server was blocked.";

export const CEF_CONFIG =
  "CEF:0|Ubiquiti|UniFi OS|5.1.31|1005|Admin Made Config Changes|2|UNIFIhost=Host UNIFIdeviceName=North Gateway " +
  'UNIFIdeviceIp=10.9.0.1 UNIFIdeviceMac=02:00:00:11:22:33 msg=Robin K. changed Remote Access setting from "off" to "on". Source IP: 10.9.1.7';

export const CEF_CLIENT =
  "Nov 15 19:58:12 North-Gateway CEF:0|Ubiquiti|UniFi Network|10.6.101|400|WiFi Client Connected|1|UNIFIcategory=Client Devices " +
  "UNIFIhost=North Gateway UNIFIconnectedToDeviceName=AP Stairs UNIFIclientAlias=Tablet 4 UNIFIclientHostname=tablet-4 " +
  "UNIFIclientIp=10.9.5.44 UNIFIclientMac=02:00:00:77:88:99 UNIFIwifiName=House Staff UNIFIwifiChannel=36 UNIFIWiFiRssi=-61 " +
  "UNIFIutcTime=2026-11-15T19:58:12.301Z msg=Tablet 4 connected to House Staff on AP Stairs.";

const CEF_DEVICE =
  "Nov 15 19:58:12 North-Gateway CEF:0|Ubiquiti|UniFi Network|10.6.101|512|Device Offline|8|UNIFIcategory=UniFi Devices " +
  "UNIFIhost=North Gateway UNIFIdeviceMac=02:00:00:12:34:56 UNIFIdeviceName=AP Stairs UNIFIdeviceModel=U6-Lite UNIFIdeviceIp=10.9.0.31 " +
  "UNIFIdeviceVersion=6.7.54 UNIFIconnectedToDeviceName=Switch 2 UNIFIconnectedToDevicePort=7 UNIFIutcTime=2026-11-15T19:58:12.400Z " +
  "msg=AP Stairs went offline.";

const CEF_MOTION =
  "CEF:0|Ubiquiti|UniFi Protect|7.2.105|2159|motion|3|UNIFIcategory=detection eventId=0b5d4d5e-7a11-4a4e-9a55-2f6f1d0c9a01 eventType=motion " +
  'category=detection severity=3 timestamp=1795000000123 msg="Yard has recorded motion."';

/** Traffic of an ordinary day: few threats, many clients and cameras. */
export const CEF_LINES = [CEF_THREAT, CEF_CONFIG, CEF_CLIENT, CEF_DEVICE, CEF_MOTION];

export const FIREWALL_LINE =
  '<4>Nov 15 20:01:02 North-Gateway North-Gateway [WAN_LOCAL-D-2147483647] DESCR="[WAN_LOCAL]Drop the rest" IN=eth8 OUT= ' +
  "MAC=02:00:00:11:22:33:02:00:00:aa:bb:cc:08:00 SRC=192.0.2.80 DST=198.51.100.4 LEN=60 TOS=00 PREC=0x00 TTL=51 ID=4711 DF " +
  "PROTO=TCP SPT=40112 DPT=23 SEQ=1 ACK=0 WINDOW=64240 SYN URGP=0 LEN=40 MARK=1a0000";

const FLOW_ID = 1_201_443_870_112_233;

const common = {
  timestamp: "2026-11-15T20:01:03.482910+0000",
  flow_id: FLOW_ID,
  in_iface: "eth1",
  src_ip: "10.9.3.20",
  src_port: 51_522,
  dest_ip: "192.0.2.200",
  dest_port: 443,
  proto: "TCP",
};

const ALERT = {
  ...common,
  event_type: "alert",
  tx_id: 0,
  alert: {
    action: "allowed",
    gid: 1,
    signature_id: 2_900_002,
    rev: 3,
    signature: "ET MALWARE Made-up Beacon CnC",
    category: "Malware Command and Control Activity Detected",
    severity: 1,
    metadata: { created_at: ["2026_01_02"], deployment: ["Perimeter"], updated_at: ["2026_03_04"] },
  },
  app_proto: "tls",
  direction: "to_server",
  flow: {
    pkts_toserver: 6,
    pkts_toclient: 5,
    bytes_toserver: 1210,
    bytes_toclient: 4320,
    start: "2026-11-15T20:01:02.100001+0000",
    src_ip: "10.9.3.20",
    dest_ip: "192.0.2.200",
  },
};

/** One object of each kind of EVE. */
export const EVE_RECORDS = {
  alert: ALERT,
  dns: {
    ...common,
    event_type: "dns",
    src_ip: "10.9.0.1",
    src_port: 53,
    dest_ip: "10.9.3.20",
    dest_port: 40_001,
    proto: "UDP",
    dns: { version: 2, type: "answer", id: 77, rrname: "no-such.example", rrtype: "A", rcode: "NXDOMAIN" },
  },
  tls: { ...common, event_type: "tls", tls: { sni: "www.example.org", version: "TLS 1.3" } },
  http: {
    ...common,
    event_type: "http",
    dest_port: 80,
    http: {
      hostname: "www.example.net",
      url: "/index.html?q=1",
      http_user_agent: "curl/9.0",
      http_method: "GET",
      status: 404,
    },
  },
  anomaly: { ...common, event_type: "anomaly", anomaly: { type: "stream", event: "stream.pkt_invalid_ack" } },
  fileinfo: {
    ...common,
    event_type: "fileinfo",
    fileinfo: { filename: "/tool.exe", sha256: "0a".repeat(32), size: 4096, state: "CLOSED" },
  },
  ssh: { ...common, event_type: "ssh", dest_port: 22, ssh: { client: { software_version: "OpenSSH_9.9" } } },
  flow: {
    ...common,
    event_type: "flow",
    flow: {
      pkts_toserver: 10,
      pkts_toclient: 8,
      bytes_toserver: 1800,
      bytes_toclient: 92_000,
      start: "2026-11-15T20:00:00.000000+0000",
      end: "2026-11-15T20:00:42.500000+0000",
      state: "closed",
    },
    tcp: { tcp_flags: "1b", tcp_flags_ts: "1b", tcp_flags_tc: "13" },
  },
  stats: { timestamp: common.timestamp, event_type: "stats", stats: { uptime: 12 } },
};

export const EVE_LINES = ["alert", "dns", "tls", "http", "fileinfo"].map((kind) =>
  JSON.stringify(EVE_RECORDS[kind as keyof typeof EVE_RECORDS]),
);
