import { parseAddress } from "../../lib/ip.ts";
import { ADDRESS_BYTES } from "../../model/flow.ts";
import { FlowExporter } from "./flow-exporter.ts";
import { decodeIpfix, isIpfixKey } from "./netflow/ipfix.ts";
import type { ObservationDomain, KnownTemplate } from "./netflow/observation-domain.ts";
import type { SavedDomain } from "./netflow/saved-templates.ts";
import { TemplateLimit } from "./netflow/template-limit.ts";
import { decodeBorrowed, parseSavedTemplate, type DecodeContext } from "./netflow/packet-sets.ts";
import { decodeV5 } from "./netflow/v5.ts";
import { decodeV9 } from "./netflow/v9.ts";
import { UndecodedSets } from "./netflow/undecoded-sets.ts";
import { FlowPacket } from "./flow-packet.ts";
import type { ParsedFlow } from "../formats/reading.ts";
import { RecordBatch, setCounter } from "./flow-records.ts";
import { decodeSflow } from "./sflow/sflow.ts";
import { DROP_REASONS, noDrops, type ExporterStatus, type ExporterTotals, type FlowVersion } from "./flow-status.ts";

// Decodes packets into flow records. It neither throws nor reads beyond the packet, whatever the bytes: undecodable input is
// counted with its reason. Every table that senders can fill has a total limit and a limit for each network, which is an
// IPv4 address or the /64 of an IPv6 address.

export const EXPORTERS_MAX = 4096;
const NETWORK_EXPORTERS_MAX = 256;
/** Observation domains, engines and sub-agents; each port of an exporter counts separately. */
const DOMAINS_MAX = 8192;
const NETWORK_DOMAINS_MAX = 1024;
/** A real exporter has about a dozen. */
export const TEMPLATES_MAX = 10_000;
export const NETWORK_TEMPLATES_MAX = 1000;

/** An unused template expires if it was not sent for this long; RFC 7011 has exporters send templates every ten minutes. */
const UNUSED_EXPIRY_MS = 1_800_000;
/** A used template outlives quiet periods: some exporters send templates once a day. */
const USED_EXPIRY_MS = 86_400_000;
const EXPIRY_CHECK_MS = 30_000;

/** Exporter indexes have 16 bits. */
const EXPORTER_INDEXES_MAX = 65_536;
/** How long, beyond the clock skew, open windows may still refer to an evicted exporter by its index. */
const INDEX_QUARANTINE_MS = 900_000;

type DecodePacket = (decoding: DecodeContext, start: number, end: number) => void;

/** By the first two bytes of a packet. sFlow has a version of four bytes, of which the first two are zero. */
const PROTOCOLS: Readonly<Record<number, { readonly version: FlowVersion; readonly decode: DecodePacket }>> = {
  5: { version: 5, decode: ({ packet }, start, end) => decodeV5(packet, start, end) },
  9: { version: 9, decode: decodeV9 },
  10: { version: 10, decode: decodeIpfix },
};
const SFLOW: { readonly version: FlowVersion; readonly decode: DecodePacket } = {
  version: 105,
  decode: ({ packet }, start, end) => decodeSflow(packet, start, end),
};
const SFLOW_VERSION = 5;
const EVE_VERSION = 106;

