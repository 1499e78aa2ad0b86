import { UNTOUCHED, SYSTEM, type Alert, type TimelineEntry } from "../model/alert.ts";
import { addEntities, addGroupEntities, NO_ENTITIES, type AlertEntities } from "../model/alert-entity.ts";
import type { Entity } from "../model/entity.ts";
import { SEVERITIES, type Severity } from "../model/event.ts";
import { displacedEvents, isSameIncident, newestEvents, type EventMark, type Finding } from "../model/finding.ts";
import type { IdentifiedDefinition } from "../model/rule-definition.ts";
import type { AlertChanges, UnresolvedQuery } from "../store/ports/alert-store.ts";
import type { AlertChange } from "./alert-notifications.ts";

// Deduplication: a finding close in time to an unresolved alert of the same rule and key is added to that alert.

interface FindingSpan {
  readonly firstEventMs: number;
  readonly lastEventMs: number;
}

/** Queries for the stored alerts, by index in `findings`. Findings close to an earlier one in the list need none. */
export function unresolvedQueries(findings: readonly Finding[]): Map<number, UnresolvedQuery> {
  const spans = new Map<string, FindingSpan[]>();
  const queries = new Map<number, UnresolvedQuery>();
  for (const [i, finding] of findings.entries()) {
    const key = keyOf(finding.rule.id, finding.dedupKey);
    const known = spans.get(key) ?? [];
    spans.set(key, known);
    const near = known.findIndex((span) => isSameIncident(span, finding, finding.dedupMs));
    if (near >= 0) known[near] = union(known[near]!, finding);
    else {
      known.push(finding);
      queries.set(i, unresolvedQueryFor(finding));
    }
  }
  return queries;
}

/** The query for the unresolved alert that a finding belongs to. */
export function unresolvedQueryFor({ rule, dedupKey, dedupMs, firstEventMs, lastEventMs }: Finding): UnresolvedQuery {
  return {
    ruleId: rule.id,
    dedupKey,
    endsAfterMs: firstEventMs - dedupMs,
    beginsBeforeMs: lastEventMs + dedupMs,
  };
}

export interface CreationContext {
  readonly at: number;
  newAlertId(): string;
  newEntryId(): string;
  /** The entities that an event of a finding names. */
  entitiesOf(eventId: string): readonly Entity[];
}

interface AlertUpdate {
  alert: Alert;
  readonly isNew: boolean;
  readonly finding: Finding;
  added: number;
  /** Time of the last event before the absence that was added. */
  silentSince?: number;
  /** The new severity, if it rose after the alert was created. */
  raisedTo: Severity | undefined;
  /** Events that are no longer among the newest. */
  readonly displaced: EventMark[];
}

export interface DedupResult {
  readonly writes: Required<Pick<AlertChanges, "alerts" | "timeline" | "definitions">>;
  readonly created: readonly { readonly alert: Alert; readonly finding: Finding }[];
  /** Changes that notify. Later events that join an existing alert do not. */
  readonly changes: readonly AlertChange[];
}

/** `unresolved` holds the stored alerts by the indexes that `unresolvedQueries` returned. */
export function deduplicateFindings(
  findings: readonly Finding[],
  unresolved: ReadonlyMap<number, Alert>,
  context: CreationContext,
): DedupResult {
  const changed = new Map<string, AlertUpdate[]>();
  for (const [i, finding] of findings.entries()) {
    const key = keyOf(finding.rule.id, finding.dedupKey);
    const known = changed.get(key) ?? [];
    changed.set(key, known);
    const near = known
      .filter(({ alert }) => isSameIncident(spanOf(alert), finding, finding.dedupMs))
      .reduce<AlertUpdate | undefined>((a, b) => (a && a.alert.lastEventAt >= b.alert.lastEventAt ? a : b), undefined);
    const stored = near ? undefined : unresolved.get(i);
    if (near) addFinding(near, finding, context);
    else if (stored) {
      const alert = { ...stored, version: stored.version + 1 };
      const entry: AlertUpdate = { alert, isNew: false, finding, added: 0, raisedTo: undefined, displaced: [] };
      addFinding(entry, finding, context);
      known.push(entry);
    } else {
      const alert = newAlert(finding, context);
      known.push({ alert, isNew: true, finding, added: 0, raisedTo: undefined, displaced: [] });
    }
  }
  const all = [...changed.values()].flat();
  return {
    writes: {
      alerts: all.map(({ alert, displaced }) =>
        displaced.length === 0 ? alert : { ...alert, olderEvents: displaced },
      ),
      timeline: all.flatMap((each) =>
        timelineEntriesFor(each, context).map((entry) => ({ alertId: each.alert.id, entry })),
      ),
      definitions: definitionsOf(findings),
    },
    created: all.filter(({ isNew }) => isNew).map(({ alert, finding }) => ({ alert, finding })),
    changes: all.flatMap(({ alert, isNew, raisedTo }): AlertChange[] => {
      if (isNew) return [{ alert, reason: "created" }];
      return raisedTo === undefined ? [] : [{ alert, reason: "severity_raised" }];
    }),
  };
}

