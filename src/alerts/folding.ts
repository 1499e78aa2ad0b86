import { UNTOUCHED, SYSTEM, type Alert, type TimelineEntry } from "../model/alert.ts";
import { SEVERITIES, type Severity } from "../model/event.ts";
import { isSameAttack, newestEvents, type Finding } from "../model/finding.ts";
import type { AlertChanges, UnresolvedQuestion } from "../store/store.ts";
import type { Happening } from "./telling.ts";

// One attack is one alert: findings that lie close to an unresolved alert of their rule and key are added to it.

interface Span {
  readonly firstEventMs: number;
  readonly lastEventMs: number;
}

/** The findings that no other one before them lies close to: what must be asked of the store, by place in the list. */
export function questionsOf(findings: readonly Finding[]): Map<number, UnresolvedQuestion> {
  const spans = new Map<string, Span[]>();
  const questions = new Map<number, UnresolvedQuestion>();
  for (const [i, finding] of findings.entries()) {
    const key = keyOf(finding.rule.id, finding.foldKey);
    const known = spans.get(key) ?? [];
    spans.set(key, known);
    const near = known.findIndex((span) => isSameAttack(span, finding, finding.foldMs));
    if (near >= 0) known[near] = union(known[near]!, finding);
    else {
      known.push(finding);
      questions.set(i, questionOf(finding));
    }
  }
  return questions;
}

/** Asks for the alert that it belongs to. */
export function questionOf({ rule, foldKey, foldMs, firstEventMs, lastEventMs }: Finding): UnresolvedQuestion {
  return {
    ruleId: rule.id,
    foldKey,
    endsAfterMs: firstEventMs - foldMs,
    beginsBeforeMs: lastEventMs + foldMs,
  };
}

export interface Maker {
  readonly at: number;
  newAlertId(): string;
  newEntryId(): string;
}

interface Touched {
  alert: Alert;
  readonly isNew: boolean;
  readonly finding: Finding;
  added: number;
  /** The last event before an absence that was added. */
  silentSince?: number;
  /** What its severity was raised to, after it was made. */
  raisedTo: Severity | undefined;
}

export interface Folded {
  readonly changes: Pick<AlertChanges, "alerts" | "timeline">;
  readonly created: readonly { readonly alert: Alert; readonly finding: Finding }[];
  /** What people are told of; more events of what they know are not. */
  readonly happenings: readonly Happening[];
}

/** `found` are the answers to the questions, by the same places. */
export function foldFindings(findings: readonly Finding[], found: ReadonlyMap<number, Alert>, maker: Maker): Folded {
  const touched = new Map<string, Touched[]>();
  for (const [i, finding] of findings.entries()) {
    const key = keyOf(finding.rule.id, finding.foldKey);
    const known = touched.get(key) ?? [];
    touched.set(key, known);
    const near = known
      .filter(({ alert }) => isSameAttack(spanOf(alert), finding, finding.foldMs))
      .reduce<Touched | undefined>((a, b) => (a && a.alert.lastEventAt >= b.alert.lastEventAt ? a : b), undefined);
    const stored = near ? undefined : found.get(i);
    if (near) add(near, finding);
    else if (stored) {
      const alert = { ...stored, version: stored.version + 1 };
      const entry: Touched = { alert, isNew: false, finding, added: 0, raisedTo: undefined };
      add(entry, finding);
      known.push(entry);
    } else known.push({ alert: newAlert(finding, maker), isNew: true, finding, added: 0, raisedTo: undefined });
  }
  const all = [...touched.values()].flat();
  return {
    changes: {
      alerts: all.map(({ alert }) => alert),
      timeline: all.flatMap((each) => entriesOf(each, maker).map((entry) => ({ alertId: each.alert.id, entry }))),
    },
    created: all.filter(({ isNew }) => isNew).map(({ alert, finding }) => ({ alert, finding })),
    happenings: all.flatMap(({ alert, isNew, raisedTo }): Happening[] => {
      if (isNew) return [{ alert, reason: "created" }];
      return raisedTo === undefined ? [] : [{ alert, reason: "severity_raised" }];
    }),
  };
}

function add(touched: Touched, finding: Finding): void {
  const { alert } = touched;
  const span = union(spanOf(alert), finding);
  // Findings of different groups may have events in common. Detection tells where their keys are the same; here it is the
  // alert beyond the rule's limit, which takes all groups, or what came before detection can remember.
  const known = new Set(alert.relatedEvents.map(({ id }) => id));
  const events = finding.events.filter(({ id }) => !known.has(id));
  const count = finding.eventCount - (finding.events.length - events.length);
  touched.added += count;
  if (finding.eventCount === 0) touched.silentSince = finding.lastEventMs;
  const isWorse = SEVERITIES.indexOf(finding.severity) < SEVERITIES.indexOf(alert.severity);
  if (isWorse && !touched.isNew) touched.raisedTo = finding.severity;
  touched.alert = {
    ...alert,
    severity: isWorse ? finding.severity : alert.severity,
    channels: finding.rule.channels,
    eventCount: alert.eventCount + count,
    firstEventAt: span.firstEventMs,
    lastEventAt: span.lastEventMs,
    relatedEvents: newestEvents(alert.relatedEvents, events),
  };
}

function newAlert(finding: Finding, maker: Maker): Alert {
  const { rule } = finding;
  return {
    ...UNTOUCHED,
    id: maker.newAlertId(),
    rule: { id: rule.id, name: rule.name, description: rule.description, tags: rule.tags },
    foldKey: finding.foldKey,
    group: finding.group,
    title: finding.title,
    description: finding.description,
    severity: finding.severity,
    source: finding.source,
    eventCount: finding.eventCount,
    firstEventAt: finding.firstEventMs,
    lastEventAt: finding.lastEventMs,
    createdAt: maker.at,
    enrichment: finding.enrichment,
    channels: rule.channels,
    relatedEvents: newestEvents([], finding.events),
  };
}

function entriesOf(
  { isNew, finding, added, silentSince, raisedTo }: Touched,
  { at, newEntryId }: Maker,
): TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  if (isNew) entries.push({ id: newEntryId(), at, actor: SYSTEM, kind: "created", count: finding.eventCount });
  const isToldOf = silentSince !== undefined || raisedTo !== undefined;
  if (added > 0 || (!isNew && isToldOf)) {
    const raised = raisedTo === undefined ? {} : { severity: raisedTo };
    const silence = silentSince === undefined ? {} : { silentSince };
    entries.push({ id: newEntryId(), at, actor: SYSTEM, kind: "events_added", count: added, ...silence, ...raised });
  }
  return entries;
}

function spanOf(alert: Alert): Span {
  return { firstEventMs: alert.firstEventAt, lastEventMs: alert.lastEventAt };
}

function union(a: Span, b: Span): Span {
  return {
    firstEventMs: Math.min(a.firstEventMs, b.firstEventMs),
    lastEventMs: Math.max(a.lastEventMs, b.lastEventMs),
  };
}

function keyOf(ruleId: string, foldKey: string): string {
  return `${ruleId} ${foldKey}`;
}
