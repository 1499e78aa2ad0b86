import type { Transition } from "../alerts/alerts.ts";
import { DAY_MS, startOfDay } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import type { Resolution } from "../model/alert-state.ts";
import type { Severity } from "../model/event.ts";
import type { Random } from "./random.ts";

// How the demo's people handle an alert: who takes it, when, what they write and how they close it.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface HandlingStep {
  readonly atMs: number;
  readonly actor: string;
  readonly transition: Transition;
}

interface Habit {
  /** The probability that somebody takes the alert, and that the alert is then resolved. */
  readonly taken: number;
  readonly resolved: number;
  /** Minutes until somebody takes it, and from then until it is resolved. */
  readonly takenAfter: readonly [least: number, most: number];
  readonly resolvedAfter: readonly [least: number, most: number];
  /** True if nobody gets up at night for it. */
  readonly waitsForMorning: boolean;
}

const HABITS: Readonly<Record<Severity, Habit>> = {
  critical: { taken: 1, resolved: 0.9, takenAfter: [2, 14], resolvedAfter: [40, 420], waitsForMorning: false },
  high: { taken: 0.85, resolved: 0.85, takenAfter: [4, 45], resolvedAfter: [30, 600], waitsForMorning: true },
  medium: { taken: 0.75, resolved: 0.9, takenAfter: [5, 90], resolvedAfter: [10, 600], waitsForMorning: true },
  low: { taken: 0.6, resolved: 0.95, takenAfter: [10, 240], resolvedAfter: [5, 300], waitsForMorning: true },
  info: { taken: 0.4, resolved: 1, takenAfter: [60, 900], resolvedAfter: [5, 60], waitsForMorning: true },
};

/** The rules of the intruder: people are still at work on the first, and nobody has taken the others yet. */
const IN_PROGRESS = "site.intrusion_across_domains";
const UNTOUCHED_RULES = new Set(["network.command_and_control", "network.ids_critical", "network.unknown_device"]);

interface ClosingWords {
  readonly resolution: Resolution;
  readonly comment: string;
  readonly actionsTaken?: readonly string[];
}

const real = (comment: string, ...actionsTaken: readonly string[]): ClosingWords => ({
  resolution: "true_positive",
  comment,
  actionsTaken,
});
const closed = (resolution: Resolution, comment: string): ClosingWords => ({ resolution, comment });

/** By the name of the rule. */
const CLOSINGS: Readonly<Record<string, readonly ClosingWords[]>> = {
  "access.badge_after_hours": [
    closed("benign", "Cleaning crew, on the roster for tonight."),
    closed("benign", "Called: finished a tender and left at once."),
    closed("false_positive", "Works the late shift this week."),
    real("The badge was lent to a colleague.", "Spoke to both employees", "Badge blocked and reissued"),
  ],
  "access.door_held": [
    closed("benign", "A delivery; the door was open for the pallets. Seen on camera."),
    closed("false_positive", "The door contact is loose. Facilities has a ticket for it."),
    closed("duplicate", "Same door, same delivery."),
  ],
  "access.door_held_at_night": [
    closed("benign", "Smokers. Reminded the late shift of the rule."),
    real("The lock did not catch.", "Door closed by the guard", "Locksmith ordered"),
  ],
  "access.door_forced": [
    real("The frame is damaged; nobody was inside.", "Guard checked the building", "Police report filed"),
    closed("false_positive", "Fire drill; the door was opened from inside."),
  ],
  "custom.backup_failed": [
    real("The target was full.", "Old snapshots removed", "Job started again: finished"),
    closed("benign", "The next run went through."),
  ],
  "custom.too_hot": [real("A fan of the air conditioning had stopped.", "Technician replaced the fan")],
  "network.brute_force": [real("Password guessing from a rented server.", "Blocked the address at the firewall")],
  "network.brute_force_then_success": [
    real(
      "The administrator's password was guessed. **Everything that the session changed is reverted.**",
      "Changed the password",
      "Second factor for all administrators",
      "Blocked the address at the firewall",
    ),
  ],
  "network.config_change_at_night": [closed("benign", "Planned maintenance; the change is in the calendar.")],
  "network.ids_high_not_blocked": [
    closed("benign", "Background noise from the internet; the port is closed."),
    closed("false_positive", "Our own vulnerability scan. It comes from this address every week."),
    closed("duplicate", "Same address and same hour as the alert that I have just closed."),
    real("Confirmed in the flows: a probe, nothing answered.", "Blocked the address at the firewall"),
  ],
  "network.login_from_abusive_address": [real("Belongs to the guessed password.", "Session ended")],
  "network.port_sweep": [real("A scan of the whole address block; nothing answered.", "Blocked the address")],
  "network.remote_access_opened": [real("Opened with the guessed password.", "Port forwarding removed")],
  "protect.camera_offline": [
    closed("benign", "Power was off for maintenance of the switch."),
    closed("benign", "Back by itself after a minute."),
    closed("false_positive", "The camera was updating its firmware."),
  ],
  "protect.camera_tampered": [
    closed("false_positive", "A spider's web in front of the lens."),
    closed("benign", "Window cleaners."),
    real("The camera was turned by hand.", "Camera put back", "Recording saved"),
  ],
  "protect.person_in_restricted_zone": [
    closed("benign", "Technician of the provider, announced."),
    closed("false_positive", "A reflection in the glass door."),
    real("A visitor without escort.", "Guard walked the visitor out"),
  ],
  "site.door_after_camera_blinded": [
    closed("benign", "Both belong to the works on the roof; the foreman confirmed it."),
  ],
  "talk.registration_failures": [real("Guessing at one extension.", "Address blocked at the telephone server")],
  "talk.account_taken_over": [
    real(
      "The extension had its number as its password.",
      "New password for the extension",
      "International calls barred",
    ),
  ],
  "talk.toll_fraud": [
    real("36 calls until the morning.", "Calls ended", "International calls barred", "Provider informed"),
  ],
  "talk.sip_scan": [closed("benign", "An internet-wide scanner. No registration succeeded.")],
};
/** For rules that rarely fire in the demo. */
const OTHER_CLOSINGS: readonly ClosingWords[] = [
  closed("benign", "Checked with the person in charge; nothing to do."),
  closed("false_positive", "Nothing of this kind happened. The rule needs an exception."),
];

