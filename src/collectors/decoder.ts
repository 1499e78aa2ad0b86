import { parseAddress } from "../lib/ip.ts";
import { ADDRESS_BYTES } from "../model/flow.ts";
import { Exporter } from "./exporter.ts";
import { decodeIpfix, isIpfixKey } from "./netflow/ipfix.ts";
import type { Domain, KeptDomain, KnownTemplate } from "./netflow/domain.ts";
import { Room } from "./netflow/room.ts";
import { readSpec, rescueWaiting } from "./netflow/sets.ts";
import { decodeV5 } from "./netflow/v5.ts";
import { decodeV9 } from "./netflow/v9.ts";
import { WaitingRoom } from "./netflow/waiting.ts";
import { Packet } from "./packet.ts";
import type { ReadFlow } from "./reading.ts";
import { RecordBatch, setCounter } from "./records.ts";
import { decodeSflow } from "./sflow/sflow.ts";
import { DROP_REASONS, noDrops, type ExporterStatus, type ExporterTotals, type FlowVersion } from "./status.ts";

// From the bytes of a packet to flow records. Whatever the bytes are, it neither throws nor reads beyond them: what cannot
// be used is counted with its reason.

// What a sender can fill is bounded in all, and for each network: an IPv4 address, or the /64 of an IPv6 address.

/** Senders that are remembered. */
export const EXPORTERS_MAX = 4096;
const NETWORK_EXPORTERS_MAX = 256;
/** Observation domains, engines and sub-agents, by exporter and port. */
const DOMAINS_MAX = 8192;
const NETWORK_DOMAINS_MAX = 1024;
/** A real exporter has a dozen. */
export const TEMPLATES_MAX = 10_000;
export const NETWORK_TEMPLATES_MAX = 1000;

/** A template that no data came for expires when it was not sent for so long; RFC 7011 has exporters send them every ten minutes. */
const UNUSED_EXPIRY_MS = 1_800_000;
/** One that was used is kept over quiet times: some exporters send theirs once a day. */
const USED_EXPIRY_MS = 86_400_000;
/** How often to look for what has expired. */
const EXPIRY_CHECK_MS = 30_000;

/** Numbers of exporters fit into 16 bits. */
const INDEXES_MAX = 65_536;
/** Beyond the bound of clocks, how long open windows may still mean a forgotten exporter by its number. */
const INDEX_REST_MS = 900_000;

export interface Decoding {
  readonly packet: Packet;
  readonly waiting: WaitingRoom;
}

type Decode = (decoding: Decoding, start: number, end: number) => void;

/** By what the first two bytes of a packet say. sFlow's version has four: its first two are zero. */
const PROTOCOLS: Readonly<Record<number, { readonly version: FlowVersion; readonly decode: Decode }>> = {
  5: { version: 5, decode: ({ packet }, start, end) => decodeV5(packet, start, end) },
  9: { version: 9, decode: decodeV9 },
  10: { version: 10, decode: decodeIpfix },
};
const SFLOW = { version: 105, decode: decodeSflow } as const;
const SFLOW_VERSION = 5;
const EVE_VERSION = 106;

export class Decoder {
  readonly #decoding: Decoding;
  readonly #packet: Packet;
  readonly #exporters = new Map<string, Exporter>();
  readonly #rooms: { exporters: Room<Exporter>; domains: Room<Domain>; templates: Room<KnownTemplate> };
  readonly #slots: (Exporter | undefined)[] = [];
  /** Numbers that nothing means any more. */
  readonly #free: number[] = [];
  /** Numbers that records in open windows may still mean, the longest unused first. */
  readonly #resting: { readonly index: number; readonly untilMs: number }[] = [];
  /** Of those who are forgotten, and of those who were never known. */
  readonly #forgotten = noDrops();
  readonly #forgottenTotals = { records: 0, lost: 0 };
  /** What the last run knew of exporters that have not sent anything since, by address. */
  readonly #kept = new Map<string, KeptDomain[]>();
  #nowMs = 0;
  #expiryCheckMs = 0;
  #last: { address: string; exporter: Exporter } | undefined;

