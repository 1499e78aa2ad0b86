import { cut, lines, oneLine } from "../lib/text.ts";
import { formatDuration } from "../lib/duration.ts";
import { SUMMARY_CHARACTERS_MAX } from "../model/alert.ts";
import type { Severity } from "../model/event.ts";
import { publicAddresses, type AlertEvidence } from "./evidence.ts";

// The built-in scorer: a sum of points, each with its reason. docs/analysis.md has the same table.

export interface Judgement {
  readonly summary: string;
  readonly threat_score: number;
  readonly reasoning: readonly string[];
  readonly suggested_actions: readonly string[];
}

const SEVERITY_POINTS: Readonly<Record<Severity, number>> = { critical: 50, high: 38, medium: 24, low: 12, info: 4 };
const SEVERITY_POINTS_MAX = 50;
const REPUTATION_POINTS_MAX = 20;
const LISTED_POINTS = 12;
const SPREAD_POINTS_MAX = 10;
const NEW_RULE_POINTS = 10;
const NEW_GROUP_POINTS = 5;
const HISTORY_POINTS_MAX = 10;
const HISTORY_POINTS_MIN = -20;
/** Fewer resolutions are not significant. */
const RESOLUTIONS_MIN = 3;
const BAD_REPUTATION = 50;
const ACTION_CHARACTERS_MAX = 500;

interface ScorePart {
  readonly points: number;
  readonly reason: string;
}

export function scoreAlert(evidence: AlertEvidence): Judgement {
  const parts = [severity, reputation, spread, novelty, history].map((part) => part(evidence));
  const sum = parts.reduce((total, { points }) => total + points, 0);
  const score = Math.min(100, Math.max(0, Math.round(sum)));
  return {
    summary: summaryOf(evidence, score),
    threat_score: score,
    reasoning: parts.map(({ points, reason }) => `${points >= 0 ? "+" : ""}${points}: ${reason}`),
    suggested_actions: actionsOf(evidence),
  };
}

function severity({ alert }: AlertEvidence): ScorePart {
  const points = SEVERITY_POINTS[alert.severity];
  return { points, reason: `severity ${alert.severity} (up to ${SEVERITY_POINTS_MAX})` };
}

function reputation({ abuseScore, lists }: AlertEvidence): ScorePart {
  const listed = lists.length > 0 ? LISTED_POINTS : 0;
  const reported = Math.round(((abuseScore ?? 0) / 100) * REPUTATION_POINTS_MAX);
  const points = Math.min(REPUTATION_POINTS_MAX, listed + reported);
  const said = [
    abuseScore === null ? "no abuse score is known" : `an address has an abuse score of ${abuseScore} of 100`,
    ...(lists.length > 0 ? [`on the list ${lists.map((name) => oneLine(name, 64)).join(", ")}`] : []),
  ];
  return { points, reason: `reputation: ${said.join("; ")} (up to ${REPUTATION_POINTS_MAX})` };
}

function spread({ senders, targets, sources }: AlertEvidence): ScorePart {
  const doublings = (count: number) => (count < 2 ? 0 : Math.min(4, Math.floor(Math.log2(count))));
  const points = Math.min(SPREAD_POINTS_MAX, doublings(senders) + doublings(targets) + (sources > 1 ? 2 : 0));
  const counts = [
    counted(senders, "sender"),
    counted(targets, "target"),
    `${counted(sources, "source")} of events`,
  ].join(", ");
  return { points, reason: `spread: ${counts} in the newest events (up to ${SPREAD_POINTS_MAX})` };
}

function novelty({ alert, noveltyDays, earlierOfRule, earlierOfGroup, earlierSearched }: AlertEvidence): ScorePart {
  if (earlierOfRule === 0) {
    return { points: NEW_RULE_POINTS, reason: `novelty: the rule's first alert in ${noveltyDays} days` };
  }
  if (alert.group && earlierOfGroup === 0) {
    const value = oneLine(alert.group.value, 100);
    if (earlierSearched < earlierOfRule) {
      const among = `the last ${earlierSearched} of ${earlierOfRule} alerts of the rule in the ${noveltyDays} days before`;
      return { points: 0, reason: `novelty: ${value} is not among ${among}; the others were not searched` };
    }
    return { points: NEW_GROUP_POINTS, reason: `novelty: the rule's first alert for ${value} in ${noveltyDays} days` };
  }
  return {
    points: 0,
    reason: `novelty: ${counted(earlierOfRule, "alert")} of the rule in the ${noveltyDays} days before`,
  };
}

function history({ resolutions }: AlertEvidence): ScorePart {
  const { true_positive: right, false_positive: wrong, benign, duplicate } = resolutions;
  const judged = right + wrong + benign;
  if (judged < RESOLUTIONS_MIN) {
    return { points: 0, reason: `history: ${counted(judged, "alert")} of the rule judged, too few to tell` };
  }
  const points = Math.round((HISTORY_POINTS_MAX * right + HISTORY_POINTS_MIN * (wrong + benign)) / judged);
  const counts = `${right} true, ${wrong} false, ${benign} benign, ${duplicate} duplicates`;
  return { points, reason: `history: earlier alerts of the rule were resolved as ${counts}` };
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function summaryOf({ alert }: AlertEvidence, score: number): string {
  const lasted = formatDuration(alert.lastEventAt - alert.firstEventAt);
  const events = alert.eventCount === 1 ? "1 event" : `${alert.eventCount} events within ${lasted}`;
  const text = `${oneLine(alert.title, 300)}: ${events}, rule ${oneLine(alert.rule.name, 200)}. Threat score ${score} of 100.`;
  return cut(text, SUMMARY_CHARACTERS_MAX);
}

function actionsOf(evidence: AlertEvidence): string[] {
  const { alert, abuseScore, lists, resolutions, targets } = evidence;
  const actions: string[] = [];
  // The second paragraph of a rule's description is advice.
  const advice = alert.rule.description.split(/\n\s*\n/)[1];
  if (advice)
    actions.push(cut(oneLine(lines(advice, ACTION_CHARACTERS_MAX), ACTION_CHARACTERS_MAX), ACTION_CHARACTERS_MAX));
  const [address] = publicAddresses(evidence);
  if (address && ((abuseScore ?? 0) >= BAD_REPUTATION || lists.length > 0)) {
    actions.push(`Block ${address} at the gateway unless it has business here.`);
  }
  if (targets > 1) actions.push("Check each target: one that was reached is worse than many that were not.");
  if (resolutions.false_positive > resolutions.true_positive && resolutions.false_positive >= RESOLUTIONS_MIN) {
    actions.push("Most alerts of this rule were false: consider an exception for what keeps matching.");
  }
  if (actions.length === 0) actions.push("Read the newest events and decide whether somebody can explain them.");
  return actions;
}
