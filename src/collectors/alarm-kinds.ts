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

/** `isHappening`: it tells of something that comes about by itself or by a stranger, and that somebody may turn on and off. */
interface RowKind extends Omit<AlarmKind, "source"> {
  readonly isHappening?: boolean;
}

/**
 * What a name must say, and what it then means. `unless`: words that turn it into something else. `category`: words that its
 * category must say as well, where the name alone does not say enough; a category alone decides about nothing.
 */
type Row = readonly [words: RegExp, kind: RowKind, only?: { readonly unless?: RegExp; readonly category?: RegExp }];

const type = (name: string, severity: Severity = "info", more: Omit<AlarmKind, "source" | "type"> = {}): RowKind => ({
  type: name,
  severity,
  ...more,
});
const happens = (name: string, severity: Severity = "info"): RowKind => ({ type: name, severity, isHappening: true });

// All of them are whole words, or beginnings of words: `Disconnected` is not `connected`, and `Monitoring` does not ring.

/** What is told of did not come about. */
const FAILED =
  /\b(not|never|no longer|unable|cannot|fail(s|ed|ing|ure)?|denied|rejected|refused|unsuccessful|unauthori[sz]ed)\b/;
/** What is told of is over. */
const MENDED =
  /\b(cleared|ended|resolved|restored|recovered|normal|no longer|silenced|dismissed)\b|\b(?<!turned |switched )off\b/;
/** Somebody has set up or put away that which would tell of it. */
const TURNED = /\b(created|enabled|disabled|muted|snoozed|settings?|(turned|switched) (on|off))\b/;
const HAPPENED = /\b(detected|triggered|blocked|prevented|touched)\b/;
/** Of what has a type of its own for its end. Doors that were released are no end: that is what an emergency does to them. */
const ended = (what: string, name: string): Row => [
  new RegExp(
    `\\b${what}\\b.*\\b(end(s|ed|ing)?|clear(s|ed)?|off|deactivat(ed|ion)|disabled|lift(s|ed)?|cancel(s|l?ed|lation)?|over|(?<!(door|lock|exit|gate)s? )released|stopped|resolved)\\b` +
      `|\\b(end(ed)?( of)?|cleared|lifted|cancell?ed|deactivated|stopped) (the )?${what}\\b`,
  ),
  type(name),
  { unless: FAILED },
];
/** Of what a console can do it also tells when somebody has changed how it does it. */
const CHANGED: Row = [
  /\b(re)?config(s|ured|urations?)?\b|\b(settings?|set ?up) (was |were )?(changed|updated|modified)\b|\bmade\b.*\bchanges\b/,
  type("config_changed", "low"),
];
const CAME_IN: Row = [/\baccessed\b|\blogged in\b|^admin activity$/, type("admin_login"), { unless: FAILED }];
/** The cameras' console has but one word for it, and the category says who. */
const ADMIN_CAME_IN: Row = [/^access$/, type("admin_login"), { category: /\badmin activity\b/ }];
const RINGS: Row = [
  /\b(ring(s|ing)?|rang)\b|\bdoorbells?\b/,
  happens("doorbell"),
  // Then it is about the thing at the door, not about somebody who stands there.
  { unless: /\b(adopted|updated?|rebooted|restarted|removed|renamed|connected|firmware|battery|settings?|error)\b/ },
];
const GONE: Row = [/\b(offline|disconnect(s|ed|ion)?)\b/, type("device_offline", "medium")];

