import { eventKind, type EventKind } from "./event-kind.ts";
import type { Random } from "./random.ts";
import { BACKUP_SERVER, CAMERAS, DOORS, INTRANET, randomOutsider } from "./site.ts";

const MINUTE_MS = 60_000;

const telephone = (random: Random) => `+1202555${String(random.between(100, 199)).padStart(4, "0")}`;

/** Everyday events of cameras, doors, telephones and the site's own programs. A new entry is a new kind of demo event. */
export const BUILDING_KINDS: readonly EventKind[] = [
  eventKind("protect", "motion", "info", [160, 45], (_, random) => {
    const [camera, zone] = random.pick(CAMERAS);
    return { raw: { camera, zone, score: random.between(50, 99), duration_s: random.between(2, 60) } };
  }),
  eventKind("protect", "person", "low", [70, 4], (_, random) => {
    const [camera, zone] = random.pick(CAMERAS);
    return { raw: { camera, zone, score: random.between(60, 99), duration_s: random.between(2, 40) } };
  }),
  eventKind("protect", "vehicle", "info", [26, 4], (_, random) => {
    const [camera, zone] = CAMERAS[random.below(4)]!;
    return {
      raw: {
        camera,
        zone,
        score: random.between(60, 99),
        plate: `XX-${random.between(100, 999)}-${random.pick(["A", "K", "T"])}`,
      },
    };
  }),
  eventKind("protect", "camera_offline", "medium", [0.3, 0.4], (_, random, atMs) => {
    const [camera, zone] = random.pick(CAMERAS);
    const atLaterMs = atMs + random.between(1, 45) * MINUTE_MS;
    return {
      raw: { camera, zone, reason: random.pick(["network", "power"]) },
      later: { type: "camera_online", source: "protect", severity: "info", atMs: atLaterMs, raw: { camera, zone } },
    };
  }),
  eventKind("protect", "tamper", "high", [0.05, 0.1], (_, random) => {
    const [camera, zone] = random.pick(CAMERAS);
    return { raw: { camera, zone, reason: random.pick(["covered", "moved", "defocused"]) } };
  }),
  eventKind("access", "access_granted", "info", [110, 3], (site, random) => {
    const { user, badge } = random.pick(site.people);
    const [door, zone] = random.pick(DOORS);
    return { raw: { user, badge, door, zone, method: random.pick(["badge", "badge", "phone", "code"]) } };
  }),
  eventKind("access", "access_denied", "medium", [4, 0.6], (site, random) => {
    const { user, badge } = random.pick(site.people);
    const [door, zone] = random.pick(DOORS);
    return {
      raw: { user, badge, door, zone, reason: random.pick(["not permitted", "outside hours", "badge expired"]) },
    };
  }),
  eventKind("access", "door_held", "medium", [2, 0.1], (_, random) => {
    const [door, zone] = random.pick(DOORS);
    return { raw: { door, zone, duration_s: random.between(30, 240) } };
  }),
  eventKind("access", "door_forced", "high", [0.04, 0.04], (_, random) => {
    const [door, zone] = random.pick(DOORS);
    return { raw: { door, zone } };
  }),
  eventKind("access", "visitor_checked_in", "info", [5, 0], (site, random, atMs) => {
    const raw = {
      user: random.pick(site.people).user,
      door: "Main entrance",
      zone: "lobby",
      visitor: `V${random.between(1000, 9999)}`,
    };
    const atLaterMs = atMs + random.between(20, 240) * MINUTE_MS;
    return { raw, later: { type: "visitor_checked_out", source: "access", severity: "info", atMs: atLaterMs, raw } };
  }),
  eventKind("talk", "call_started", "info", [22, 0.8], (site, random, atMs) => {
    const person = random.pick(site.people);
    const inward = random.onceIn(2);
    const colleague = random.pick(site.people);
    const other = random.onceIn(3) && colleague !== person ? colleague.extension : telephone(random);
    const raw = {
      from: inward ? other : person.extension,
      to: inward ? person.extension : other,
      user: person.user,
      call: `c${random.below(0xffff_ffff).toString(16).padStart(8, "0")}`,
    };
    const seconds = random.between(8, 1200);
    const ended = { ...raw, duration_s: seconds };
    return {
      raw,
      later: { type: "call_ended", source: "talk", severity: "info", atMs: atMs + seconds * 1000, raw: ended },
    };
  }),
  eventKind("talk", "call_missed", "info", [5, 1], (site, random) => {
    const person = random.pick(site.people);
    return {
      raw: { from: telephone(random), to: person.extension, user: person.user, rang_s: random.between(5, 40) },
    };
  }),
  eventKind("talk", "sip_registration_failed", "medium", [2, 4], (site, random) => {
    const from = randomOutsider(site, random);
    return {
      raw: {
        src_ip: from.ip,
        from: String(random.between(100, 130)),
        reason: "wrong password",
        user_agent: "friendly-scanner",
      },
      enrichment: from.enrichment,
    };
  }),
  eventKind("talk", "sip_scan", "low", [1, 2], (site, random) => {
    const from = randomOutsider(site, random);
    return {
      raw: { src_ip: from.ip, dst_port: 5060, protocol: "udp", methods: ["OPTIONS", "REGISTER"] },
      enrichment: from.enrichment,
    };
  }),
  eventKind("custom", "backup_finished", "info", [1, 5], (_, random) => ({
    raw: {
      host: BACKUP_SERVER.host,
      job: random.pick(["mail", "files", "database"]),
      bytes: random.between(1, 90) * 1_000_000,
    },
  })),
  eventKind("custom", "backup_failed", "high", [0.1, 0.6], (_, random) => ({
    raw: {
      host: BACKUP_SERVER.host,
      job: random.pick(["mail", "files", "database"]),
      reason: random.pick(["target full", "timeout"]),
    },
  })),
  eventKind("custom", "temperature_high", "medium", [0.8, 0.2], (_, random) => ({
    raw: { zone: "server room", device: "probe-2", celsius: random.between(290, 360) / 10 },
  })),
  eventKind("custom", "app_login_failure", "low", [6, 1], (site, random) => {
    const { user, laptop } = random.pick(site.people);
    return { raw: { user, host: INTRANET.host, src_ip: laptop.ip } };
  }),
];
