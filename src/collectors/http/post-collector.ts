import { timingSafeEqual } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "prom-client";
import { canonicalAddress } from "../../lib/ip.ts";
import { isDeeperThan } from "../../lib/json.ts";
import { createLruCache } from "../../lib/lru.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { bodyHash } from "../../lib/signature.ts";
import type { EventDraft } from "../../model/event.ts";
import { COLLECT_NAMES, type CollectName } from "../../model/key.ts";
import { toDraft } from "../formats/event-draft.ts";
import { readEve } from "../formats/eve/eve.ts";
import { CollectTally, type PostStatus } from "../lines/line-status.ts";
import { markReplaced, sampleOf, decodeLine } from "../lines/line-text.ts";
import { CsvTables } from "../formats/generic/csv-tables.ts";
import { GENERIC } from "../formats/generic/generic.ts";
import type { LineFormats } from "../formats/line-formats.ts";
import { readWithFormats } from "../formats/read-with-formats.ts";
import { lateMessage } from "../flows/flow-status.ts";
import {
  UNPARSED_TYPE,
  type ReadContext,
  type ParsedFlow,
  type Reading,
  type RefusalReason,
} from "../formats/reading.ts";
import { splitPostBody, TURN_BYTES, type PostedBody, type PostItem } from "./post-items.ts";
import { OpenEvents } from "../formats/unifi/open-events.ts";
import { readBody } from "../formats/unifi/webhooks.ts";

export { POST_ITEMS_MAX } from "./post-items.ts";

// Receives bodies that controllers post. Foreign JSON is read leniently: a duplicate key is no reason to lose an event.

const DEPTH_MAX = 32;
/** Items read before yielding to other requests. */
const TURN_ITEMS = 100;
/** Largest difference between the time of a signature and the clock. */
export const SIGNATURE_MS_MAX = 300_000;
/** Signatures remembered to detect replays. */
const SIGNATURES_MAX = 100_000;
/** Stands for a sender that a proxy does not name by its address. */
const UNKNOWN_ADDRESS = "::";
const SENT_BEFORE = "the request was sent before";
const SIGNATURE = /^t=(\d{1,12}),v1=([0-9a-f]{64})$/i;

export interface PostContext {
  readonly sender: string;
  readonly signature: string | undefined;
}

export type PostOutcome =
  | {
      readonly kind: "taken";
      readonly accepted: number;
      readonly nothing: number;
      readonly refused: readonly { index: number; reason: RefusalReason; message: string }[];
      readonly ids: readonly string[];
    }
  /** The body cannot be read as a whole. */
  | { readonly kind: "malformed" | "empty" | "too_many" | "unsigned"; readonly message: string };

export interface PostCollectorOptions {
  readonly platform: string;
  readonly timezone: string;
  /** The formats of lines at this moment. */
  readonly formats: () => LineFormats;
  readonly keepsUnparsed: boolean;
  readonly lineBytesMax: number;
  /** Limit for the JSON of one item, as for one submission. */
  readonly itemBytesMax: number;
  /** If set, bodies of the access controller must be signed. */
  readonly accessSecret: string | null;
  /** Flows that ended longer ago are refused. */
  readonly flowsLateMs: number;
  readonly registry: Registry;
  readonly collect: (drafts: readonly EventDraft[], token?: string) => Promise<readonly string[]>;
  readonly addFlows: (flows: readonly ParsedFlow[], sender: string) => Promise<unknown>;
  readonly now: () => number;
}

/** Events of several items that are stored together. */
interface DraftBatch {
  readonly drafts: EventDraft[];
  readonly indexes: number[];
  readonly rollbacks: (() => void)[];
}

const emptyBatch = (): DraftBatch => ({ drafts: [], indexes: [], rollbacks: [] });

interface PostTally {
  readonly tally: CollectTally;
  requests: number;
  lastSeenMs: number | null;
}

