import type { EventClass, Severity, SourceKind } from "../../../model/event.ts";

// Meanings of alarms by the words of their names and categories. Numbers are ignored: they changed between releases.

export interface AlarmKind {
  readonly source: SourceKind;
  /** Undefined: the type is made from the device's own name. */
  readonly type?: string | undefined;
  readonly severity?: Severity | undefined;
  readonly class?: EventClass | undefined;
  readonly known?: boolean | undefined;
}

/** `isOccurrence`: reports something that happens, whose detection a person can turn on and off. */
interface AlarmRowKind extends Omit<AlarmKind, "source"> {
  readonly isOccurrence?: boolean;
}

/**
 * Words of a name and their meaning. `unless`: words that change the meaning. `category`: words that the category must contain
 * as well, for names that say too little; a category alone never decides.
 */
type AlarmRow = readonly [
  words: RegExp,
  kind: AlarmRowKind,
  only?: { readonly unless?: RegExp; readonly category?: RegExp },
];

const type = (
  name: string,
  severity: Severity = "info",
  more: Omit<AlarmKind, "source" | "type"> = {},
): AlarmRowKind => ({
  type: name,
  severity,
  ...more,
});
const occurrence = (name: string, severity: Severity = "info"): AlarmRowKind => ({
  type: name,
  severity,
  isOccurrence: true,
});

// All patterns match whole words or starts of words: `Disconnected` is not `connected`, and `Monitoring` does not ring.

/** The reported action did not succeed. */
const FAILED =
  /\b(not|never|no longer|unable|cannot|fail(s|ed|ing|ure)?|denied|rejected|refused|unsuccessful|unauthori[sz]ed)\b/;
/** The reported condition is over. */
const ENDED =
  /\b(cleared|ended|resolved|restored|recovered|normal|no longer|silenced|dismissed)\b|\b(?<!turned |switched )off\b/;
/** The detection was set up or turned off. */
const CONFIGURED = /\b(created|enabled|disabled|muted|snoozed|settings?|(turned|switched) (on|off))\b/;
const OCCURRED = /\b(detected|triggered|blocked|prevented|touched)\b/;
/** Row for a condition whose end has its own type. Released doors do not end it: an emergency releases them. */
const ended = (what: string, name: string): AlarmRow => [
  new RegExp(
    `\\b${what}\\b.*\\b(end(s|ed|ing)?|clear(s|ed)?|off|deactivat(ed|ion)|disabled|lift(s|ed)?|cancel(s|l?ed|lation)?|over|(?<!(door|lock|exit|gate)s? )released|stopped|resolved)\\b` +
      `|\\b(end(ed)?( of)?|cleared|lifted|cancell?ed|deactivated|stopped) (the )?${what}\\b`,
  ),
  type(name),
  { unless: FAILED },
];
/** A change of the console's own configuration. */
const CHANGED: AlarmRow = [
  /\b(re)?config(s|ured|urations?)?\b|\b(settings?|set ?up) (was |were )?(changed|updated|modified)\b|\bmade\b.*\bchanges\b/,
  type("config_changed", "low"),
];
const LOGGED_IN: AlarmRow = [/\baccessed\b|\blogged in\b|^admin activity$/, type("admin_login"), { unless: FAILED }];
/** Protect has a single word for logins; the category names the admin. */
const ADMIN_ACCESS: AlarmRow = [/^access$/, type("admin_login"), { category: /\badmin activity\b/ }];
const RINGS: AlarmRow = [
  /\b(ring(s|ing)?|rang)\b|\bdoorbells?\b/,
  occurrence("doorbell"),
  // Reports about the doorbell as a device, not about a visitor.
  { unless: /\b(adopted|updated?|rebooted|restarted|removed|renamed|connected|firmware|battery|settings?|error)\b/ },
];
const OFFLINE: AlarmRow = [/\b(offline|disconnect(s|ed|ion)?)\b/, type("device_offline", "medium")];

