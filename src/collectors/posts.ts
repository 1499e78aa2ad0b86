import { timingSafeEqual } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "prom-client";
import { canonicalAddress } from "../lib/ip.ts";
import { isDeeperThan } from "../lib/json.ts";
import { recentlyUsed } from "../lib/recently-used.ts";
import { bodyHash } from "../lib/signature.ts";
import type { EventDraft } from "../model/event.ts";
import { COLLECT_NAMES, type CollectName } from "../model/key.ts";
import { toDraft } from "./draft.ts";
import { readEve } from "./eve/eve.ts";
import { Tally, type PostStatus } from "./inlet/status.ts";
import { markReplaced, sampleOf, textOf } from "./inlet/text.ts";
import { readLine } from "./lines.ts";
import { lateWords } from "./status.ts";
import { UNPARSED_TYPE, type ReadContext, type ReadFlow, type Reading, type RefusalReason } from "./reading.ts";
import { thingsOf, TURN_BYTES, type PostedBody, type Thing } from "./things.ts";
import { OpenEvents } from "./webhooks/open-events.ts";
import { readBody } from "./webhooks/webhooks.ts";

export { POST_ITEMS_MAX } from "./things.ts";

// Bodies that controllers post. Foreign JSON is read as it comes: a key that stands twice is no reason to lose an event.

const DEPTH_MAX = 32;
/** Items between two looks at what else there is to do. */
const TURN_ITEMS = 100;
/** How far the time of a signature may be from ours. */
export const SIGNATURE_MS_MAX = 300_000;
/** Signatures that are remembered for as long as they could be used again. */
const SIGNATURES_MAX = 100_000;
/** Of a sender that a proxy names by something else than an address. */
const NO_ADDRESS = "::";
const SENT_BEFORE = "the request has been sent before";
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
  /** The body as a whole cannot be read. */
  | { readonly kind: "malformed" | "empty" | "too_many" | "unsigned"; readonly message: string };

export interface PostsOptions {
  readonly platform: string;
  readonly timezone: string;
  readonly keepsUnparsed: boolean;
  readonly lineBytesMax: number;
  /** Of the JSON of one thing, as of one submission. */
  readonly thingBytesMax: number;
  /** With it, what the access controller posts must be signed. */
  readonly accessSecret: string | null;
  /** Flows that ended longer ago are not taken. */
  readonly flowsLateMs: number;
  readonly registry: Registry;
  readonly collect: (drafts: readonly EventDraft[], token?: string) => Promise<readonly string[]>;
  readonly addFlows: (flows: readonly ReadFlow[], sender: string) => Promise<unknown>;
  readonly now: () => number;
}

/** Events of some items, on their way to the store. */
interface Slice {
  readonly drafts: EventDraft[];
  readonly indexes: number[];
  readonly takeBacks: (() => void)[];
}

const emptySlice = (): Slice => ({ drafts: [], indexes: [], takeBacks: [] });

interface PostTally {
  readonly tally: Tally;
  requests: number;
  lastSeenMs: number | null;
}

export class Posts {
  readonly #options: PostsOptions;
  readonly #open = new OpenEvents();
  readonly #names: Readonly<Record<CollectName, PostTally>>;
  readonly #signatures = recentlyUsed<string, true>(SIGNATURES_MAX);
  readonly #things: Counter<"name" | "outcome">;
  readonly #refused: Counter<"name" | "reason">;

