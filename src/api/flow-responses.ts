import { z } from "zod";
import { MEASURES, SPLITS } from "../model/flow-query.ts";

// Response schemas and examples of the flow endpoints.

/** An integer of any size: a 64-bit counter or a sum of them. */
const count = (description: string) => z.number().describe(description).meta({ type: "integer", format: "int64" });
const port = z.int().min(0).max(65_535);
const natPort = z.int().min(1).max(65_535).nullable();
const time = (description: string) => z.int().describe(`${description}, in milliseconds since 1970`);

const flowSchema = z
  .object({
    id: z.string().describe("flw_…"),
    timestamp: time("the same as window_end"),
    window_start: time("start of the minute"),
    window_end: time("end of the minute"),
    src_ip: z.string(),
    dst_ip: z.string(),
    src_hostname: z.string().nullable().describe("null: not resolved, or not yet"),
    dst_hostname: z.string().nullable().describe("null: not resolved, or not yet"),
    src_port: port,
    dst_port: port,
    protocol: z.int().min(0).max(255).describe("IANA protocol number"),
    protocol_name: z.string().describe("IANA name, or the number if it has none"),
    bytes: count("with the sampling rate applied"),
    packets: count("with the sampling rate applied"),
    tcp_flags: z.int().describe("bitwise OR of all TCP flags seen"),
    first_seen_ms: time("first packet"),
    last_seen_ms: time("last packet"),
    exporter_ip: z.string(),
    version: z.int().describe("export version: 5, 9, 10 (IPFIX), 105 (sFlow v5), 106 (EVE)"),
    nat_src_ip: z.string().nullable().describe("source address after NAT; null without a translation"),
    nat_dst_ip: z.string().nullable().describe("destination address after NAT; null without a translation"),
    nat_src_port: natPort.describe("source port after NAT; null without a translation, or if not reported"),
    nat_dst_port: natPort.describe("destination port after NAT; null without a translation, or if not reported"),
  })
  .meta({ id: "Flow" });

export const flowListSchema = z
  .object({
    total: z.int().describe("all matching flows"),
    offset: z.int(),
    limit: z.int(),
    flows: z.array(flowSchema),
  })
  .meta({ id: "FlowList" });

const sums = {
  bytes: count("sum over the flows"),
  packets: count("sum over the flows"),
  flow_count: z.int().describe("number of flows"),
};

export const talkerSchema = z
  .object({ key: z.string().describe("an address, `<source> → <destination>`, or a port"), ...sums })
  .meta({ id: "TopTalker" });

export const protocolSchema = z.object({ protocol: z.string(), ...sums }).meta({ id: "ProtocolTotal" });

const counts = z.array(count("one for each timestamp"));

export const timeseriesSchema = z
  .object({
    from: time("inclusive"),
    to: time("exclusive"),
    interval_secs: z.int(),
    split: z.enum(SPLITS).nullable(),
    by: z.enum(MEASURES),
    timestamps: z.array(time("start of a point")),
    series: z
      .array(
        z.object({
          key: z
            .string()
            .describe("the value of the split field; `other` for the remaining ones, `all` without a split"),
          bytes: counts,
          packets: counts,
          flow_count: counts,
        }),
      )
      .describe("highest sums first, `other` last"),
    previous: z
      .object({
        from: time("inclusive"),
        to: time("exclusive"),
        bytes: counts,
        packets: counts,
        flow_count: counts,
      })
      .optional()
      .describe("with `compare=previous`: all matching traffic of the range directly before"),
  })
  .meta({ id: "FlowTimeseries" });

const END = Date.UTC(2026, 10, 15, 8, 30);

export const FLOW_EXAMPLE = {
  id: `flw_${END.toString(16).padStart(12, "0")}0000001f4a`,
  timestamp: END,
  window_start: END - 60_000,
  window_end: END,
  src_ip: "10.20.1.14",
  dst_ip: "192.0.2.80",
  src_hostname: null,
  dst_hostname: "www.example.org",
  src_port: 51_514,
  dst_port: 443,
  protocol: 6,
  protocol_name: "TCP",
  bytes: 184_320,
  packets: 214,
  tcp_flags: 27,
  first_seen_ms: END - 48_200,
  last_seen_ms: END - 3_100,
  exporter_ip: "10.20.0.1",
  version: 9,
  nat_src_ip: "203.0.113.1",
  nat_dst_ip: null,
  nat_src_port: 61_000,
  nat_dst_port: null,
};

export const TALKERS_EXAMPLE = [
  { key: "10.20.1.14", bytes: 7_340_032, packets: 8_214, flow_count: 96 },
  { key: "10.20.2.31", bytes: 1_048_576, packets: 1_702, flow_count: 41 },
];

export const PROTOCOLS_EXAMPLE = [
  { protocol: "TCP", bytes: 8_120_448, packets: 9_316, flow_count: 118 },
  { protocol: "UDP", bytes: 268_160, packets: 600, flow_count: 19 },
];

export const TIMESERIES_EXAMPLE = {
  from: END - 600_000,
  to: END,
  interval_secs: 300,
  split: "protocol",
  by: "bytes",
  timestamps: [END - 600_000, END - 300_000],
  series: [
    { key: "TCP", bytes: [4_120_000, 4_000_448], packets: [4_700, 4_616], flow_count: [60, 58] },
    { key: "other", bytes: [134_080, 134_080], packets: [300, 300], flow_count: [10, 9] },
  ],
};