/** The first matching row counts. */
const KINDS: Readonly<Record<Exclude<SourceKind, "custom">, readonly AlarmRow[]>> = {
  network: [
    [
      /\b(honeypot|threat|intrusion|ips|ids|malware|firewall)\b.*\b(enabled|disabled|settings?)\b|\bhoneypots?\b.*\b(added|deleted|removed)\b/,
      type("config_changed", "low"),
      { unless: /\b(detected|triggered|blocked|prevented)\b/ },
    ],
    [/\bhoneypot/, occurrence("honeypot_triggered", "high")],
    [/\brogue\b.*\bdhcp|\bdhcp.*\brogue\b/, occurrence("rogue_dhcp", "high")],
    [/\brogue\b|\bevil twin\b/, occurrence("rogue_access_point", "high")],
    [
      /\b(log|sign) ?ins?\b.*\b(fail|denied|reject|refused|blocked)|\b(fail|unsuccessful|invalid|unauthori[sz]ed|denied|rejected|refused).*\b(log|sign) ?ins?\b|\bauthentication fail|\binvalid credentials\b/,
      type("login_failure", "medium"),
    ],
    // The admin must be the object of the action, not its author.
    [
      /\badmin(istrator)?s?( (account|user)s?)? (was |were |has been )?(added|created|invited)( (to|by|on|in|for|at|via|from)\b.*)?$|\b(added|created|invited|new) ((an?|as|new|super|local|site) )*admin|\b(added|created|invited)\b.*\bas (an? )?(new |super |local |site )?admin/,
      type("admin_created", "medium"),
      { unless: /\b(log ?in|sign ?in|logged in|signed in|session|accessed|passwords?|settings?|policy)\b/ },
    ],
    [
      /\badmin(istrator)? (added|created|changed|modified|updated|edited|removed|deleted|enabled|disabled) \w|\b(created|changed|modified|edited|removed|deleted) by (an )?admin/,
      type("config_changed", "low"),
      { unless: /\b(backups?|vouchers?|reports?|firmware)\b/ },
    ],
    [
      /\bblocked by (firewall|region|country|policy|ads?|content)\b|\bfirewall\b.*\bblock(s|ed|ing)?\b|\btraffic\b.*\bblocked\b/,
      occurrence("firewall_blocked", "low"),
    ],
    [
      /\b(threats?|intrusions?|ips|ids|malware|botnets?)\b/,
      occurrence("ids_alert", "high"),
      { unless: /\b(signatures?|rules?|database) updated?\b/ },
    ],
    [
      /\b(detected|blocked|prevented|attack|attempt|alert|signature)\b/,
      occurrence("ids_alert", "high"),
      { category: /\b(threats?|intrusions?|ips|ids|malware|botnets?)\b/, unless: /\bupdated?\b/ },
    ],
    [
      /\baccessed\b|\b(logged|signed) in\b|\badmin(istrator)? (log|sign) ?in\b/,
      type("admin_login"),
      { unless: FAILED },
    ],
    [/\bbackups?\b.*\bfail/, type("backup_failed", "medium")],
    CHANGED,
    [/\bvpn\b.*\b(disconnect|down\b|lost\b|dropped\b)/, type("vpn_disconnected")],
    [
      /\bvpn\b.*\b((re)?connect(s|ed)?|connection (established|restored|up))\b/,
      type("vpn_connected"),
      { unless: FAILED },
    ],
    [
      /\bnew (client|device)s?\b/,
      type("client_connected", "low", { known: false }),
      { unless: /\b(adopted|firmware|updated?|available|disconnect(s|ed)?|blocked)\b/ },
    ],
    [/\bclients?\b.*\bdisconnect/, type("client_disconnected")],
    [/\bclients?\b.*\broam/, type("client_roamed")],
    [/\bclients?\b.*\b(re)?connect(s|ed)?\b/, type("client_connected"), { unless: FAILED }],
    [/\bfail ?over\b/, type("wan_failover", "medium")],
    [/\blatency\b/, occurrence("wan_latency_high", "low")],
    [/\bpacket loss\b/, occurrence("wan_packet_loss", "low")],
    // The end of an outage uses the words for an outage, so it comes first; then a lost link must not pass for a restored one.
    [
      /\b(internet|wan\d*)\b.*\b(restored|recovered|reconnect(s|ed)?|resolved|back (up|online)|(outage|interruption) (is |has )?(ended|over|cleared))\b/,
      type("wan_link_up"),
      { unless: FAILED },
    ],
    [
      /\b(internet|wan\d*)\b.*\b(down|disconnect(s|ed|ion)?|offline|lost|interrupt(s|ed|ions?)?|outages?|not (connected|online|up))\b|^(lost|disconnected|outage) .*\b(internet|wan\d*)\b|^no (internet|wan\d*)\b/,
      type("wan_link_down", "high"),
    ],
    [/\b(internet|wan\d*)\b.*\b(up|online|connected)\b/, type("wan_link_up"), { unless: FAILED }],
    [
      /\b(devices?|access points?|aps?|switch(es)?|gateways?)\b.*\b(offline|disconnect(s|ed|ion)?|lost)\b|\blost contact\b/,
      type("device_offline", "medium"),
    ],
    [
      /\b(devices?|access points?|aps?|switch(es)?|gateways?)\b.*\b(online|connected|reconnect(s|ed)?)\b/,
      type("device_online", "info"),
      { unless: FAILED },
    ],
    [
      /\b(devices?|access points?|aps?|switch(es)?|gateways?)\b.*\badopted\b/,
      type("device_adopted", "low"),
      { unless: FAILED },
    ],
    [
      /\bfirmware\b|\bdevices?\b.*\bupdated\b|\bupdated\b.*\bdevices?\b/,
      type("firmware_updated", "low"),
      { unless: /\b(available|scheduled|pending|required|recommended|not|unable|fail(s|ed|ing|ure)?)\b/ },
    ],
    [/\bupdated?\b.*\bapplications?\b/, type("software_updated", "low"), { unless: FAILED }],
    [
      /\bupdated\b/,
      type("software_updated", "low"),
      { category: /\bsoftware updates?\b|\bapplications?\b/, unless: FAILED },
    ],
  ],
  protect: [
    // Before the detections: a change of the motion settings is not motion.
    CHANGED,
    ADMIN_ACCESS,
    [/\btamper/, occurrence("tamper", "high")],
    [/\b(disk|drive)s?\b.*\bfail/, occurrence("disk_failed", "high")],
    [
      /\bstorage\b.*\b(full\b|fail)/,
      occurrence("storage_full", "high"),
      { unless: /\b(almost|nearly|soon|getting|filling|percent)\b|%/ },
    ],
    [/\brecording mode\b.*\bchanged\b/, type("recording_mode_changed", "low")],
    [/\brecordings?\b.*\b(stop|fail|paus|off\b|disabled\b)/, type("recording_stopped", "high")],
    [
      /\brecordings?\b.*\bdeleted\b|\bdeleted\b.*\brecordings?\b/,
      type("recording_deleted", "medium"),
      { unless: /\bnot\b/ },
    ],
    [/\bvideos?\b.*\bdeleted\b|\bdeleted\b.*\bvideos?\b/, type("video_deleted", "medium"), { unless: /\bnot\b/ }],
    LOGGED_IN,
    [/\bbattery\b.*\blow\b|\blow battery\b/, occurrence("battery_low", "low")],
    [/\bsensors?\b.*\bextreme\b/, occurrence("sensor_extreme_values", "medium")],
    [/\bsensors? alarm\b/, occurrence("sensor_alarm", "high")],
    [/\bsensors?\b.*\bopen/, occurrence("sensor_opened", "low")],
    [/\bsensors?\b.*\bclos/, occurrence("sensor_closed")],
    [/\bsensors?\b.*\bmotion\b/, occurrence("sensor_motion")],
    [/\bleak/, occurrence("water_leak", "high")],
    [/\bsmoke\b/, occurrence("smoke_alarm", "critical")],
    [/\b(carbon monoxide|co)\b/, occurrence("carbon_monoxide_alarm", "critical")],
    [/\bglass\b.*\bbreak|\bbr(eak|oken)\b.*\bglass\b/, occurrence("glass_break", "high")],
    [/\bburglar/, occurrence("burglar_alarm", "high")],
    [/\bsirens?\b/, occurrence("siren", "medium")],
    [
      /\b(offline|disconnect(s|ed|ion)?|connection lost|lost (connection|contact))\b/,
      occurrence("camera_offline", "medium"),
    ],
    [
      /\breconnect(s|ed)?\b|\bonline\b|\b(device|camera|doorbell|sensor) connected\b/,
      type("camera_online"),
      { unless: FAILED },
    ],
    [/\badopted\b/, type("device_adopted", "low"), { unless: FAILED }],
    [/\bnfc\b.*\bscan/, occurrence("badge_scanned")],
    [/\bfingerprint identified\b/, occurrence("fingerprint_identified")],
    [/\blicen[cs]e.?plates?\b/, occurrence("license_plate")],
    [/\b(persons?|people)\b/, occurrence("person", "low")],
    [/\b(vehicle|car)s?\b/, occurrence("vehicle")],
    [/\b(animal|pet)s?\b/, occurrence("animal")],
    [/\bpackages?\b/, occurrence("package")],
    [/\bfaces?\b/, occurrence("face")],
    [/\bloiter/, occurrence("loitering", "low")],
    RINGS,
    [/\bmotion\b/, occurrence("motion")],
  ],
  access: [
    CHANGED,
    ADMIN_ACCESS,
    ended("lock ?down", "lockdown_ended"),
    [/\block ?down\b/, type("lockdown", "critical")],
    ended("evacuation", "evacuation_ended"),
    [/\bevacuation\b/, type("evacuation", "critical")],
    ended("emergency", "emergency_ended"),
    [/\bemergency\b/, type("emergency", "critical")],
    [/\bforced\b|\bbreak ?in\b|\bunauthori[sz]ed (door )?open(s|ed|ing)?\b/, occurrence("door_forced", "high")],
    [/\b(held|left open|ajar)\b/, occurrence("door_held", "medium")],
    [
      /\b(denied|blocked|refused|rejected|unauthori[sz]ed)\b|\bnot (granted|allowed|permitted|authori[sz]ed)\b|\bno (access|entry)\b/,
      type("access_denied", "medium"),
    ],
    LOGGED_IN,
    RINGS,
    [
      /\b(granted|unlocked|entry)\b|\bdoor unlock(s|ed)?\b/,
      type("access_granted"),
      { unless: new RegExp(`${FAILED.source}|\\b(schedule|rule|policy|expired|invalid|declined|forbidden)\\b`) },
    ],
    [/\bvisitors?\b.*\b((check|sign)(ed|s)?.?in\b|arriv)/, type("visitor_checked_in"), { unless: FAILED }],
    [
      /\bvisitors?\b.*\b((check|sign)(ed|s)?.?out\b|left\b|depart|leaves\b)/,
      type("visitor_checked_out"),
      { unless: FAILED },
    ],
    OFFLINE,
  ],
  talk: [
    CHANGED,
    ADMIN_ACCESS,
    [
      /\b(un|de).?regist|\bnot registered\b|\bregist.*\b(expire|lost\b)|\bexpire.*\bregist/,
      type("sip_unregistered", "low"),
      { unless: /\bfail/ },
    ],
    [
      /\bregist.*\b(fail|reject|denied|refused|unauthori[sz]ed|forbidden|time(d )?.?out)|\b(fail|reject|denied|refused|unauthori[sz]ed|forbidden|unable).*\bregist|\bauthentication fail/,
      type("sip_registration_failed", "medium"),
    ],
    [/\bregist(er|ers|ered|ration|rations)\b/, type("sip_registered"), { unless: FAILED }],
    [/\bscan(s|ned|ner|ning)?\b/, occurrence("sip_scan", "low")],
    [/\bmissed\b/, type("call_missed")],
    LOGGED_IN,
    [/\bcalls?\b.*\b(end(s|ed)?|hang(s|ing)?|hung)\b/, type("call_ended")],
    [
      /\bcalls?\b.*\b(start(s|ed)?|made|placed|initiated)\b|\b(outgoing|incoming) calls?\b/,
      type("call_started"),
      { unless: new RegExp(`${FAILED.source}|\\b(blocked|declined|recording)\\b`) },
    ],
    OFFLINE,
  ],
};