const NOTES = [
  "Looking at it now.",
  "Same pattern as last month. Checking the flows first.",
  "Asked the person by telephone; waiting for the call back.",
  "Nothing else from this address in the past week.",
  "Camera recordings are saved for 30 days.",
];

/** The steps that people take on a new alert, in chronological order. Those after the end of the demo are for the caller to drop. */
export function handlingOf(alert: Alert, team: readonly string[], random: Random): HandlingStep[] {
  const { taken, resolved, takenAfter, resolvedAfter, waitsForMorning } = HABITS[alert.severity];
  const actor = random.pick(team);
  const colleague = random.pick(team.filter((name) => name !== actor));
  // Drawn in any case, so that one decision does not change all that follow.
  const [isTaken, isResolved] = [random.next() < taken, random.next() < resolved];
  const delay = ([least, most]: readonly [number, number]) => random.between(least * 60, most * 60) * 1000;
  const arrival = waitsForMorning ? nextWorkingTime(alert.createdAt, random) : alert.createdAt;
  const takenAt = arrival + delay(takenAfter);
  const closedAt = takenAt + delay(resolvedAfter);
  if (alert.rule.name === IN_PROGRESS) return investigation(alert.createdAt, team);
  if (!isTaken || UNTOUCHED_RULES.has(alert.rule.name)) return [];

  const assignee = random.onceIn(3) ? colleague : actor;
  const note = random.onceIn(2) ? random.pick(NOTES) : undefined;
  const steps: HandlingStep[] = [
    { atMs: takenAt, actor, transition: { action: "acknowledge", assignee, comment: note } },
  ];
  if (random.onceIn(6)) {
    const handOver = {
      action: "acknowledge",
      assignee: colleague,
      comment: "My shift is over; please take it.",
    } as const;
    steps.push({ atMs: takenAt + (closedAt - takenAt) / 2, actor, transition: handOver });
  }
  if (!isResolved) return steps;
  const closing = random.pick(CLOSINGS[alert.rule.name] ?? OTHER_CLOSINGS);
  steps.push({ atMs: closedAt, actor: assignee, transition: { action: "resolve", ...closing } });
  if (random.onceIn(14)) {
    const again = closedAt + delay([20, 240]);
    const question = "It is back. I do not think that this was harmless.";
    steps.push(
      { atMs: again, actor: colleague, transition: { action: "reopen", comment: question } },
      { atMs: again + 5 * MINUTE_MS, actor: colleague, transition: { action: "acknowledge", assignee: colleague } },
    );
  }
  return steps.toSorted((a, b) => a.atMs - b.atMs);
}

/** Two people on the intruder's case, which stays acknowledged. */
function investigation(fromMs: number, team: readonly string[]): HandlingStep[] {
  const [first, second] = [team[0]!, team[1]!];
  const at = (minutes: number) => fromMs + minutes * MINUTE_MS;
  const port = "`switch-2` port 17 is off. The device is in the rack room, behind the printer.";
  const recordings =
    "Recordings of Loading dock and Server room are saved. Two people came in on **one** badge; the second wears a courier's jacket.";
  return [
    {
      atMs: at(6),
      actor: first,
      transition: { action: "acknowledge", assignee: first, comment: "On my way to the dock." },
    },
    { atMs: at(21), actor: first, transition: { action: "comment", comment: port } },
    { atMs: at(48), actor: second, transition: { action: "comment", comment: recordings } },
    { atMs: at(55), actor: first, transition: { action: "acknowledge", assignee: second } },
  ];
}

/** The time itself during working hours, else some minutes into the next ones. */
function nextWorkingTime(ms: number, random: Random): number {
  const hour = (ms - startOfDay(ms)) / HOUR_MS;
  if (hour >= 7 && hour < 18) return ms;
  return startOfDay(ms) + (hour < 7 ? 0 : DAY_MS) + 7 * HOUR_MS + random.between(0, 45) * MINUTE_MS;
}
