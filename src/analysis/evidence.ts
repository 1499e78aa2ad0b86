import { parseExact } from "../lib/exact-json.ts";
import { parseAddress } from "../lib/ip.ts";
import { reachOf } from "../lib/reach.ts";
import { DAY_MS } from "../lib/time.ts";
import type { Alert } from "../model/alert.ts";
import { RESOLUTIONS } from "../model/alert-state.ts";
import type { Event, JsonObject, JsonValue } from "../model/event.ts";
import type { Store } from "../store/store.ts";

// What is known about an alert, gathered once for whoever judges it.

/** The newest ones are enough to see what kind of thing it is. */
const EVENTS_MAX = 20;
const NOVELTY_DAYS = 30;
const EARLIER_ALERTS_MAX = 100;

export interface Evidence {
  readonly alert: Alert;
  /** Newest first. */
  readonly events: readonly Event[];
  /** The worst that is said of an address in it; null where nothing is known. */
  readonly abuseScore: number | null;
  /** Names of own lists that something in it is on. */
  readonly lists: readonly string[];
  /** How many different ones its events have. */
  readonly senders: number;
  readonly targets: number;
  readonly sources: number;
  readonly noveltyDays: number;
  /** Alerts of the rule in those days before it, and how many of them were of the same group. */
  readonly earlierOfRule: number;
  readonly earlierOfGroup: number;
  /** How many of those of the rule, the newest, were searched for the group. */
  readonly earlierSearched: number;
  readonly resolutions: Readonly<Record<(typeof RESOLUTIONS)[number], number>>;
}

export async function gatherEvidence(store: Pick<Store, "alerts" | "events">, alert: Alert): Promise<Evidence> {
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
  // Events that retention has removed are missing.
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

/** Addresses in its group and its events that are not of the site itself. */
export function outsideAddresses({ alert, events }: Evidence): string[] {
  const values = [alert.group?.value, ...events.map(({ raw }) => raw["src_ip"])];
  const addresses = values.filter((value) => typeof value === "string" && parseAddress(value) !== undefined);
  return [...new Set(addresses as string[])].filter((address) => reachOf(address) !== "private");
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

/** Of the fields, the one with the most different values. */
function differentIn(raws: readonly JsonObject[], fields: readonly string[]): number {
  return Math.max(0, ...fields.map((field) => new Set(raws.map((raw) => raw[field]).filter(isScalar)).size));
}

function isScalar(value: JsonValue | undefined): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "bigint";
}