  constructor(options: PostsOptions) {
    this.#options = options;
    const fresh = COLLECT_NAMES.map((name) => [name, { tally: new Tally(), requests: 0, lastSeenMs: null }]);
    this.#names = Object.fromEntries(fresh) as Record<CollectName, PostTally>;
    const registers = [options.registry];
    this.#things = new Counter({
      name: "tocsin_collect_posted_total",
      help: "things that were posted to a collector, by what became of them",
      labelNames: ["name", "outcome"],
      registers,
    });
    this.#refused = new Counter({
      name: "tocsin_collect_posted_refused_total",
      help: "posted things that did not become events, by reason",
      labelNames: ["name", "reason"],
      registers,
    });
    const open = this.#open;
    new Gauge({
      name: "tocsin_collect_open_events",
      help: "things told of in parts that are remembered until their end, and for a while after",
      registers,
      collect() {
        this.set(open.size);
      },
    });
    new Gauge({
      name: "tocsin_collect_open_events_forgotten",
      help: "those of them that made room for others before their end was heard of, since the start",
      registers,
      collect() {
        this.set(open.forgotten);
      },
    });
  }

  /** Resolves once what became of it is durable; rejects where the store takes none of it. */
  async take(name: CollectName, body: PostedBody, { sender: spelling, signature }: PostContext): Promise<PostOutcome> {
    const sender = canonicalAddress(spelling) ?? NO_ADDRESS;
    const nowMs = this.#options.now();
    const own = this.#names[name];
    own.requests++;
    own.lastSeenMs = nowMs;
    const { accessSecret } = this.#options;
    const isSigned = name === "access" && accessSecret !== null;
    if (isSigned) {
      const fault = this.#signatureFault(accessSecret, signature, body.bytes, nowMs);
      if (fault !== undefined) return this.#refuseWhole(name, "bad_signature", fault, body, "unsigned");
      // Before anything is awaited: the same one again, at the same moment, is a replay too.
      this.#signatures.set(signature!.toLowerCase(), true);
    }
    try {
      return await this.#read(name, body, sender, isSigned ? `signed ${signature!.toLowerCase()}` : undefined, nowMs);
    } catch (error) {
      // Nothing of it is stored: the sender may try again with the same signature.
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
    const context = { nowMs, sender, timezone: this.#options.timezone };
    const held = await thingsOf(name, body, this.#options.thingBytesMax);
    if (held.kind === "malformed") return this.#refuseWhole(name, "malformed", held.message, body, "malformed");
    if (held.kind !== "things") return { kind: held.kind, message: held.message };
    const { things } = held;
    const refused: { index: number; reason: RefusalReason; message: string }[] = [];
    const slices: Promise<readonly string[] | { readonly error: unknown; readonly indexes: number[] }>[] = [];
    const flows: ReadFlow[] = [];
    let nothing = 0;
    let slice = emptySlice();
    let turnItems = 0;
    let turnBytes = 0;
    const store = ({ drafts, indexes, takeBacks }: Slice) => {
      if (drafts.length === 0) return;
      const collecting = this.#options.collect(drafts, token === undefined ? undefined : `${token} ${indexes[0]}`);
      const failed = (error: unknown) => {
        for (const takeBack of takeBacks.reverse()) takeBack();
        return { error, indexes };
      };
      slices.push(collecting.catch(failed));
    };
    for (const [index, thing] of things.entries()) {
      const { value: reading, takeBack } = this.#open.watch(() => this.#readThing(name, thing, context));
      slice.takeBacks.push(takeBack);
      const said = this.#tell(name, thing, reading, nowMs);
      if (said.refusal) refused.push({ index, ...said.refusal });
      if (said.flows) flows.push(...said.flows);
      if (said.isNothing) nothing++;
      for (const draft of said.drafts) {
        slice.drafts.push(draft);
        slice.indexes.push(index);
      }
      turnItems++;
      turnBytes += thing.kind === "value" ? thing.sizeBytes : thing.bytes.length;
      if (turnItems < TURN_ITEMS && turnBytes < TURN_BYTES) continue;
      store(slice);
      slice = emptySlice();
      turnItems = 0;
      turnBytes = 0;
      await nextTurn();
    }
    store(slice);
    const ids: string[] = [];
    let failure: unknown;
    for (const outcome of await Promise.all(slices)) {
      if ("error" in outcome) {
        failure = outcome.error;
        const message = "not stored, try again";
        for (const index of new Set(outcome.indexes)) refused.push({ index, reason: "queue_full", message });
      } else ids.push(...outcome);
    }
    if (failure !== undefined && ids.length === 0) throw failure;
    // After the events: a sender that has to try again because of those must not have its flows counted twice.
    if (flows.length > 0) await this.#options.addFlows(flows, sender);
    // Its signature is not remembered across a restart; that its events are stored already is.
    const isReplay = token !== undefined && slices.length > 0 && ids.length === 0;
    if (isReplay) return this.#refuseWhole(name, "bad_signature", SENT_BEFORE, body, "unsigned");
    const accepted = things.length - new Set(refused.map(({ index }) => index)).size - nothing;
    return { kind: "taken", accepted, nothing, refused: refused.sort((a, b) => a.index - b.index), ids };
  }

  #readThing(name: CollectName, thing: Thing, context: ReadContext): Reading {
    const { lineBytesMax } = this.#options;
    const refuse = (reason: RefusalReason, message: string): Reading => ({ kind: "refused", reason, message });
    const tooLong = () => refuse("too_long", `it is longer than ${lineBytesMax} bytes`);
    if (thing.kind === "refused") return refuse(thing.reason, thing.message);
    if (thing.kind === "line") {
      if (thing.bytes.length > lineBytesMax) return tooLong();
      const line = textOf(thing.bytes);
      if (!line) return refuse("not_text", "it is not text");
      return markReplaced((name === "eve" ? readEve : readLine)(line.text, context), line);
    }
    const { value } = thing;
    if (typeof value === "string" && Buffer.byteLength(value) > lineBytesMax) return tooLong();
    if (isDeeperThan(value, DEPTH_MAX)) return refuse("malformed", `it is nested deeper than ${DEPTH_MAX} levels`);
    if (name === "syslog") {
      if (typeof value !== "string") return refuse("malformed", "it is not a line of text");
      return readLine(value, context);
    }
    if (name === "eve") return readEve(JSON.stringify(value), context);
    return readBody(name, value, context, this.#open);
  }

  /** Counts what became of something, and says what is to be done with it. */
  #tell(
    name: CollectName,
    thing: Thing,
    reading: Reading,
    nowMs: number,
  ): {
    readonly drafts: readonly EventDraft[];
    readonly flows?: readonly ReadFlow[];
    readonly isNothing?: true;
    readonly refusal?: { reason: RefusalReason; message: string };
  } {
    const { tally } = this.#names[name];
    const { platform, keepsUnparsed, flowsLateMs } = this.#options;
    tally.lines++;
    switch (reading.kind) {
      case "nothing":
        tally.nothing++;
        this.#things.inc({ name, outcome: "nothing" });
        return { drafts: [], isNothing: true };
      case "flows":
        // Windows take nothing that old: whoever sends it is told, rather than left to wonder where it is.
        if (reading.flows.every(({ lastMs }) => lastMs < nowMs - flowsLateMs)) {
          const message = lateWords(flowsLateMs);
          return { drafts: [], refusal: this.#refuse(name, "too_late", message, sampleOfThing(thing), nowMs) };
        }
        tally.flows += reading.flows.length;
        this.#things.inc({ name, outcome: "flow" }, reading.flows.length);
        return { drafts: [], flows: reading.flows };
      case "refused":
        return {
          drafts: [],
          refusal: this.#refuse(name, reading.reason, reading.message, sampleOfThing(thing), nowMs),
        };
      case "events": {
        const kept = keepsUnparsed ? reading.events : reading.events.filter(({ type }) => type !== UNPARSED_TYPE);
        if (kept.length === 0)
          return {
            drafts: [],
            refusal: this.#refuse(name, "unknown_kind", "no reader understands it", sampleOfThing(thing), nowMs),
          };
        tally.events += kept.length;
        this.#things.inc({ name, outcome: "event" }, kept.length);
        return { drafts: kept.map((event) => toDraft(event, platform, nowMs)) };
      }
    }
  }

  #refuse(name: CollectName, reason: RefusalReason, message: string, sample: string, nowMs: number) {
    this.#names[name].tally.refuse(reason, message, sample, nowMs);
    this.#things.inc({ name, outcome: "refused" });
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

  /** What is wrong with a signature; undefined where it is right and new. */
  #signatureFault(secret: string, given: string | undefined, bytes: Buffer, nowMs: number): string | undefined {
    const match = given === undefined ? undefined : SIGNATURE.exec(given);
    if (!match) return "the request is not signed: the header Signature must be t=<unix seconds>,v1=<hex>";
    const [, seconds, hex] = match;
    const expected = bodyHash(secret, bytes, seconds!);
    if (!timingSafeEqual(expected, Buffer.from(hex!, "hex"))) return "the signature is not right";
    const offMs = Math.abs(nowMs - Number(seconds) * 1000);
    if (offMs > SIGNATURE_MS_MAX) return `the signature is of another time: ${Math.round(offMs / 1000)} s from now`;
    if (this.#signatures.has(given!.toLowerCase())) return SENT_BEFORE;
    return undefined;
  }

  status(): PostStatus[] {
    return COLLECT_NAMES.map((name) => {
      const { tally, requests, lastSeenMs } = this.#names[name];
      return { name, requests, lastSeenMs, lastRefusal: tally.lastRefusal, ...tally.counts() };
    });
  }
}

function sampleOfThing(thing: Thing): string {
  return sampleOf(thing.kind === "value" ? JSON.stringify(thing.value) : thing.bytes);
}
