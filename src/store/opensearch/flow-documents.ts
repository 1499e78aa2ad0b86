import { createHash } from "node:crypto";
import { formatAddress } from "../../lib/ip.ts";
import { ADDRESS_BYTES, FLOW_WINDOW_MS, type FlowRows } from "../../model/flow.ts";
import { MEASURES, PROTOCOLS_WITH_PORTS, type Flow, type Measure } from "../../model/flow-query.ts";
import type { IndexTemplate } from "./index-template.ts";

// Flows as documents.
//
// `bytes` and `packets` are longs, for everyone who reads the indices, and the service must add up counters of 64 bits exactly,
// while OpenSearch adds up doubles. A sum below 2^53 is exact. For the others, counters from 2^22 on are also stored in limbs of
// 22 bits: the sums of limbs are exact for as many documents as a shard can have. A counter of 2^63 or more, which a long
// cannot hold, has the rest in `_over`.

const LIMB_BITS = 22n;
const LIMB = (1n << LIMB_BITS) - 1n;
/** Counters below this are a single limb, and have no fields for limbs. */
export const LIMB_MIN = 1 << Number(LIMB_BITS);
const LONG_MAX = (1n << 63n) - 1n;

const TEMPLATE_VERSION = 1;

export interface FlowIndexOptions {
  /** `<prefix>-flows` */
  readonly name: string;
  readonly shards: number;
  readonly replicas: number;
}

const STORED_ONLY = { index: false, doc_values: false };
const SUMMED_ONLY = { type: "long", index: false };
const MILLISECONDS = { type: "date", format: "epoch_millis" };

const counterFields = (measure: Measure) => ({
  [measure]: { type: "long" },
  [`${measure}_over`]: SUMMED_ONLY,
  [`${measure}_low`]: SUMMED_ONLY,
  [`${measure}_middle`]: SUMMED_ONLY,
  [`${measure}_high`]: SUMMED_ONLY,
});

export function flowTemplate({ name, shards, replicas }: FlowIndexOptions): IndexTemplate {
  return {
    name,
    version: TEMPLATE_VERSION,
    settings: {
      number_of_shards: shards,
      number_of_replicas: replicas,
      // A batch becomes visible as a whole, by the refresh at its end.
      refresh_interval: "-1",
      // Parts of a shard that are searched at the same time return only their own highest sums: wrong ones would be missing.
      "search.concurrent_segment_search.mode": "none",
      codec: "best_compression",
    },
    mappings: {
      dynamic: "strict",
      properties: {
        timestamp: MILLISECONDS,
        src_ip: { type: "ip" },
        dst_ip: { type: "ip" },
        exporter_ip: { type: "ip" },
        src_port: { type: "integer" },
        dst_port: { type: "integer" },
        protocol: { type: "short" },
        ...counterFields("bytes"),
        ...counterFields("packets"),
        tcp_flags: { type: "integer", ...STORED_ONLY },
        first_seen: { ...MILLISECONDS, ...STORED_ONLY },
        last_seen: { ...MILLISECONDS, ...STORED_ONLY },
        flow_version: { type: "short", ...STORED_ONLY },
        nat_src_ip: { type: "ip", doc_values: false },
        nat_dst_ip: { type: "ip", doc_values: false },
        nat_src_port: { type: "integer", doc_values: false },
        nat_dst_port: { type: "integer", doc_values: false },
        // Source and destination, because grouping by two fields takes six times as long.
        pair: { type: "keyword" },
        // The lower port, of protocols that have ports; 0: none.
        service_port: { type: "integer" },
        // The place of a row in its batch: the order of rows with equal times.
        batch: SUMMED_ONLY,
        row: { type: "integer", index: false },
      },
    },
  };
}

/** The parts of ids have fixed widths, so that ids compare like the numbers in them. */
const MINUTE_DIGITS = 6;
const BATCH_DIGITS = 11;
const ROW_DIGITS = 7;
const BATCH_BITS = 52;

const digits = (value: number, width: number) => value.toString(36).padStart(width, "0");

/** A number that stands for a batch. Rows of two batches meet only in a minute, of which few share one. */
function batchNumber(batchId: string): number {
  const digest = createHash("sha256").update(batchId).digest();
  return Number(digest.readBigUInt64BE() >> BigInt(64 - BATCH_BITS));
}

function flowId(timestamp: number, batch: number, row: number): string {
  const minute = digits(Math.floor(timestamp / FLOW_WINDOW_MS), MINUTE_DIGITS);
  return `flw_${minute}${digits(batch, BATCH_DIGITS)}${digits(row, ROW_DIGITS)}`;
}

/** Converts rows of a batch, one at a time: their texts are longer than the rows. */
export class FlowDocuments {
  readonly #rows: FlowRows;
  readonly #batch: number;
  readonly #texts = new AddressTexts();

  constructor(rows: FlowRows, batchId: string) {
    this.#rows = rows;
    this.#batch = batchNumber(batchId);
  }

  timestamp(row: number): number {
    return this.#rows.windowStart[row]! + FLOW_WINDOW_MS;
  }

