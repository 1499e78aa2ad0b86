// The template fields that are read, and the slots that their values fill. All other fields are skipped by their length.

/** Slots of a record. */
export const SRC_IPV4 = 0;
export const DST_IPV4 = 1;
export const SRC_IPV6 = 2;
export const DST_IPV6 = 3;
export const SRC_PORT = 4;
export const DST_PORT = 5;
export const PROTOCOL = 6;
export const TCP_FLAGS = 7;
export const ICMP = 8;
export const ICMP_TYPE = 9;
export const ICMP_CODE = 10;
export const BYTES = 11;
export const PACKETS = 12;
export const START = 13;
export const END = 14;
export const DURATION = 15;
export const REVERSE_BYTES = 16;
export const REVERSE_PACKETS = 17;
export const REVERSE_FLAGS = 18;
export const REVERSE_START = 19;
export const REVERSE_END = 20;
export const FLOW_ID = 21;
export const SYSTEM_START = 22;
export const SAMPLER = 23;
export const SAMPLING_INTERVAL = 24;
export const SAMPLING_PACKETS = 25;
export const SAMPLING_SPACE = 26;
export const SAMPLING_SIZE = 27;
export const SAMPLING_POPULATION = 28;
export const SAMPLING_PROBABILITY = 29;
/** A wireless client, in records with only one address and the direction. */
export const STATION_IPV4 = 30;
export const DIRECTION = 31;
/** The first bytes of a sampled packet instead of addresses: from its IP header on, or as a frame. */
export const IP_SECTION = 32;
export const FRAME_SECTION = 33;
export const FRAME_BYTES = 34;
/** Addresses and ports after NAT. */
export const NAT_SRC_IPV4 = 35;
export const NAT_DST_IPV4 = 36;
export const NAT_SRC_IPV6 = 37;
export const NAT_DST_IPV6 = 38;
export const NAT_SRC_PORT = 39;
export const NAT_DST_PORT = 40;
/** The NAT event (RFC 8158); 0 for none. */
export const NAT_EVENT = 41;
export const SLOT_COUNT = 42;

/** Units of time fields. */
const TIME_NONE = 0;
export const TIME_UPTIME = 1;
export const TIME_SECONDS = 2;
export const TIME_MILLISECONDS = 3;
export const TIME_NTP = 4;
/** Microseconds before the export. */
export const TIME_BEFORE_EXPORT = 5;
export const TIME_MICROSECONDS = 6;

export interface FieldMapping {
  readonly slot: number;
  /** If a template has several fields for a slot, the one with the highest rank fills it. */
  readonly rank: number;
  readonly lengthMin: number;
  readonly lengthMax: number;
  readonly time: number;
  /** A total counter (since the start of the flow), as opposed to a delta counter. */
  readonly total: boolean;
}

interface FieldOverrides {
  readonly rank?: number;
  readonly time?: number;
  readonly total?: boolean;
}

const field = (
  id: number,
  slot: number,
  lengthMin: number,
  lengthMax: number,
  { rank = 9, time = TIME_NONE, total = false }: FieldOverrides = {},
): [number, FieldMapping] => [id, { slot, lengthMin, lengthMax, rank, time, total }];

/** The maximum size of a datagram. */
const SECTION_BYTES_MAX = 65_535;

