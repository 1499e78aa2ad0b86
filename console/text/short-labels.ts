import type { Event } from "../data/client.ts";

// An event in a word or two, for a place where its lane already says where it happened.

type Raw = Readonly<Record<string, unknown>>;

const CHARACTERS_MAX = 48;

function text(raw: Raw, ...names: readonly string[]): string {
  for (const name of names) {
    const value = raw[name];
    if ((typeof value === "string" && value !== "") || typeof value === "number") return String(value);
  }
  return "";
}

const LABELS: Readonly<Record<string, (raw: Raw) => string>> = {
  access_granted: (raw) => text(raw, "user", "visitor", "badge", "plate"),
  access_denied: (raw) => `${text(raw, "user", "visitor", "badge", "plate")} refused`,
  door_held: (raw) => (text(raw, "duration_s") === "" ? "held open" : `held open ${text(raw, "duration_s")} s`),
  door_forced: () => "forced",
  unknown_badge: () => "unknown badge",
  visitor_checked_in: (raw) => text(raw, "visitor"),
  person: ({ count }) => (typeof count === "number" && count > 1 ? `${count} people` : "person"),
  tamper: (raw) => text(raw, "reason") || "tampered with",
  camera_offline: () => "dark",
  device_offline: (raw) => `${text(raw, "device", "host")} offline`,
  wan_link_down: (raw) => `${text(raw, "link", "device")} down`,
  call_started: (raw) => `${text(raw, "from")} → ${text(raw, "to")}`,
  call_missed: (raw) => `${text(raw, "from")} → ${text(raw, "to")} missed`,
  client_connected: (raw) =>
    raw["known"] === false
      ? `${text(raw, "src_mac", "src_ip")} on ${text(raw, "device", "network")}${text(raw, "port") === "" ? "" : ` port ${text(raw, "port")}`}`
      : text(raw, "host", "src_mac", "src_ip"),
  dhcp_lease: (raw) => text(raw, "src_ip"),
  ids_alert: (raw) => text(raw, "signature", "message"),
  dns_query: (raw) => text(raw, "query"),
  firewall_blocked: (raw) => `${text(raw, "src_ip")} blocked`,
  login_failure: (raw) => `${text(raw, "user")} failed`,
  app_login_failure: (raw) => `${text(raw, "user")} failed`,
  admin_login: (raw) => `${text(raw, "user")} in`,
  vpn_connected: (raw) => `${text(raw, "user")} VPN`,
  config_changed: (raw) => text(raw, "setting", "target"),
  backup_failed: (raw) => `backup of ${text(raw, "job", "host")} failed`,
  temperature_high: (raw) => `${text(raw, "celsius")} °C`,
};

export function shortLabel({ type, raw }: Pick<Event, "type" | "raw">): string {
  // A sender chooses the type: `constructor` is no label.
  const label = Object.hasOwn(LABELS, type) ? LABELS[type]!(raw).trim() : "";
  const words = label === "" ? type.replaceAll(/[_.-]+/g, " ") : label;
  return words.length > CHARACTERS_MAX ? `${words.slice(0, CHARACTERS_MAX - 1).trimEnd()}…` : words;
}
