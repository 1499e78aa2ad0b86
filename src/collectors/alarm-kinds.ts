import type { EventClass, Severity, SourceKind } from "../model/event.ts";

// What alarms mean, by the words of their names and categories. Numbers are not looked at: they changed between releases.

export interface AlarmKind {
  readonly source: SourceKind;
  /** Undefined: the device's own name for it is the type. */
  readonly type?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly class?: EventClass | undefined;
  readonly known?: boolean | undefined;
}

type Row = readonly [words: RegExp, kind: Omit<AlarmKind, "source">];

const type = (name: string, severity: Severity = "info", more: Omit<AlarmKind, "source" | "type"> = {}) => ({
  type: name,
  severity,
  ...more,
});

/** The first row whose words are found in the name, or in the name and category where they say so, decides. */
const KINDS: Readonly<Record<Exclude<SourceKind, "custom">, readonly Row[]>> = {
  network: [
    [/honeypot/, type("honeypot_triggered", "high")],
    [/rogue.*dhcp|dhcp.*rogue/, type("rogue_dhcp", "high")],
    [/rogue|evil twin/, type("rogue_access_point", "high")],
    [
      /blocked by (firewall|region|country|policy|ad|content)|firewall.*block|traffic.*blocked/,
      type("firewall_blocked", "low"),
    ],
    [/threat|intrusion|\bips\b|\bids\b|malware|botnet/, type("ids_alert", "high")],
    [/login.*fail|fail.*(login|log in)|authentication fail|invalid credentials/, type("login_failure", "medium")],
    [/admin.*(added|created|invited)|(added|created|invited|new).*admin/, type("admin_created", "medium")],
    [/accessed|logged in|admin login|signed in/, type("admin_login")],
    [/config|settings? (changed|updated)|made.*changes/, type("config_changed", "low")],
    [/vpn.*disconnect/, type("vpn_disconnected")],
    [/vpn.*connect/, type("vpn_connected")],
    [/new (client|device)/, type("client_connected", "low", { known: false })],
    [/client.*disconnect/, type("client_disconnected")],
    [/client.*roam/, type("client_roamed")],
    [/client.*connect/, type("client_connected")],
    [/failover/, type("wan_failover", "medium")],
    [/latency/, type("wan_latency_high", "low")],
    [/packet loss/, type("wan_packet_loss", "low")],
    [/(internet|wan).*(restored|up|online|connected\b)/, type("wan_link_up")],
    [/(internet|wan).*(down|disconnect|offline|lost)/, type("wan_link_down", "high")],
    [/device.*(offline|disconnect|lost)|lost contact/, type("device_offline", "medium", { class: "network" })],
    [/device.*(online|reconnect|connected)/, type("device_online", "info", { class: "network" })],
    [/device.*adopted/, type("device_adopted", "low", { class: "audit" })],
    [/firmware|device.*updated|updated.*device/, type("firmware_updated", "low")],
    [/updated.*software updates|\bupdated?\b.*application/, type("software_updated", "low", { class: "audit" })],
    [/backup.*fail/, type("backup_failed", "medium")],
  ],
  protect: [
    [/tamper/, type("tamper", "high")],
    [/(disk|drive).*fail/, type("disk_failed", "high")],
    [/storage.*(full|fail)/, type("storage_full", "high")],
    [/recording.*(stop|fail|paus)/, type("recording_stopped", "high")],
    [/sensor.*open/, type("sensor_opened", "low")],
    [/sensor.*clos/, type("sensor_closed")],
    [/sensor.*motion/, type("sensor_motion")],
    [/leak/, type("water_leak", "high")],
    [/offline|disconnect|connection lost|lost connection/, type("camera_offline", "medium", { class: "security" })],
    [/reconnect|\bonline\b|device connected|camera connected/, type("camera_online")],
    [/licen[cs]e.?plate/, type("license_plate")],
    [/person|people/, type("person", "low")],
    [/vehicle|car\b/, type("vehicle")],
    [/animal|pet\b/, type("animal")],
    [/package/, type("package")],
    [/face/, type("face")],
    [/loiter/, type("loitering", "low")],
    [/ring|doorbell/, type("doorbell")],
    [/motion/, type("motion")],
    [/accessed|logged in|admin activity/, type("admin_login")],
    [/config|settings? changed|made.*changes/, type("config_changed", "low")],
  ],
  access: [
    [/lockdown.*(end|clear|off|deactiv)/, type("lockdown_ended")],
    [/lockdown/, type("lockdown", "critical")],
    [/evacuation.*(end|clear|off|deactiv)/, type("evacuation_ended")],
    [/evacuation/, type("evacuation", "critical")],
    [/emergency/, type("emergency", "critical")],
    [/forced|break.?in/, type("door_forced", "high")],
    [/held|left open|ajar/, type("door_held", "medium")],
    [/denied|blocked|refused|rejected/, type("access_denied", "medium")],
    [/doorbell|ring/, type("doorbell")],
    [/granted|door unlock|entry|unlocked/, type("access_granted")],
    [/visitor.*(in|arriv)/, type("visitor_checked_in")],
    [/visitor.*(out|left)/, type("visitor_checked_out")],
    [/offline|disconnect/, type("device_offline", "medium", { class: "network" })],
    [/accessed|logged in/, type("admin_login")],
    [/config|settings? changed|made.*changes/, type("config_changed", "low")],
  ],
  talk: [
    [/regist.*fail|fail.*regist|authentication fail/, type("sip_registration_failed", "medium")],
    [/regist/, type("sip_registered")],
    [/scan/, type("sip_scan", "low")],
    [/missed/, type("call_missed")],
    [/call.*(end|hang)/, type("call_ended")],
    [/call.*(start|made|placed|initiated)|(outgoing|incoming) call/, type("call_started")],
    [/offline|disconnect/, type("device_offline", "medium", { class: "network" })],
    [/accessed|logged in/, type("admin_login")],
    [/config|settings? changed|made.*changes/, type("config_changed", "low")],
  ],
};

/** A name that is longer is not one of these; and nobody may make us look through a megabyte with patterns. */
const NAME_CHARACTERS_MAX = 200;
export function alarmKind(product: string, name: string, category: string): AlarmKind {
  const source = sourceOfProduct(product);
  // `motionDetected` and `sensor_opened` are words too.
  const words = (text: string) =>
    text
      .slice(0, NAME_CHARACTERS_MAX)
      .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
      .replaceAll(/[_.-]/g, " ")
      .toLowerCase();
  const spoken = words(name);
  const rows = KINDS[source];
  const row =
    rows.find(([pattern]) => pattern.test(spoken)) ??
    rows.find(([pattern]) => pattern.test(`${spoken} ${words(category)}`));
  return row ? { source, ...row[1] } : { source, severity: "info", class: classOfCategory(words(category)) };
}

export function sourceOfProduct(product: string): Exclude<SourceKind, "custom"> {
  // An access point has nothing to do with doors.
  const words = product.slice(0, NAME_CHARACTERS_MAX).toLowerCase().replace("access point", "");
  return (["protect", "access", "talk"] as const).find((source) => words.includes(source)) ?? "network";
}

/** Of what has no row: what the category says, so that a new name is not taken for an attack. */
function classOfCategory(category: string): EventClass | undefined {
  if (/audit|admin|update|system/.test(category)) return "audit";
  if (/client|device|internet|wan|monitoring|wifi|network/.test(category)) return "network";
  return undefined;
}