export class PostCollector {
  readonly #options: PostCollectorOptions;
  readonly #open = new OpenEvents();
  readonly #tables = new CsvTables();
  readonly #names: Readonly<Record<CollectName, PostTally>>;
  readonly #signatures = createLruCache<string, true>(SIGNATURES_MAX);
  readonly #items: Counter<"name" | "outcome">;
  readonly #refused: Counter<"name" | "reason">;

  constructor(options: PostCollectorOptions) {
    this.#options = options;
    const fresh = COLLECT_NAMES.map((name) => [name, { tally: new CollectTally(), requests: 0, lastSeenMs: null }]);
    this.#names = Object.fromEntries(fresh) as Record<CollectName, PostTally>;
    const registers = [options.registry];
    this.#items = new Counter({
      name: "tocsin_collect_posted_total",
      help: "items posted to a collector, by outcome",
      labelNames: ["name", "outcome"],
      registers,
    });
    this.#refused = new Counter({
      name: "tocsin_collect_posted_refused_total",
      help: "posted items that were refused, by reason",
      labelNames: ["name", "reason"],
      registers,
    });
    const open = this.#open;
    new Gauge({
      name: "tocsin_collect_open_events",
      help: "open events, such as detections and calls, whose later parts are matched to their start",
      registers,
      collect() {
        this.set(open.size);
      },
    });
    new Gauge({
      name: "tocsin_collect_open_events_forgotten",
      help: "open events evicted before they ended, since the start",
      registers,
      collect() {
        this.set(open.evicted);
      },
    });
  }

  /** Resolves once the events are durable; rejects if the store accepts none of them. */
  async take(name: CollectName, body: PostedBody, { sender: spelling, signature }: PostContext): Promise<PostOutcome> {
    const sender = canonicalAddress(spelling) ?? UNKNOWN_ADDRESS;
    const nowMs = this.#options.now();
    const counts = this.#names[name];
    counts.requests++;
    counts.lastSeenMs = nowMs;
    const { accessSecret } = this.#options;
    const isSigned = name === "access" && accessSecret !== null;
    if (isSigned) {
      const fault = this.#signatureFault(accessSecret, signature, body.bytes, nowMs);
      if (fault !== undefined) return this.#refuseWhole(name, "bad_signature", fault, body, "unsigned");
      // Recorded before the first await, so that a simultaneous copy is detected as a replay.
      this.#signatures.set(signature!.toLowerCase(), true);
    }
    try {
      return await this.#read(name, body, sender, isSigned ? `signed ${signature!.toLowerCase()}` : undefined, nowMs);
    } catch (error) {
      // Nothing is stored: the sender may retry with the same signature.
      if (isSigned) this.#signatures.delete(signature!.toLowerCase());
      throw error;
    }
  }

  async #read(
    name: CollectName,
    body: PostedBody,
    sender: string,
    token: string | undefined,
    nowMs: number,
  ): Promise<PostOutcome> {
    const context = { nowMs, sender, timezone: this.#options.timezone, tables: this.#tables };
    const split = await splitPostBody(name, body, this.#options.itemBytesMax);
    if (split.kind === "malformed") return this.#refuseWhole(name, "malformed", split.message, body, "malformed");
    if (split.kind !== "items") return { kind: split.kind, message: split.message };
    const { items } = split;
    const refused: { index: number; reason: RefusalReason; message: string }[] = [];
    const storing: Promise<readonly string[] | { readonly error: unknown; readonly indexes: number[] }>[] = [];
    const flows: ParsedFlow[] = [];
    let nothing = 0;
    let batch = emptyBatch();
    let turnItems = 0;
    let turnBytes = 0;
    let last: { readonly item: PostItem; readonly reading: Reading } | undefined;
    const store = ({ drafts, indexes, rollbacks }: DraftBatch) => {
      if (drafts.length === 0) return;
      const collecting = this.#options.collect(drafts, token === undefined ? undefined : `${token} ${indexes[0]}`);
      const failed = (error: unknown) => {
        for (const rollback of rollbacks.reverse()) rollback();
        return { error, indexes };
      };
      storing.push(collecting.catch(failed));
    };
    for (const [index, item] of items.entries()) {
      const { value: reading, rollback } = this.#open.record(() => this.#readItem(name, item, context));
      batch.rollbacks.push(rollback);
      last = { item, reading };
      const outcome = this.#count(name, item, reading, nowMs);
      if (outcome.refusal) refused.push({ index, ...outcome.refusal });
      if (outcome.flows) flows.push(...outcome.flows);
      if (outcome.isNothing) nothing++;
      for (const draft of outcome.drafts) {
        batch.drafts.push(draft);
        batch.indexes.push(index);
      }
      turnItems++;
      turnBytes += item.kind === "value" ? item.sizeBytes : item.bytes.length;
      if (turnItems < TURN_ITEMS && turnBytes < TURN_BYTES) continue;
      store(batch);
      batch = emptyBatch();
      turnItems = 0;
      turnBytes = 0;
      await nextTurn();
    }
    store(batch);
    if (last && last.reading.kind !== "refused")
      this.#names[name].tally.noteReading(sampleOfItem(last.item), last.reading, formatOf(name), nowMs);
    const ids: string[] = [];
    let failure: unknown;
    for (const result of await Promise.all(storing)) {
      if ("error" in result) {
        failure = result.error;
        const message = "not stored, try again";
        for (const index of new Set(result.indexes)) refused.push({ index, reason: "queue_full", message });
      } else ids.push(...result);
    }
    if (failure !== undefined && ids.length === 0) throw failure;
    // Added after the events: a sender that retries because of the events must not have its flows counted twice.
    if (flows.length > 0) await this.#options.addFlows(flows, sender);
    // A replay across a restart: the signature is forgotten, but the store knows the token of the events.
    const isReplay = token !== undefined && storing.length > 0 && ids.length === 0;
    if (isReplay) return this.#refuseWhole(name, "bad_signature", SENT_BEFORE, body, "unsigned");
    const accepted = items.length - new Set(refused.map(({ index }) => index)).size - nothing;
    return { kind: "taken", accepted, nothing, refused: refused.sort((a, b) => a.index - b.index), ids };
  }

  #readItem(name: CollectName, item: PostItem, context: ReadContext): Reading {
    const { lineBytesMax } = this.#options;
    const refuse = (reason: RefusalReason, message: string): Reading => ({ kind: "refused", reason, message });
    const tooLong = () => refuse("too_long", `the line is longer than ${lineBytesMax} bytes`);
    if (item.kind === "refused") return refuse(item.reason, item.message);
    if (item.kind === "line") {
      if (item.bytes.length > lineBytesMax) return tooLong();
      const line = decodeLine(item.bytes);
      if (!line) return refuse("not_text", "the line is not text");
      const reading = name === "eve" ? readEve(line.text, context) : this.#readLine(line.text, context);
      return markReplaced(reading, line);
    }
    const { value } = item;
    if (typeof value === "string" && Buffer.byteLength(value) > lineBytesMax) return tooLong();
    if (isDeeperThan(value, DEPTH_MAX))
      return refuse("malformed", `the item is nested deeper than ${DEPTH_MAX} levels`);
    if (name === "syslog") {
      if (typeof value !== "string") return refuse("malformed", "the item is not a line of text");
      return this.#readLine(value, context);
    }
    if (name === "eve") return readEve(JSON.stringify(value), context);
    return readBody(name, value, context, this.#open);
  }

  #readLine(line: string, context: ReadContext): Reading {
    return readWithFormats(this.#options.formats(), line, context);
  }

  /** Counts the outcome of an item, and returns what is to be stored or refused. */
  #count(
    name: CollectName,
    item: PostItem,
    reading: Reading,
    nowMs: number,
  ): {
    readonly drafts: readonly EventDraft[];
    readonly flows?: readonly ParsedFlow[];
    readonly isNothing?: true;
    readonly refusal?: { reason: RefusalReason; message: string };
  } {
    const { tally } = this.#names[name];
    const { platform, keepsUnparsed, flowsLateMs } = this.#options;
    tally.countLine(nowMs);
    switch (reading.kind) {
      case "nothing":
        tally.nothing++;
        this.#items.inc({ name, outcome: "nothing" });
        return { drafts: [], isNothing: true };
      case "flows":
        // The windows drop flows that old, so the sender gets a refusal.
        if (reading.flows.every(({ lastMs }) => lastMs < nowMs - flowsLateMs)) {
          const message = lateMessage(flowsLateMs);
          return { drafts: [], refusal: this.#refuse(name, "too_late", message, sampleOfItem(item), nowMs) };
        }
        tally.flows += reading.flows.length;
        this.#items.inc({ name, outcome: "flow" }, reading.flows.length);
        return { drafts: [], flows: reading.flows };
      case "refused":
        return {
          drafts: [],
          refusal: this.#refuse(name, reading.reason, reading.message, sampleOfItem(item), nowMs),
        };
      case "events": {
        if (reading.format === GENERIC) tally.generic++;
        for (const event of reading.events) {
          if (event.type === UNPARSED_TYPE) tally.noteUnparsed(event, nowMs);
        }
        const kept = keepsUnparsed ? reading.events : reading.events.filter(({ type }) => type !== UNPARSED_TYPE);
        if (kept.length === 0)
          return {
            drafts: [],
            refusal: this.#refuse(name, "unknown_kind", "no reader understands it", sampleOfItem(item), nowMs),
          };
        tally.events += kept.length;
        this.#items.inc({ name, outcome: "event" }, kept.length);
        return { drafts: kept.map((event) => toDraft(event, platform, nowMs)) };
      }
      default:
        return unreachable(reading);
    }
  }

  #refuse(name: CollectName, reason: RefusalReason, message: string, sample: string, nowMs: number) {
    this.#names[name].tally.refuse(reason, message, sample, nowMs);
    this.#items.inc({ name, outcome: "refused" });
    this.#refused.inc({ name, reason });
    return { reason, message };
  }

  #refuseWhole(
    name: CollectName,
    reason: RefusalReason,
    message: string,
    { bytes }: PostedBody,
    kind: "malformed" | "unsigned",
  ): PostOutcome {
    this.#refuse(name, reason, message, sampleOf(bytes), this.#options.now());
    return { kind, message };
  }

  /** Says what is wrong with a signature; undefined if it is valid and new. */
  #signatureFault(secret: string, given: string | undefined, bytes: Buffer, nowMs: number): string | undefined {
    const match = given === undefined ? undefined : SIGNATURE.exec(given);
    if (!match) return "the request is not signed: the header Signature must be t=<unix seconds>,v1=<hex>";
    const [, seconds, hex] = match;
    const expected = bodyHash(secret, bytes, seconds!);
    if (!timingSafeEqual(expected, Buffer.from(hex!, "hex"))) return "the signature does not match the body";
    const offMs = Math.abs(nowMs - Number(seconds) * 1000);
    if (offMs > SIGNATURE_MS_MAX)
      return `the time of the signature is ${Math.round(offMs / 1000)} s off; at most ${SIGNATURE_MS_MAX / 1000} s are allowed`;
    if (this.#signatures.has(given!.toLowerCase())) return SENT_BEFORE;
    return undefined;
  }

  status(): PostStatus[] {
    return COLLECT_NAMES.map((name) => {
      const { tally, requests, lastSeenMs } = this.#names[name];
      const input = tally.inputStatus(this.#options.now());
      return { name, requests, lastSeenMs, lastRefusal: tally.lastRefusal, ...tally.counts(), ...input };
    });
  }
}

/** The format of the items of a name; null for syslog, whose lines have several. */
function formatOf(name: CollectName): string | null {
  return name === "syslog" ? null : name;
}

function sampleOfItem(item: PostItem): string {
  return sampleOf(item.kind === "value" ? JSON.stringify(item.value) : item.bytes);
}
