import { protocolName } from "../../../model/protocol.ts";
import type { JsonObject } from "../../../model/event.ts";
import { addressOf, integerOf, objectOf, portOf } from "../device-values.ts";
import type { ReadContext, ParsedFlow } from "../reading.ts";
import { readAnyTime } from "../device-times.ts";

// Flow records of an IDS. A `flow` record has both directions and becomes two flows; a `netflow` record has one.

const PROTOCOLS_MAX = 255;
let protocols: ReadonlyMap<string, number> | undefined;

interface Ends {
  readonly srcIp: string;
  readonly dstIp: string;
  readonly srcPort: number;
  readonly dstPort: number;
  readonly protocol: number;
}

/** Returns both directions, without an empty one; nothing if the record is incomplete. */
export function readFlow(record: JsonObject, context: ReadContext): ParsedFlow[] {
  const ends = readEnds(record);
  const flow = objectOf(record["flow"]);
  if (!ends || !flow) return [];
  const times = readTimes(record, flow, context);
  const tcp = objectOf(record["tcp"]);
  const toServer = {
    ...ends,
    ...times,
    bytes: integerOf(flow["bytes_toserver"]) ?? 0,
    packets: integerOf(flow["pkts_toserver"]) ?? 0,
    tcpFlags: flagsOf(tcp?.["tcp_flags_ts"]),
  };
  const toClient = {
    srcIp: ends.dstIp,
    dstIp: ends.srcIp,
    srcPort: ends.dstPort,
    dstPort: ends.srcPort,
    protocol: ends.protocol,
    ...times,
    bytes: integerOf(flow["bytes_toclient"]) ?? 0,
    packets: integerOf(flow["pkts_toclient"]) ?? 0,
    tcpFlags: flagsOf(tcp?.["tcp_flags_tc"]),
  };
  return [toServer, toClient].filter(({ bytes, packets }) => bytes > 0 || packets > 0);
}

export function readNetflow(record: JsonObject, context: ReadContext): ParsedFlow[] {
  const ends = readEnds(record);
  const flow = objectOf(record["netflow"]);
  if (!ends || !flow) return [];
  const bytes = integerOf(flow["bytes"]) ?? 0;
  const packets = integerOf(flow["pkts"]) ?? 0;
  if (bytes === 0 && packets === 0) return [];
  const tcpFlags = flagsOf(objectOf(record["tcp"])?.["tcp_flags"]);
  return [{ ...ends, ...readTimes(record, flow, context), bytes, packets, tcpFlags }];
}

function readEnds(record: JsonObject): Ends | undefined {
  const srcIp = addressOf(record["src_ip"]);
  const dstIp = addressOf(record["dest_ip"]);
  const protocol = protocolNumber(record["proto"]);
  if (srcIp === undefined || dstIp === undefined || protocol === undefined) return undefined;
  const srcPort = portOf(record["src_port"]) ?? 0;
  const dstPort = portOf(record["dest_port"]) ?? 0;
  return { srcIp, dstIp, srcPort, dstPort, protocol };
}

/** Start and end; the time of the record stands in for missing ones. */
function readTimes(record: JsonObject, flow: JsonObject, context: ReadContext): { firstMs: number; lastMs: number } {
  const recordMs = readAnyTime(record["timestamp"], context) ?? context.nowMs;
  const lastMs = readAnyTime(flow["end"], context) ?? recordMs;
  const firstMs = readAnyTime(flow["start"], context) ?? lastMs;
  return { firstMs: Math.min(firstMs, lastMs), lastMs };
}

/** Number of a protocol, by its name or number. */
export function protocolNumber(value: unknown): number | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const number = integerOf(value);
  if (number !== undefined) return number <= PROTOCOLS_MAX ? number : undefined;
  protocols ??= new Map(
    Array.from({ length: PROTOCOLS_MAX + 1 }, (_, index) => [protocolName(index).toLowerCase(), index]),
  );
  return protocols.get(String(value).toLowerCase());
}

/** TCP flags in two hexadecimal digits. */
function flagsOf(value: unknown): number {
  return typeof value === "string" && /^[0-9a-fA-F]{1,2}$/.test(value) ? Number.parseInt(value, 16) : 0;
}