/** The first row that fits decides. */
const KINDS: Readonly<Record<Exclude<SourceKind, "custom">, readonly Row[]>> = {
  network: [
    [
      /\b(honeypot|threat|intrusion|ips|ids|malware|firewall)\b.*\b(enabled|disabled|settings?)\b|\bhoneypots?\b.*\b(added|deleted|removed)\b/,
      type("config_changed", "low"),
      { unless: /\b(detected|triggered|blocked|prevented)\b/ },
    ],
    [/\bhoneypot/, happens("honeypot_triggered", "high")],
    [/\brogue\b.*\bdhcp|\bdhcp.*\brogue\b/, happens("rogue_dhcp", "high")],
    [/\brogue\b|\bevil twin\b/, happens("rogue_access_point", "high")],
    [
      /\b(log|sign) ?ins?\b.*\b(fail|denied|reject|refused|blocked)|\b(fail|unsuccessful|invalid|unauthori[sz]ed|denied|rejected|refused).*\b(log|sign) ?ins?\b|\bauthentication fail|\binvalid credentials\b/,
      type("login_failure", "medium"),
    ],
    // The admin must be the one who was made, not the one who has made something.
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
      happens("firewall_blocked", "low"),
    ],
    [
      /\b(threats?|intrusions?|ips|ids|malware|botnets?)\b/,
      happens("ids_alert", "high"),
      { unless: /\b(signatures?|rules?|database) updated?\b/ },
    ],
    [
      /\b(detected|blocked|prevented|attack|attempt|alert|signature)\b/,
      happens("ids_alert", "high"),
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
    [/\blatency\b/, happens("wan_latency_high", "low")],
    [/\bpacket loss\b/, happens("wan_packet_loss", "low")],
    // An outage that is over is told in the words for an outage; after that, what is down must not pass for up.
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
    // Before what is seen: a setting of the motion detection is no motion.
    CHANGED,
    ADMIN_CAME_IN,
    [/\btamper/, happens("tamper", "high")],
    [/\b(disk|drive)s?\b.*\bfail/, happens("disk_failed", "high")],
    [
      /\bstorage\b.*\b(full\b|fail)/,
      happens("storage_full", "high"),
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
    CAME_IN,
    [/\bbattery\b.*\blow\b|\blow battery\b/, happens("battery_low", "low")],
    [/\bsensors?\b.*\bextreme\b/, happens("sensor_extreme_values", "medium")],
    [/\bsensors? alarm\b/, happens("sensor_alarm", "high")],
    [/\bsensors?\b.*\bopen/, happens("sensor_opened", "low")],
    [/\bsensors?\b.*\bclos/, happens("sensor_closed")],
    [/\bsensors?\b.*\bmotion\b/, happens("sensor_motion")],
    [/\bleak/, happens("water_leak", "high")],
    [/\bsmoke\b/, happens("smoke_alarm", "critical")],
    [/\b(carbon monoxide|co)\b/, happens("carbon_monoxide_alarm", "critical")],
    [/\bglass\b.*\bbreak|\bbr(eak|oken)\b.*\bglass\b/, happens("glass_break", "high")],
    [/\bburglar/, happens("burglar_alarm", "high")],
    [/\bsirens?\b/, happens("siren", "medium")],
    [
      /\b(offline|disconnect(s|ed|ion)?|connection lost|lost (connection|contact))\b/,
      happens("camera_offline", "medium"),
    ],
    [
      /\breconnect(s|ed)?\b|\bonline\b|\b(device|camera|doorbell|sensor) connected\b/,
      type("camera_online"),
      { unless: FAILED },
    ],
    [/\badopted\b/, type("device_adopted", "low"), { unless: FAILED }],
    [/\bnfc\b.*\bscan/, happens("badge_scanned")],
    [/\bfingerprint identified\b/, happens("fingerprint_identified")],
    [/\blicen[cs]e.?plates?\b/, happens("license_plate")],
    [/\b(persons?|people)\b/, happens("person", "low")],
    [/\b(vehicle|car)s?\b/, happens("vehicle")],
    [/\b(animal|pet)s?\b/, happens("animal")],
    [/\bpackages?\b/, happens("package")],
    [/\bfaces?\b/, happens("face")],
    [/\bloiter/, happens("loitering", "low")],
    RINGS,
    [/\bmotion\b/, happens("motion")],
  ],
  access: [
    CHANGED,
    ADMIN_CAME_IN,
    ended("lock ?down", "lockdown_ended"),
    [/\block ?down\b/, type("lockdown", "critical")],
    ended("evacuation", "evacuation_ended"),
    [/\bevacuation\b/, type("evacuation", "critical")],
    ended("emergency", "emergency_ended"),
    [/\bemergency\b/, type("emergency", "critical")],
    [/\bforced\b|\bbreak ?in\b|\bunauthori[sz]ed (door )?open(s|ed|ing)?\b/, happens("door_forced", "high")],
    [/\b(held|left open|ajar)\b/, happens("door_held", "medium")],
    [
      /\b(denied|blocked|refused|rejected|unauthori[sz]ed)\b|\bnot (granted|allowed|permitted|authori[sz]ed)\b|\bno (access|entry)\b/,
      type("access_denied", "medium"),
    ],
    CAME_IN,
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
    GONE,
  ],
  talk: [
    CHANGED,
    ADMIN_CAME_IN,
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
    [/\bscan(s|ned|ner|ning)?\b/, happens("sip_scan", "low")],
    [/\bmissed\b/, type("call_missed")],
    CAME_IN,
    [/\bcalls?\b.*\b(end(s|ed)?|hang(s|ing)?|hung)\b/, type("call_ended")],
    [
      /\bcalls?\b.*\b(start(s|ed)?|made|placed|initiated)\b|\b(outgoing|incoming) calls?\b/,
      type("call_started"),
      { unless: new RegExp(`${FAILED.source}|\\b(blocked|declined|recording)\\b`) },
    ],
    GONE,
  ],
};

/** A name that is longer is not one of these; and nobody may make us look through a megabyte with patterns. */
const NAME_CHARACTERS_MAX = 200;
export function alarmKind(product: string, name: string, category: string): AlarmKind {
  const source = sourceOfProduct(product);
  const spoken = wordsOf(name);
  const group = wordsOf(category);
  const kind = KINDS[source].find(
    ([words, , only]) =>
      words.test(spoken) && !only?.unless?.test(spoken) && (only?.category === undefined || only.category.test(group)),
  )?.[1];
  const told = kind?.isHappening === true ? unlessOpposite(kind, spoken) : kind;
  if (told === undefined) return { source, severity: "info", class: classOfCategory(group) };
  const { isHappening: _, ...meaning } = told;
  return { source, ...meaning };
}

/** A name may say of what happens that it is over, or that nobody is to be told of it any more. */
function unlessOpposite(kind: RowKind, spoken: string): RowKind | undefined {
  if (MENDED.test(spoken)) return undefined;
  return TURNED.test(spoken) && !HAPPENED.test(spoken) ? CHANGED[1] : kind;
}

/** `motionDetected` and `sensor_opened` are words too. */
export function wordsOf(text: string): string {
  return text
    .slice(0, NAME_CHARACTERS_MAX)
    .replaceAll(/\b(Wi|Uni)-?Fi/g, (word) => word.toLowerCase())
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll(/[_.-]/g, " ")
    .toLowerCase();
}

export function sourceOfProduct(product: string): Exclude<SourceKind, "custom"> {
  // An access point has nothing to do with doors.
  const words = wordsOf(product).replace("access point", "").split(/\W+/);
  return (["protect", "access", "talk"] as const).find((source) => words.includes(source)) ?? "network";
}

/** Of what has no row: what the category says, so that a new name is not taken for an attack. */
function classOfCategory(category: string): EventClass | undefined {
  if (/\b(audit|admins?|updates?|system)\b/.test(category)) return "audit";
  if (/\b(clients?|devices?|internet|wan\d*|monitoring|wi ?fi|networks?)\b/.test(category)) return "network";
  return undefined;
}