export class FlowDecoder {
  readonly #context: DecodeContext;
  readonly #packet: FlowPacket;
  readonly #exporters = new Map<string, FlowExporter>();
  readonly #limits: {
    exporters: TemplateLimit<FlowExporter>;
    domains: TemplateLimit<ObservationDomain>;
    templates: TemplateLimit<KnownTemplate>;
  };
  readonly #exportersByIndex: (FlowExporter | undefined)[] = [];
  /** Indexes that nothing refers to any more. */
  readonly #freeIndexes: number[] = [];
  /** Indexes that records in open windows may still refer to, the earliest release first. */
  readonly #quarantined: { readonly index: number; readonly untilMs: number }[] = [];
  /** Drops of evicted exporters, and drops without an exporter. */
  readonly #unattributedDrops = noDrops();
  readonly #evictedTotals = { records: 0, lost: 0 };
  /** Saved templates of the last run, by address, for exporters that have not sent anything since. */
  readonly #savedDomains = new Map<string, SavedDomain[]>();
  #nowMs = 0;
  #expiryCheckMs = 0;
  #last: { address: string; exporter: FlowExporter } | undefined;

  /** `take` receives full batches, and with a flush the last one. */
  constructor({ take, clockSkewMaxMs }: { take: (batch: RecordBatch) => void; clockSkewMaxMs: number }) {
    this.#packet = new FlowPacket(new RecordBatch(take), clockSkewMaxMs);
    this.#context = {
      packet: this.#packet,
      undecoded: new UndecodedSets((set, nowMs) => decodeBorrowed(this.#packet, set, nowMs)),
    };
    this.#limits = {
      exporters: new TemplateLimit({
        max: EXPORTERS_MAX,
        networkMax: NETWORK_EXPORTERS_MAX,
        onEvict: (exporter) => this.#evictExporter(exporter),
      }),
      domains: new TemplateLimit({
        max: DOMAINS_MAX,
        networkMax: NETWORK_DOMAINS_MAX,
        onEvict: (domain, why) => this.#evictDomain(domain, why),
      }),
      templates: new TemplateLimit({
        max: TEMPLATES_MAX,
        networkMax: NETWORK_TEMPLATES_MAX,
        onEvict: (known, why) => this.#evictTemplate(known, why),
      }),
    };
  }

  /** Decodes one packet. `address` is the sender's in canonical form. Records reach `take` with the next flush at the latest. */
  decode(view: DataView, start: number, end: number, address: string, receivedMs: number, port = 0): void {
    const exporter = this.#find(address, receivedMs);
    if (!exporter) return;
    const packet = this.#packet;
    exporter.countPacket(receivedMs);
    const version = end - start < 2 ? -1 : view.getUint16(start);
    const isSflow = version === 0 && end - start >= 4 && view.getUint16(start + 2) === SFLOW_VERSION;
    const protocol = isSflow ? SFLOW : PROTOCOLS[version];
    if (!protocol) {
      const isShort = end - start < 4;
      const what = isShort ? `a packet of ${end - start} bytes` : `a packet with version ${version}`;
      const reason = isShort ? "truncated" : "unknown_version";
      exporter.drop(reason, 1, `${what} is not NetFlow v5, NetFlow v9, IPFIX or sFlow v5`, receivedMs);
      return;
    }
    packet.view = view;
    packet.exporter = exporter;
    packet.port = port;
    packet.version = protocol.version;
    packet.receivedMs = receivedMs;
    exporter.versions.add(protocol.version);
    protocol.decode(this.#context, start, end);
  }

  /** Adds flows that an IDS reported in its log, as records of an exporter. */
  addFlows(flows: readonly ParsedFlow[], address: string, nowMs: number): void {
    const exporter = this.#find(address, nowMs);
    if (!exporter) return;
    exporter.countPacket(nowMs);
    exporter.versions.add(EVE_VERSION);
    this.#packet.receivedMs = nowMs;
    this.#packet.shiftMs = 0;
    const { batch } = this.#packet;
    for (const flow of flows) {
      const [source, destination] = [parseAddress(flow.srcIp), parseAddress(flow.dstIp)];
      if (source === undefined || destination === undefined) {
        exporter.drop("no_address", 1, "a flow has an invalid source or destination address", nowMs);
        continue;
      }
      const row = batch.next();
      batch.exporter[row] = exporter.index;
      setAddress(batch.src, row, source);
      setAddress(batch.dst, row, destination);
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

  /** The exporter behind the index that records carry. */
  exporter(index: number): FlowExporter {
    return this.#exportersByIndex[index]!;
  }

  /** Registers an exporter that is connected but has not sent anything. */
  registerExporter(address: string, nowMs: number): void {
    this.#find(address, nowMs);
  }

  expire(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#context.undecoded.expire(nowMs);
    this.#context.undecoded.retry(nowMs);
    if (Math.abs(nowMs - this.#expiryCheckMs) < EXPIRY_CHECK_MS) return;
    this.#expiryCheckMs = nowMs;
    for (const known of this.#limits.templates.values()) this.#expireTemplate(known, nowMs);
    for (const domain of this.#limits.domains.values()) {
      if (domain.templates.size > 0 || domain.awaitedTemplates.size > 0) continue;
      // Absent templates are reported for as long as a template would be kept.
      const expiryMs = domain.absent.size > 0 ? USED_EXPIRY_MS : UNUSED_EXPIRY_MS;
      if (nowMs - domain.lastSeenMs > expiryMs) this.#ownerOf(domain).removeDomain(domain);
    }
  }

  /** The templates to keep over a restart: those that have decoded something, highest rank first. */
  saveTemplates(templatesMax: number): SavedDomain[] {
    const used = [...this.#limits.templates.values()].filter(({ usedMs }) => usedMs > 0);
    used.sort((left, right) => right.rankMs - left.rankMs);
    const saved = new Map<ObservationDomain, SavedDomain & { templates: SavedDomain["templates"][number][] }>();
    for (const { domain, plan, learnedMs, sentMs, usedMs } of used.slice(0, templatesMax)) {
      const { owner, port, key, options } = domain;
      const one = saved.get(domain) ?? { address: owner.address, port, key, options, templates: [] };
      saved.set(domain, one);
      const spec = Buffer.from(plan.spec).toString("base64");
      one.templates.push({ options: plan.options, spec, learnedMs, sentMs, usedMs });
    }
    let left = templatesMax - used.length;
    const unclaimed = [...this.#savedDomains.values()]
      .flat()
      .filter(({ templates }) => templates.some(({ usedMs }) => this.#nowMs - usedMs <= USED_EXPIRY_MS))
      .filter(({ templates }) => (left -= templates.length) >= 0);
    return [...saved.values(), ...unclaimed];
  }

  /** Accepts the saved templates of the last run; each exporter gets its own with its first packet. */
  restoreTemplates(domains: readonly SavedDomain[]): void {
    for (const domain of domains) {
      const others = this.#savedDomains.get(domain.address);
      if (others) others.push(domain);
      else this.#savedDomains.set(domain.address, [domain]);
    }
  }

  /** Counts a file of saved templates that could not be read. */
  countDamagedFile(): void {
    this.#unattributedDrops.template_file_damaged++;
  }

  get templates(): number {
    return this.#limits.templates.size;
  }

  get domains(): number {
    return this.#limits.domains.size;
  }

  get undecodedBytes(): number {
    return this.#context.undecoded.bytes;
  }

  status(
    nowMs: number,
    connected: ReadonlySet<string>,
  ): { exporters: ExporterStatus[]; drops: Record<string, number>; totals: ExporterTotals } {
    const drops = { ...this.#unattributedDrops };
    const totals = { ...this.#evictedTotals };
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

  #find(address: string, nowMs: number): FlowExporter | undefined {
    this.#nowMs = nowMs;
    if (this.#last?.address === address) return this.#last.exporter;
    let exporter = this.#exporters.get(address);
    if (!exporter) {
      const index = this.#takeIndex(nowMs);
      if (index === undefined) {
        this.#unattributedDrops.too_many_exporters++;
        return undefined;
      }
      exporter = new FlowExporter(index, address, nowMs, this.#limits);
      this.#limits.exporters.admit(exporter);
      this.#exportersByIndex[index] = exporter;
      this.#exporters.set(address, exporter);
      this.#restoreExporter(exporter, nowMs);
    }
    this.#last = { address, exporter };
    return exporter;
  }

  #restoreExporter(exporter: FlowExporter, nowMs: number): void {
    for (const saved of this.#savedDomains.get(exporter.address) ?? []) {
      const fresh = saved.templates.filter(({ usedMs }) => nowMs - usedMs <= USED_EXPIRY_MS);
      if (fresh.length === 0) continue;
      const domain = exporter.domain(saved.key, saved.port, nowMs);
      domain.options = saved.options;
      exporter.registerOptions(domain);
      exporter.hasTemplateData = true;
      for (const { spec, options, learnedMs, sentMs, usedMs } of fresh) {
        const bytes = Uint8Array.from(Buffer.from(spec, "base64"));
        const plan = parseSavedTemplate(bytes, options, isIpfixKey(saved.key));
        if (!plan) continue;
        const known = exporter.learnTemplate(
          domain,
          exporter.findTemplate(domain, plan.id, options, bytes) ?? plan,
          learnedMs,
        );
        known.sentMs = sentMs;
        known.usedMs = usedMs;
        domain.usedMs = Math.max(domain.usedMs, usedMs);
      }
    }
    this.#savedDomains.delete(exporter.address);
  }

  #takeIndex(nowMs: number): number | undefined {
    const [earliest] = this.#quarantined;
    if (earliest && earliest.untilMs <= nowMs) return this.#quarantined.shift()!.index;
    return (
      this.#freeIndexes.pop() ??
      (this.#exportersByIndex.length < EXPORTER_INDEXES_MAX ? this.#exportersByIndex.length : undefined)
    );
  }

  #evictExporter(gone: FlowExporter): void {
    const nowMs = this.#nowMs;
    for (const domain of gone.domains()) {
      this.#context.undecoded.dropDomain(domain, "its exporter was evicted to make room for others", nowMs);
      gone.removeDomain(domain);
    }
    this.#exporters.delete(gone.address);
    if (this.#last?.exporter === gone) this.#last = undefined;
    this.#unattributedDrops.exporter_evicted++;
    for (const reason of DROP_REASONS) this.#unattributedDrops[reason] += gone.drops[reason];
    this.#evictedTotals.records += gone.records;
    this.#evictedTotals.lost += gone.lost;
    if (gone.records === 0) this.#freeIndexes.push(gone.index);
    else
      this.#quarantined.push({ index: gone.index, untilMs: nowMs + this.#packet.clockSkewMaxMs + INDEX_QUARANTINE_MS });
  }

  /** The exporter of a domain that the limits hold: an exporter takes its domains along when it is evicted. */
  #ownerOf(domain: ObservationDomain): FlowExporter {
    return this.#exporters.get(domain.owner.address)!;
  }

  #evictDomain(domain: ObservationDomain, reason: string): void {
    this.#context.undecoded.dropDomain(domain, `its session was evicted: ${reason}`, this.#nowMs);
    for (const known of domain.templates.values()) this.#evictTemplate(known, reason);
    this.#ownerOf(domain).removeDomain(domain);
  }

  #evictTemplate(known: KnownTemplate, reason: string): void {
    const { domain, plan } = known;
    const exporter = this.#ownerOf(domain);
    exporter.removeTemplate(known);
    domain.absent.setReason(plan.id, "which was evicted to make room for others; the exporter has to send it again");
    exporter.drop("template_evicted", 1, `template ${plan.id} was evicted: ${reason}`, this.#nowMs);
  }

  #expireTemplate(known: KnownTemplate, nowMs: number): void {
    const { domain, plan, sentMs, usedMs } = known;
    const expiryMs = usedMs === 0 ? UNUSED_EXPIRY_MS : USED_EXPIRY_MS;
    if (nowMs - Math.max(sentMs, usedMs) <= expiryMs) return;
    const exporter = this.#ownerOf(domain);
    const expired = `expired: it was neither sent nor used for ${expiryMs / 60_000} minutes`;
    exporter.removeTemplate(known);
    domain.absent.setReason(plan.id, `which ${expired}`);
    exporter.drop("template_expired", 1, `template ${plan.id} ${expired}`, nowMs);
  }
}

function setAddress(column: Uint32Array, row: number, address: bigint): void {
  const bytes = new DataView(column.buffer, row * ADDRESS_BYTES, ADDRESS_BYTES);
  bytes.setBigUint64(0, address >> 64n);
  bytes.setBigUint64(8, address & 0xffff_ffff_ffff_ffffn);
}