/** Characters of a name that are matched, which limits the cost of the patterns. */
const NAME_CHARACTERS_MAX = 200;

export function alarmKind(product: string, name: string, category: string): AlarmKind {
  const source = sourceOfProduct(product);
  const words = wordsOf(name);
  const group = wordsOf(category);
  const kind = KINDS[source].find(
    ([pattern, , only]) =>
      pattern.test(words) && !only?.unless?.test(words) && (only?.category === undefined || only.category.test(group)),
  )?.[1];
  const matched = kind?.isOccurrence === true ? unlessEnded(kind, words) : kind;
  if (matched === undefined) return { source, severity: "info", class: classOfCategory(group) };
  const { isOccurrence: _, ...meaning } = matched;
  return { source, ...meaning };
}

/** Undefined if the name reports the end of an occurrence; a configuration change if its detection was turned on or off. */
function unlessEnded(kind: AlarmRowKind, words: string): AlarmRowKind | undefined {
  if (ENDED.test(words)) return undefined;
  return CONFIGURED.test(words) && !OCCURRED.test(words) ? CHANGED[1] : kind;
}

/** Splits a name into lower-case words, `motionDetected` and `sensor_opened` included. */
export function wordsOf(text: string): string {
  return text
    .slice(0, NAME_CHARACTERS_MAX)
    .replaceAll(/\b(Wi|Uni)-?Fi/g, (word) => word.toLowerCase())
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll(/[_.-]/g, " ")
    .toLowerCase();
}

export function sourceOfProduct(product: string): Exclude<SourceKind, "custom"> {
  // An access point is not the Access application.
  const words = wordsOf(product).replace("access point", "").split(/\W+/);
  return (["protect", "access", "talk"] as const).find((source) => words.includes(source)) ?? "network";
}

/** Class by the category for names without a row, so that a new name does not count as a security event. */
function classOfCategory(category: string): EventClass | undefined {
  if (/\b(audit|admins?|updates?|system)\b/.test(category)) return "audit";
  if (/\b(clients?|devices?|internet|wan\d*|monitoring|wi ?fi|networks?)\b/.test(category)) return "network";
  return undefined;
}