  /** `take` is given full batches; a flush gives it the rest. */
  constructor({ take, clockSkewMaxMs }: { take: (batch: RecordBatch) => void; clockSkewMaxMs: number }) {
    this.#packet = new Packet(new RecordBatch(take), clockSkewMaxMs);
    this.#decoding = {
      packet: this.#packet,
      waiting: new WaitingRoom((set, nowMs) => rescueWaiting(this.#packet, set, nowMs)),
    };
    this.#rooms = {
      exporters: new Room({
        max: EXPORTERS_MAX,
        networkMax: NETWORK_EXPORTERS_MAX,
        onEvict: (exporter) => this.#evictExporter(exporter),
      }),
      domains: new Room({
        max: DOMAINS_MAX,
        networkMax: NETWORK_DOMAINS_MAX,
        onEvict: (domain, why) => this.#evictDomain(domain, why),
      }),
      templates: new Room({
        max: TEMPLATES_MAX,
        networkMax: NETWORK_TEMPLATES_MAX,
        onEvict: (known, why) => this.#evictTemplate(known, why),
      }),
    };
  }

  /** `address` is the sender's canonical spelling. Records appear in a batch, at the latest with the next flush. */
  decode(view: DataView, start: number, end: number, address: string, receivedMs: number, port = 0): void {
    const exporter = this.#find(address, receivedMs);
    if (!exporter) return;
    const packet = this.#packet;
    exporter.packets++;
    exporter.lastSeenMs = receivedMs;
    const version = end - start < 2 ? -1 : view.getUint16(start);
    const isSflow = version === 0 && end - start >= 4 && view.getUint16(start + 2) === SFLOW_VERSION;
    const protocol = isSflow ? SFLOW : PROTOCOLS[version];
    if (!protocol) {
      const told =
        end - start < 4 ? `a packet of ${end - start} bytes` : `a packet that begins with version ${version}`;
      const reason = end - start < 4 ? "truncated" : "unknown_version";
      exporter.drop(reason, 1, `${told} is none of NetFlow v5, v9, IPFIX and sFlow v5`, receivedMs);
      return;
    }
    packet.view = view;
    packet.exporter = exporter;
    packet.port = port;
    packet.version = protocol.version;
    packet.receivedMs = receivedMs;
    exporter.versions.add(protocol.version);
    protocol.decode(this.#decoding, start, end);
  }

  /** Flows that an IDS has told of in words; they are records like those of an exporter. */
  tell(flows: readonly ReadFlow[], address: string, nowMs: number): void {
    const exporter = this.#find(address, nowMs);
    if (!exporter) return;
    exporter.packets++;
    exporter.lastSeenMs = nowMs;
    exporter.versions.add(EVE_VERSION);
    this.#packet.receivedMs = nowMs;
    this.#packet.shiftMs = 0;
    const { batch } = this.#packet;
    for (const flow of flows) {
      const [source, destination] = [parseAddress(flow.srcIp), parseAddress(flow.dstIp)];
      if (source === undefined || destination === undefined) {
        exporter.drop("no_address", 1, "a flow has an end that is no address", nowMs);
        continue;
      }
      const row = batch.next();
      batch.exporter[row] = exporter.index;
      putAddress(batch.src, row, source);
      putAddress(batch.dst, row, destination);
      batch.ports[row] = ((flow.srcPort << 16) | (flow.dstPort & 0xffff)) >>> 0;
      batch.protocol[row] = flow.protocol;
      batch.version[row] = EVE_VERSION;
      batch.tcpFlags[row] = flow.tcpFlags;
      setCounter(batch.bytes, row, flow.bytes);
      setCounter(batch.packets, row, flow.packets);
      this.#packet.setTimes(row, flow.firstMs, flow.lastMs);
      exporter.records++;
      exporter.lastRecordMs = nowMs;
    }
  }

  flush(): void {
    this.#packet.batch.flush();
  }

  /** Whom the number that records carry means. */
  exporter(index: number): Exporter {
    return this.#slots[index]!;
  }

  /** Someone who has not sent anything, but is connected. */
  meet(address: string, nowMs: number): void {
    this.#find(address, nowMs);
  }

  expire(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#decoding.waiting.expire(nowMs);
    this.#decoding.waiting.retry(nowMs);
    if (Math.abs(nowMs - this.#expiryCheckMs) < EXPIRY_CHECK_MS) return;
    this.#expiryCheckMs = nowMs;
    for (const known of this.#rooms.templates.values()) this.#expireTemplate(known, nowMs);
    for (const domain of this.#rooms.domains.values()) {
      if (domain.templates.size > 0 || domain.waiting.size > 0) continue;
      // What it lacks is worth telling for as long as a template would be kept.
      const expiryMs = domain.absent.size > 0 ? USED_EXPIRY_MS : UNUSED_EXPIRY_MS;
      if (nowMs - domain.lastSeenMs > expiryMs) domain.exporter.forgetDomain(domain);
    }
  }

  /** What is worth keeping over a restart: templates that have decoded something, those of most use first. */
  keep(templatesMax: number): KeptDomain[] {
    const used = [...this.#rooms.templates.values()].filter(({ usedMs }) => usedMs > 0);
    used.sort((left, right) => right.rankMs - left.rankMs);
    const kept = new Map<Domain, KeptDomain & { templates: KeptDomain["templates"][number][] }>();
    for (const { domain, plan, learnedMs, sentMs, usedMs } of used.slice(0, templatesMax)) {
      const { exporter, port, key, options } = domain;
      const one = kept.get(domain) ?? { address: exporter.address, port, key, options, templates: [] };
      kept.set(domain, one);
      const spec = Buffer.from(plan.spec).toString("base64");
      one.templates.push({ options: plan.options, spec, learnedMs, sentMs, usedMs });
    }
    let left = templatesMax - used.length;
    const unclaimed = [...this.#kept.values()]
      .flat()
      .filter(({ templates }) => templates.some(({ usedMs }) => this.#nowMs - usedMs <= USED_EXPIRY_MS))
      .filter(({ templates }) => (left -= templates.length) >= 0);
    return [...kept.values(), ...unclaimed];
  }

  /** Takes up what the last run kept; an exporter gets it back with its first packet. */
  restore(domains: readonly KeptDomain[]): void {
    for (const domain of domains) {
      const others = this.#kept.get(domain.address);
      if (others) others.push(domain);
      else this.#kept.set(domain.address, [domain]);
    }
  }

  /** Says that what the last run kept could not be read. */
  failRestore(): void {
    this.#forgotten.template_file_damaged++;
  }

  get templates(): number {
    return this.#rooms.templates.size;
  }

  get domains(): number {
    return this.#rooms.domains.size;
  }

  get waitingBytes(): number {
    return this.#decoding.waiting.bytes;
  }

  status(
    nowMs: number,
    connected: ReadonlySet<string>,
  ): { exporters: ExporterStatus[]; drops: Record<string, number>; totals: ExporterTotals } {
    const drops = { ...this.#forgotten };
    const totals = { ...this.#forgottenTotals };
    for (const exporter of this.#exporters.values()) {
      for (const reason of DROP_REASONS) drops[reason] += exporter.drops[reason];
      totals.records += exporter.records;
      totals.lost += exporter.lost;
    }
    const exporters = [...this.#exporters.values()].map((exporter) =>
      exporter.status(nowMs, connected.has(exporter.address)),
    );
    return { exporters, drops, totals };
  }

  #find(address: string, nowMs: number): Exporter | undefined {
    this.#nowMs = nowMs;
    if (this.#last?.address === address) return this.#last.exporter;
    let exporter = this.#exporters.get(address);
    if (!exporter) {
      const index = this.#takeIndex(nowMs);
      if (index === undefined) {
        this.#forgotten.too_many_exporters++;
        return undefined;
      }
      exporter = new Exporter(index, address, nowMs, this.#rooms);
      this.#rooms.exporters.admit(exporter);
      this.#slots[index] = exporter;
      this.#exporters.set(address, exporter);
      this.#giveBack(exporter, nowMs);
    }
    this.#last = { address, exporter };
    return exporter;
  }

  #giveBack(exporter: Exporter, nowMs: number): void {
    for (const kept of this.#kept.get(exporter.address) ?? []) {
      const fresh = kept.templates.filter(({ usedMs }) => nowMs - usedMs <= USED_EXPIRY_MS);
      if (fresh.length === 0) continue;
      const domain = exporter.domain(kept.key, kept.port, nowMs);
      domain.options = kept.options;
      exporter.noteOptions(domain);
      exporter.hasTemplateData = true;
      for (const { spec, options, learnedMs, sentMs, usedMs } of fresh) {
        const bytes = Uint8Array.from(Buffer.from(spec, "base64"));
        const plan = readSpec(bytes, options, isIpfixKey(kept.key));
        if (!plan) continue;
        const known = exporter.learn(domain, exporter.findPlan(domain, plan.id, options, bytes) ?? plan, learnedMs);
        known.sentMs = sentMs;
        known.usedMs = usedMs;
        domain.usedMs = Math.max(domain.usedMs, usedMs);
      }
    }
    this.#kept.delete(exporter.address);
  }

  #takeIndex(nowMs: number): number | undefined {
    const [rested] = this.#resting;
    if (rested && rested.untilMs <= nowMs) return this.#resting.shift()!.index;
    return this.#free.pop() ?? (this.#slots.length < INDEXES_MAX ? this.#slots.length : undefined);
  }

  #evictExporter(gone: Exporter): void {
    const nowMs = this.#nowMs;
    for (const domain of gone.domains()) {
      this.#decoding.waiting.leave(domain, "its exporter was forgotten to make room for others", nowMs);
      gone.forgetDomain(domain);
    }
    this.#exporters.delete(gone.address);
    if (this.#last?.exporter === gone) this.#last = undefined;
    this.#forgotten.exporter_evicted++;
    for (const reason of DROP_REASONS) this.#forgotten[reason] += gone.drops[reason];
    this.#forgottenTotals.records += gone.records;
    this.#forgottenTotals.lost += gone.lost;
    if (gone.records === 0) this.#free.push(gone.index);
    else this.#resting.push({ index: gone.index, untilMs: nowMs + this.#packet.clockSkewMaxMs + INDEX_REST_MS });
  }

  #evictDomain(domain: Domain, why: string): void {
    this.#decoding.waiting.leave(domain, `its session was forgotten: ${why}`, this.#nowMs);
    for (const known of domain.templates.values()) this.#evictTemplate(known, why);
    domain.exporter.forgetDomain(domain);
  }

  #evictTemplate(known: KnownTemplate, why: string): void {
    const { domain, plan } = known;
    domain.exporter.forgetTemplate(known);
    domain.lack(plan.id, "which was evicted to make room for others; it is needed again");
    domain.exporter.drop("template_evicted", 1, `template ${plan.id} was evicted: ${why}`, this.#nowMs);
  }

  #expireTemplate(known: KnownTemplate, nowMs: number): void {
    const { domain, plan, sentMs, usedMs } = known;
    const expiryMs = usedMs === 0 ? UNUSED_EXPIRY_MS : USED_EXPIRY_MS;
    if (nowMs - Math.max(sentMs, usedMs) <= expiryMs) return;
    const minutes = expiryMs / 60_000;
    domain.exporter.forgetTemplate(known);
    domain.lack(plan.id, `which expired: it was neither sent nor needed for ${minutes} minutes`);
    const message = `template ${plan.id} expired: it was neither sent nor needed for ${minutes} minutes`;
    domain.exporter.drop("template_expired", 1, message, nowMs);
  }
}

function putAddress(column: Uint32Array, row: number, address: bigint): void {
  const bytes = new DataView(column.buffer, row * ADDRESS_BYTES, ADDRESS_BYTES);
  bytes.setBigUint64(0, address >> 64n);
  bytes.setBigUint64(8, address & 0xffff_ffff_ffff_ffffn);
}
