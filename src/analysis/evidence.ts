import { parseExact } from "../lib/exact-json.ts";
import { parseAddress } from "../lib/ip.ts";
import { addressScope } from "../lib/address-scope.ts";
import { DAY_MS } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import { RESOLUTIONS } from "../model/alert-state.ts";
import type { Event, JsonObject, JsonValue } from "../model/event.ts";
import type { Store } from "../store/ports/store.ts";

// Evidence about an alert, gathered once for the model and the scorer.

/** The newest events are enough to characterise the alert. */
const EVENTS_MAX = 20;
const NOVELTY_DAYS = 30;
const EARLIER_ALERTS_MAX = 100;

export interface AlertEvidence {
  readonly alert: Alert;
  /** Newest first. */
  readonly events: readonly Event[];
  /** The highest abuse score of an address in it; null if none is known. */
  readonly abuseScore: number | null;
  /** Names of the lists that match it. */
  readonly lists: readonly string[];
  /** Distinct senders, targets and sources of its events. */
  readonly senders: number;
  readonly targets: number;
  readonly sources: number;
  readonly noveltyDays: number;
  /** Alerts of the rule in the days before it, and how many of them had the same group. */
  readonly earlierOfRule: number;
  readonly earlierOfGroup: number;
  /** How many of the rule's newest alerts were searched for the group. */
  readonly earlierSearched: number;
  readonly resolutions: Readonly<Record<(typeof RESOLUTIONS)[number], number>>;
}

export async function gatherEvidence(store: Pick<Store, "alerts" | "events">, alert: Alert): Promise<AlertEvidence> {
  const ids = alert.relatedEvents.slice(0, EVENTS_MAX);
  const earlier = {
    ruleName: [alert.rule.name],
    fromMs: alert.createdAt - NOVELTY_DAYS * DAY_MS,
    toMs: alert.createdAt,
  };
  const page = { mode: "page", page: 1, size: EARLIER_ALERTS_MAX } as const;
  const [texts, before, resolutions] = await Promise.all([
    Promise.all(ids.map(({ id }) => store.events.get(id))),
    store.alerts.list(earlier, page, "created_at", true),
    store.alerts.resolutions(alert.rule.name),
  ]);
  // Retention may have removed some events.
  const events = texts.filter((text) => text !== undefined).map((text) => parseExact(text) as Event);
  const enrichments = [alert.enrichment, ...events.map(({ enrichment }) => enrichment)];
  const raws = events.map(({ raw }) => raw);
  return {
    alert,
    events,
    abuseScore: worst(enrichments.map(abuseScoreOf)),
    lists: [...new Set(enrichments.flatMap(listsOf))],
    senders: differentIn(raws, ["src_ip", "from"]),
    targets: differentIn(raws, ["dst_ip", "user", "door", "camera", "device", "to"]),
    sources: new Set(events.map(({ source }) => source)).size,
    noveltyDays: NOVELTY_DAYS,
    earlierOfRule: before.total,
    earlierOfGroup: before.items.filter(({ group }) => group?.value === alert.group?.value).length,
    earlierSearched: before.items.length,
    resolutions,
  };
}

/** Addresses in its group and events that are not private. */
export function publicAddresses({ alert, events }: AlertEvidence): string[] {
  const values = [alert.group?.value, ...events.map(({ raw }) => raw["src_ip"])];
  const addresses = values.filter((value) => typeof value === "string" && parseAddress(value) !== undefined);
  return [...new Set(addresses as string[])].filter((address) => addressScope(address) !== "private");
}

function abuseScoreOf(enrichment: JsonObject): number | null {
  const score = asObject(enrichment["abuse_ipdb"])?.["score"];
  return typeof score === "number" && score >= 0 && score <= 100 ? score : null;
}

function listsOf(enrichment: JsonObject): string[] {
  const lists = enrichment["lists"];
  return Array.isArray(lists) ? lists.filter((name) => typeof name === "string") : [];
}

function asObject(value: JsonValue | undefined): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
}

function worst(scores: readonly (number | null)[]): number | null {
  const known = scores.filter((score) => score !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** The number of distinct values of the field that has the most. */
function differentIn(raws: readonly JsonObject[], fields: readonly string[]): number {
  return Math.max(0, ...fields.map((field) => new Set(raws.map((raw) => raw[field]).filter(isScalar)).size));
}

function isScalar(value: JsonValue | undefined): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "bigint";
}