/** By number in the IANA registry of IPFIX information elements, which includes v9's field types. */
const FIELDS: ReadonlyMap<number, FieldMapping> = new Map([
  field(8, SRC_IPV4, 4, 4),
  field(12, DST_IPV4, 4, 4),
  field(27, SRC_IPV6, 16, 16),
  field(28, DST_IPV6, 16, 16),
  field(366, STATION_IPV4, 4, 4),
  field(61, DIRECTION, 1, 1),
  field(7, SRC_PORT, 1, 4),
  field(180, SRC_PORT, 1, 4, { rank: 8 }),
  field(182, SRC_PORT, 1, 4, { rank: 8 }),
  field(11, DST_PORT, 1, 4),
  field(181, DST_PORT, 1, 4, { rank: 8 }),
  field(183, DST_PORT, 1, 4, { rank: 8 }),
  field(4, PROTOCOL, 1, 4),
  field(6, TCP_FLAGS, 1, 4),
  field(32, ICMP, 2, 4),
  field(139, ICMP, 2, 4, { rank: 8 }),
  field(176, ICMP_TYPE, 1, 4),
  field(177, ICMP_CODE, 1, 4),
  field(178, ICMP_TYPE, 1, 4, { rank: 8 }),
  field(179, ICMP_CODE, 1, 4, { rank: 8 }),

  field(1, BYTES, 1, 8),
  field(85, BYTES, 1, 8, { rank: 8, total: true }),
  field(231, BYTES, 1, 8, { rank: 7 }),
  field(23, BYTES, 1, 8, { rank: 6 }),
  field(352, BYTES, 1, 8, { rank: 5 }),
  field(2, PACKETS, 1, 8),
  field(86, PACKETS, 1, 8, { rank: 8, total: true }),
  field(298, PACKETS, 1, 8, { rank: 7 }),
  field(24, PACKETS, 1, 8, { rank: 6 }),
  // Traffic of the responder, in firewall records of a whole connection.
  field(232, REVERSE_BYTES, 1, 8, { rank: 7 }),
  field(299, REVERSE_PACKETS, 1, 8, { rank: 7 }),

  field(152, START, 1, 8, { time: TIME_MILLISECONDS }),
  field(154, START, 8, 8, { rank: 8, time: TIME_NTP }),
  field(156, START, 8, 8, { rank: 8, time: TIME_NTP }),
  field(150, START, 1, 8, { rank: 7, time: TIME_SECONDS }),
  field(22, START, 1, 4, { rank: 6, time: TIME_UPTIME }),
  field(158, START, 1, 4, { rank: 5, time: TIME_BEFORE_EXPORT }),
  field(153, END, 1, 8, { time: TIME_MILLISECONDS }),
  field(155, END, 8, 8, { rank: 8, time: TIME_NTP }),
  field(157, END, 8, 8, { rank: 8, time: TIME_NTP }),
  field(151, END, 1, 8, { rank: 7, time: TIME_SECONDS }),
  field(21, END, 1, 4, { rank: 6, time: TIME_UPTIME }),
  field(159, END, 1, 4, { rank: 5, time: TIME_BEFORE_EXPORT }),
  // Observation times: the only times in records of single events.
  field(323, END, 1, 8, { rank: 4, time: TIME_MILLISECONDS }),
  field(324, END, 8, 8, { rank: 3, time: TIME_NTP }),
  field(325, END, 8, 8, { rank: 3, time: TIME_NTP }),
  field(322, END, 1, 8, { rank: 2, time: TIME_SECONDS }),
  field(161, DURATION, 1, 4, { time: TIME_MILLISECONDS }),
  field(162, DURATION, 1, 4, { rank: 8, time: TIME_MICROSECONDS }),

  field(225, NAT_SRC_IPV4, 4, 4),
  field(226, NAT_DST_IPV4, 4, 4),
  field(227, NAT_SRC_PORT, 1, 4),
  field(228, NAT_DST_PORT, 1, 4),
  field(281, NAT_SRC_IPV6, 16, 16),
  field(282, NAT_DST_IPV6, 16, 16),
  field(230, NAT_EVENT, 1, 4),
  // The same in NSEL of Cisco ASA 8.4. They cannot occur in IPFIX, where the highest bit marks an enterprise field.
  field(40_001, NAT_SRC_IPV4, 4, 4, { rank: 8 }),
  field(40_002, NAT_DST_IPV4, 4, 4, { rank: 8 }),
  field(40_003, NAT_SRC_PORT, 1, 4, { rank: 8 }),
  field(40_004, NAT_DST_PORT, 1, 4, { rank: 8 }),

  field(313, IP_SECTION, 1, SECTION_BYTES_MAX),
  field(315, FRAME_SECTION, 1, SECTION_BYTES_MAX),
  field(312, FRAME_BYTES, 1, 4),
  field(148, FLOW_ID, 1, 8),
  field(160, SYSTEM_START, 1, 8),
  field(48, SAMPLER, 1, 4),
  field(302, SAMPLER, 1, 8, { rank: 8 }),
  field(34, SAMPLING_INTERVAL, 1, 4),
  field(50, SAMPLING_INTERVAL, 1, 4, { rank: 8 }),
  field(305, SAMPLING_PACKETS, 1, 4),
  field(306, SAMPLING_SPACE, 1, 4),
  field(309, SAMPLING_SIZE, 1, 4),
  field(310, SAMPLING_POPULATION, 1, 4),
  field(311, SAMPLING_PROBABILITY, 8, 8),
]);

/** The enterprise number of reverse fields (RFC 5103). */
const REVERSE_ENTERPRISE = 29_305;

const REVERSE_SLOTS: Readonly<Record<number, number>> = {
  [BYTES]: REVERSE_BYTES,
  [PACKETS]: REVERSE_PACKETS,
  [TCP_FLAGS]: REVERSE_FLAGS,
  [START]: REVERSE_START,
  [END]: REVERSE_END,
};

export function findField(enterprise: number, id: number): FieldMapping | undefined {
  const found = FIELDS.get(id);
  if (!found || enterprise === 0) return found;
  if (enterprise !== REVERSE_ENTERPRISE) return undefined;
  const slot = REVERSE_SLOTS[found.slot];
  return slot === undefined ? undefined : { ...found, slot };
}