function addFinding(changed: AlertUpdate, finding: Finding, context: CreationContext): void {
  const { alert } = changed;
  const span = union(spanOf(alert), finding);
  // Findings of different groups may share events. Detection excludes the duplicates within one key. They remain possible in
  // the overflow alert of a rule, which takes all groups, and for events older than detection remembers.
  const known = new Set(alert.relatedEvents.map(({ id }) => id));
  const events = finding.events.filter(({ id }) => !known.has(id));
  const count = finding.eventCount - (finding.events.length - events.length);
  changed.added += count;
  if (finding.eventCount === 0) changed.silentSince = finding.lastEventMs;
  const isWorse = SEVERITIES.indexOf(finding.severity) < SEVERITIES.indexOf(alert.severity);
  if (isWorse && !changed.isNew) changed.raisedTo = finding.severity;
  changed.displaced.push(...displacedEvents(alert.relatedEvents, events));
  changed.alert = {
    ...alert,
    severity: isWorse ? finding.severity : alert.severity,
    channels: finding.rule.channels,
    definitionId: finding.rule.definition?.id,
    eventCount: alert.eventCount + count,
    firstEventAt: span.firstEventMs,
    lastEventAt: span.lastEventMs,
    relatedEvents: newestEvents(alert.relatedEvents, events),
    // Older records get all of theirs at once, later.
    ...(alert.entities && withEntities({ ...alert, entities: alert.entities }, finding, events, context)),
  };
}

function newAlert(finding: Finding, context: CreationContext): Alert {
  const { rule } = finding;
  return {
    ...UNTOUCHED,
    id: context.newAlertId(),
    rule: { id: rule.id, name: rule.name, description: rule.description, tags: rule.tags },
    foldKey: finding.dedupKey,
    group: finding.group,
    title: finding.title,
    description: finding.description,
    severity: finding.severity,
    source: finding.source,
    eventCount: finding.eventCount,
    firstEventAt: finding.firstEventMs,
    lastEventAt: finding.lastEventMs,
    createdAt: context.at,
    enrichment: finding.enrichment,
    channels: rule.channels,
    definitionId: rule.definition?.id,
    relatedEvents: newestEvents([], finding.events),
    ...withEntities(NO_ENTITIES, finding, finding.events, context),
  };
}

function withEntities(
  { entities, entitiesCut }: AlertEntities,
  { eventCount, group }: Finding,
  added: readonly EventMark[],
  context: CreationContext,
): AlertEntities {
  const known = { entities, entitiesCut };
  if (eventCount === 0) return addGroupEntities(known, group);
  return addEntities(
    known,
    added.map(({ id }) => context.entitiesOf(id)),
  );
}

function timelineEntriesFor(
  { isNew, finding, added, silentSince, raisedTo }: AlertUpdate,
  { at, newEntryId }: CreationContext,
): TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  if (isNew) entries.push({ id: newEntryId(), at, actor: SYSTEM, kind: "created", count: finding.eventCount });
  const hasNews = silentSince !== undefined || raisedTo !== undefined;
  if (added > 0 || (!isNew && hasNews)) {
    const raised = raisedTo === undefined ? {} : { severity: raisedTo };
    const silence = silentSince === undefined ? {} : { silentSince };
    entries.push({ id: newEntryId(), at, actor: SYSTEM, kind: "events_added", count: added, ...silence, ...raised });
  }
  return entries;
}

/** Each definition once: findings of one rule share it. */
function definitionsOf(findings: readonly Finding[]): IdentifiedDefinition[] {
  const definitions = new Map<string, IdentifiedDefinition>();
  for (const { rule } of findings) if (rule.definition) definitions.set(rule.definition.id, rule.definition);
  return [...definitions.values()];
}

function spanOf(alert: Alert): FindingSpan {
  return { firstEventMs: alert.firstEventAt, lastEventMs: alert.lastEventAt };
}

function union(a: FindingSpan, b: FindingSpan): FindingSpan {
  return {
    firstEventMs: Math.min(a.firstEventMs, b.firstEventMs),
    lastEventMs: Math.max(a.lastEventMs, b.lastEventMs),
  };
}

function keyOf(ruleId: string, dedupKey: string): string {
  return `${ruleId} ${dedupKey}`;
}
