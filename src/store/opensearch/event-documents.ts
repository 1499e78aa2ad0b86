import { createHash } from "node:crypto";
import { DAY_MS, startOfDay } from "../../lib/time.ts";
import { ENTITY_KINDS, entitiesOf, type Entity } from "../../model/entity.ts";
import { SEVERITIES, type Event } from "../../model/event.ts";
import { spacedEventWords } from "../search/indexed-words.ts";
import { PATH_END, termsOf } from "./event-terms.ts";
import type { IndexTemplate } from "./index-template.ts";

// Events as documents. The event itself is the text `text`, as every read returns it; all other fields are made from it, and
// are not stored a second time.

const TEMPLATE_VERSION = 1;
/** Longer than any word of a search, so that a word of the greatest length differs from a longer one. */
const WORD_CHARACTERS_MAX = 64;
/** Of regular expressions that are made from conditions. */
export const REGEXP_CHARACTERS_MAX = 10_000;
/** Values in one `terms` query. */
export const TERMS_PER_QUERY_MAX = 60_000;
/** A longer token is represented by its digest. */
const TOKEN_CHARACTERS_MAX = 250;

export const FLAG_CUT = "cut";
export const FLAG_PARTIAL = "partial";

export interface EventIndexOptions {
  /** `<prefix>-events` */
  readonly name: string;
  readonly shards: number;
  readonly replicas: number;
  /** How long a stored event waits until reads see it. */
  readonly refreshMs: number;
}

const KEYWORD = { type: "keyword" };
const FOUND_ONLY = { type: "keyword", doc_values: false };
const SUMMED_ONLY = { type: "integer", index: false };
const MILLISECONDS = { type: "date", format: "epoch_millis" };

export function eventTemplate({ name, shards, replicas, refreshMs }: EventIndexOptions): IndexTemplate {
  return {
    name,
    version: TEMPLATE_VERSION,
    settings: {
      number_of_shards: shards,
      number_of_replicas: replicas,
      refresh_interval: `${refreshMs}ms`,
      max_regex_length: REGEXP_CHARACTERS_MAX,
      // Parts of a shard that are searched at the same time return only their own most frequent values.
      "search.concurrent_segment_search.mode": "none",
      codec: "best_compression",
    },
    mappings: {
      dynamic: false,
      _source: { includes: ["text", "first_seq", "token", "arrived"] },
      properties: {
        id: KEYWORD,
        type: KEYWORD,
        source: KEYWORD,
        class: KEYWORD,
        severity: KEYWORD,
        // 0: info. Sorts.
        severity_rank: { type: "byte", index: false },
        timestamp: MILLISECONDS,
        // The same in two parts, whose sums are exact.
        day: SUMMED_ONLY,
        day_ms: SUMMED_ONLY,
        arrived: MILLISECONDS,
        terms: KEYWORD,
        words: FOUND_ONLY,
        entities: KEYWORD,
        flags: FOUND_ONLY,
        token: FOUND_ONLY,
        // The token of a batch, and the event's number in it.
        token_batch: FOUND_ONLY,
        token_number: SUMMED_ONLY,
        // Of an amended event: its first sequence number, by which it is read in the order of arrival.
        first_seq: { type: "long" },
      },
    },
  };
}

/** What OpenSearch returns of a document. */
export interface EventSource {
  readonly text: string;
  readonly first_seq?: number;
  readonly token?: string;
  readonly arrived: number;
}

export interface EventDocument {
  readonly text: string;
  /** What the text says. */
  readonly event: Event;
  readonly arrivedMs: number;
  readonly token?: string | undefined;
  readonly firstSeq?: number | undefined;
}

/** The JSON of a document. `isBare`: without what OpenSearch refused; every query then tests the event itself. */
export function documentText({ text, event, arrivedMs, token, firstSeq }: EventDocument, isBare = false): string {
  const ms = Date.parse(event.timestamp);
  const day = startOfDay(ms);
  const { terms, hasCut, isPartial } = isBare ? NO_TERMS : termsOf(event);
  const batch = token === undefined ? null : BATCH_TOKEN.exec(token);
  return JSON.stringify({
    text,
    id: event.id,
    type: event.type,
    source: event.source,
    class: event.class,
    severity: event.severity,
    severity_rank: severityRank(event.severity),
    timestamp: ms,
    day: day / DAY_MS,
    day_ms: ms - day,
    arrived: arrivedMs,
    terms,
    words: isBare ? [] : wordsOf(event, ms),
    entities: isBare ? [] : entitiesOf(event.raw).map(entityTerm),
    flags: [...(hasCut ? [FLAG_CUT] : []), ...(isPartial ? [FLAG_PARTIAL] : [])],
    ...(token !== undefined && { token: tokenTerm(token) }),
    ...(batch && { token_batch: tokenTerm(batch[1]!), token_number: Number(batch[2]) }),
    ...(firstSeq !== undefined && { first_seq: firstSeq }),
  });
}
const NO_TERMS = { terms: [], hasCut: false, isPartial: true };
const BATCH_TOKEN = /^(.*) (\d{1,9})$/s;

export function severityRank(severity: Event["severity"]): number {
  return SEVERITIES.length - 1 - SEVERITIES.indexOf(severity);
}

export function tokenTerm(token: string): string {
  if (token.length <= TOKEN_CHARACTERS_MAX) return token;
  return `sha256 ${createHash("sha256").update(token).digest("hex")}`;
}

function wordsOf(event: Event, ms: number): string[] {
  const words = new Set<string>();
  for (const word of spacedEventWords(event, ms).split(" "))
    if (word !== "") words.add(word.slice(0, WORD_CHARACTERS_MAX).toWellFormed());
  return [...words];
}

/** The kind, the value in lower case, by which it is found, and the value. */
function entityTerm({ kind, value }: Entity): string {
  return `${ENTITY_KINDS.indexOf(kind)}${value.toLowerCase()}${PATH_END}${value}`.toWellFormed();
}

export function entityOfTerm(term: string): Entity {
  const rest = term.slice(1);
  // Lower case may have another length, and either may contain the separator: the ends of both are at the same distance from it.
  for (let at = rest.indexOf(PATH_END); at >= 0; at = rest.indexOf(PATH_END, at + 1)) {
    const value = rest.slice(at + 1);
    if (value.toLowerCase().toWellFormed() === rest.slice(0, at))
      return { kind: ENTITY_KINDS[Number(term[0])]!, value };
  }
  throw new Error("a stored entity is damaged");
}