  id(row: number): string {
    return flowId(this.timestamp(row), this.#batch, row);
  }

  text(row: number): string {
    const rows = this.#rows;
    const src = this.#texts.of(rows.src, row);
    const dst = this.#texts.of(rows.dst, row);
    const [srcPort, dstPort] = [rows.srcPort[row]!, rows.dstPort[row]!];
    const protocol = rows.protocol[row]!;
    return (
      `{"timestamp":${this.timestamp(row)},"src_ip":"${src}","dst_ip":"${dst}",` +
      `"exporter_ip":"${this.#texts.of(rows.exporter, row)}","src_port":${srcPort},"dst_port":${dstPort},` +
      `"protocol":${protocol},${counterText("bytes", rows.bytes[row]!)},${counterText("packets", rows.packets[row]!)},` +
      `"tcp_flags":${rows.tcpFlags[row]},"first_seen":${rows.firstSeen[row]},"last_seen":${rows.lastSeen[row]},` +
      `"flow_version":${rows.version[row]},${this.#natText(row)}"pair":"${src} ${dst}",` +
      `"service_port":${servicePort(protocol, srcPort, dstPort)},"batch":${this.#batch},"row":${row}}`
    );
  }

  #natText(row: number): string {
    const { nat } = this.#rows;
    if (nat === null) return "";
    const end = (name: string, address: string, port: number) =>
      address === "::" ? "" : `"nat_${name}_ip":"${address}",${port === 0 ? "" : `"nat_${name}_port":${port},`}`;
    return (
      end("src", this.#texts.of(nat.src, row), nat.srcPort[row]!) +
      end("dst", this.#texts.of(nat.dst, row), nat.dstPort[row]!)
    );
  }
}

/** Spells addresses; a batch has few different ones for its rows. */
class AddressTexts {
  readonly #known = new Map<bigint, string>();

  of(column: Uint8Array, row: number): string {
    const at = row * ADDRESS_BYTES;
    const view = new DataView(column.buffer, column.byteOffset + at, ADDRESS_BYTES);
    const value = (view.getBigUint64(0) << 64n) | view.getBigUint64(8);
    let text = this.#known.get(value);
    if (text === undefined) this.#known.set(value, (text = formatAddress(value)));
    return text;
  }
}

function servicePort(protocol: number, srcPort: number, dstPort: number): number {
  if (!(PROTOCOLS_WITH_PORTS as readonly number[]).includes(protocol)) return 0;
  return srcPort === 0 || dstPort === 0 ? Math.max(srcPort, dstPort) : Math.min(srcPort, dstPort);
}

function counterText(measure: Measure, value: bigint): string {
  const whole = `"${measure}":${value > LONG_MAX ? LONG_MAX : value}`;
  if (value < BigInt(LIMB_MIN)) return whole;
  const [low, middle, high] = [value & LIMB, (value >> LIMB_BITS) & LIMB, value >> (2n * LIMB_BITS)];
  const over = value > LONG_MAX ? `,"${measure}_over":${value - LONG_MAX - 1n}` : "";
  const highest = high === 0n ? "" : `,"${measure}_high":${high}`;
  return `${whole},"${measure}_low":${low},"${measure}_middle":${middle}${highest}${over}`;
}

/** Adds up sums of limbs, or the limbs of one counter. */
export function fromLimbs(low: bigint, middle: bigint, high: bigint): bigint {
  return low + (middle << LIMB_BITS) + (high << (2n * LIMB_BITS));
}

/** A stored document. Integers beyond 2^53 are bigints. */
export type FlowSource = Readonly<Record<string, string | number | bigint | undefined>>;

function counterOf(source: FlowSource, measure: (typeof MEASURES)[number]): bigint {
  if (source[`${measure}_low`] === undefined) return BigInt(source[measure]!);
  const limb = (name: string) => BigInt(source[`${measure}_${name}`] ?? 0);
  return fromLimbs(limb("low"), limb("middle"), limb("high"));
}

export function flowOf(source: FlowSource): Flow {
  const number = (name: string) => Number(source[name]);
  const text = (name: string) => String(source[name]);
  const timestamp = number("timestamp");
  return {
    id: flowId(timestamp, number("batch"), number("row")),
    windowStartMs: timestamp - FLOW_WINDOW_MS,
    src: text("src_ip"),
    dst: text("dst_ip"),
    srcPort: number("src_port"),
    dstPort: number("dst_port"),
    protocol: number("protocol"),
    tcpFlags: number("tcp_flags"),
    bytes: counterOf(source, "bytes"),
    packets: counterOf(source, "packets"),
    firstSeenMs: number("first_seen"),
    lastSeenMs: number("last_seen"),
    exporter: text("exporter_ip"),
    version: number("flow_version"),
    natSrc: source["nat_src_ip"] === undefined ? null : text("nat_src_ip"),
    natDst: source["nat_dst_ip"] === undefined ? null : text("nat_dst_ip"),
    natSrcPort: source["nat_src_port"] === undefined ? null : number("nat_src_port"),
    natDstPort: source["nat_dst_port"] === undefined ? null : number("nat_dst_port"),
  };
}
