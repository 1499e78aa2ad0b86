// Builds packets as exporters send them, for tests and benchmarks.

export class Bytes {
  readonly #parts: number[] = [];

  get length(): number {
    return this.#parts.length;
  }

  /** Appends an unsigned number of the given length. */
  put(value: number | bigint, bytes: number): this {
    const whole = BigInt.asUintN(bytes * 8, BigInt(value));
    for (let shift = BigInt(bytes - 1) * 8n; shift >= 0n; shift -= 8n)
      this.#parts.push(Number((whole >> shift) & 0xffn));
    return this;
  }

  append(bytes: Iterable<number>): this {
    for (const byte of bytes) this.#parts.push(byte);
    return this;
  }

  zeros(count: number): this {
    return this.append(new Uint8Array(count));
  }

  build(): Uint8Array {
    return Uint8Array.from(this.#parts);
  }
}

export const ipv4 = (text: string): Uint8Array => Uint8Array.from(text.split(".").map(Number));

export interface V5Flow {
  readonly src: string;
  readonly dst: string;
  readonly srcPort?: number;
  readonly dstPort?: number;
  readonly protocol?: number;
  readonly flags?: number;
  readonly bytes?: number;
  readonly packets?: number;
  /** Uptime in milliseconds. */
  readonly first?: number;
  readonly last?: number;
}

export interface V5Header {
  readonly count?: number;
  readonly uptime?: number;
  readonly seconds?: number;
  readonly nanoseconds?: number;
  readonly sequence?: number;
  readonly engine?: number;
  readonly sampling?: number;
}

export function v5(flows: readonly V5Flow[], header: V5Header = {}): Uint8Array {
  const { uptime = 100_000, seconds = 1_700_000_000, nanoseconds = 0, sequence = 0, engine = 0, sampling = 0 } = header;
  const bytes = new Bytes()
    .put(5, 2)
    .put(header.count ?? flows.length, 2)
    .put(uptime, 4)
    .put(seconds, 4);
  bytes.put(nanoseconds, 4).put(sequence, 4).put(engine, 2).put(sampling, 2);
  for (const flow of flows) {
    bytes.append(ipv4(flow.src)).append(ipv4(flow.dst)).zeros(8);
    bytes.put(flow.packets ?? 1, 4).put(flow.bytes ?? 100, 4);
    bytes.put(flow.first ?? uptime, 4).put(flow.last ?? flow.first ?? uptime, 4);
    bytes
      .put(flow.srcPort ?? 0, 2)
      .put(flow.dstPort ?? 0, 2)
      .zeros(1);
    bytes
      .put(flow.flags ?? 0, 1)
      .put(flow.protocol ?? 6, 1)
      .zeros(9);
  }
  return bytes.build();
}

export type FieldSpec = readonly [id: number, length: number, enterprise?: number];
/** The value of a field: a number, raw bytes, or text for a field of variable length. */
export type FieldValue = number | bigint | Uint8Array | string;

export const VARIABLE = 65_535;

export function set(id: number, content: Uint8Array, { length }: { length?: number } = {}): Uint8Array {
  return new Bytes()
    .put(id, 2)
    .put(length ?? content.length + 4, 2)
    .append(content)
    .build();
}

function fieldSpecs(fields: readonly FieldSpec[]): Bytes {
  const bytes = new Bytes();
  for (const [id, length, enterprise] of fields) {
    bytes.put(enterprise === undefined ? id : id | 0x8000, 2).put(length, 2);
    if (enterprise !== undefined) bytes.put(enterprise, 4);
  }
  return bytes;
}

/** The content of a template set. */
export function template(id: number, fields: readonly FieldSpec[], count = fields.length): Uint8Array {
  return new Bytes().put(id, 2).put(count, 2).append(fieldSpecs(fields).build()).build();
}

export function v9Options(id: number, scopes: readonly FieldSpec[], fields: readonly FieldSpec[]): Uint8Array {
  const bytes = new Bytes()
    .put(id, 2)
    .put(scopes.length * 4, 2)
    .put(fields.length * 4, 2);
  return bytes.append(fieldSpecs([...scopes, ...fields]).build()).build();
}

export function ipfixOptions(id: number, scopes: readonly FieldSpec[], fields: readonly FieldSpec[]): Uint8Array {
  const bytes = new Bytes()
    .put(id, 2)
    .put(scopes.length + fields.length, 2)
    .put(scopes.length, 2);
  return bytes.append(fieldSpecs([...scopes, ...fields]).build()).build();
}

export function record(fields: readonly FieldSpec[], values: readonly FieldValue[]): Uint8Array {
  const bytes = new Bytes();
  fields.forEach(([, length], index) => {
    const value = values[index]!;
    if (length !== VARIABLE) {
      if (typeof value === "number" || typeof value === "bigint") bytes.put(value, length);
      else bytes.append(typeof value === "string" ? new TextEncoder().encode(value) : value);
      return;
    }
    const content = typeof value === "string" ? new TextEncoder().encode(value) : (value as Uint8Array);
    if (content.length < 255) bytes.put(content.length, 1);
    else bytes.put(255, 1).put(content.length, 2);
    bytes.append(content);
  });
  return bytes.build();
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Bytes();
  for (const part of parts) bytes.append(part);
  return bytes.build();
}

export interface ExportHeader {
  readonly count?: number;
  readonly length?: number;
  readonly uptime?: number;
  readonly seconds?: number;
  readonly sequence?: number;
  readonly domain?: number;
}

export function v9(sets: readonly Uint8Array[], header: ExportHeader = {}): Uint8Array {
  const { count = sets.length, uptime = 100_000, seconds = 1_700_000_000, sequence = 0, domain = 0 } = header;
  const bytes = new Bytes().put(9, 2).put(count, 2).put(uptime, 4).put(seconds, 4).put(sequence, 4).put(domain, 4);
  return bytes.append(concat(...sets)).build();
}

export function ipfix(sets: readonly Uint8Array[], header: ExportHeader = {}): Uint8Array {
  const content = concat(...sets);
  const { length = content.length + 16, seconds = 1_700_000_000, sequence = 0, domain = 0 } = header;
  return new Bytes().put(10, 2).put(length, 2).put(seconds, 4).put(sequence, 4).put(domain, 4).append(content).build();
}

export interface SflowOptions {
  readonly sequence?: number;
  readonly samples?: number;
  readonly agent?: Uint8Array;
}

export function sflow(samples: readonly Uint8Array[], options: SflowOptions = {}): Uint8Array {
  const { agent = ipv4("192.0.2.1"), sequence = 1 } = options;
  const bytes = new Bytes()
    .put(5, 4)
    .put(agent.length === 4 ? 1 : 2, 4)
    .append(agent);
  bytes
    .put(0, 4)
    .put(sequence, 4)
    .put(1000, 4)
    .put(options.samples ?? samples.length, 4);
  return bytes.append(concat(...samples)).build();
}

export function flowSample(records: readonly Uint8Array[], rate = 1, expanded = false): Uint8Array {
  const body = new Bytes()
    .put(1, 4)
    .put(1, expanded ? 8 : 4)
    .put(rate, 4)
    .put(0, 8);
  body
    .put(0, expanded ? 16 : 8)
    .put(records.length, 4)
    .append(concat(...records));
  return new Bytes()
    .put(expanded ? 3 : 1, 4)
    .put(body.length, 4)
    .append(body.build())
    .build();
}

export function rawHeader(header: Uint8Array, frameLength: number, protocol = 1): Uint8Array {
  const padded = header.length + ((4 - (header.length % 4)) % 4);
  const bytes = new Bytes()
    .put(1, 4)
    .put(16 + padded, 4)
    .put(protocol, 4)
    .put(frameLength, 4)
    .put(4, 4);
  return bytes
    .put(header.length, 4)
    .append(header)
    .zeros(padded - header.length)
    .build();
}

export interface FrameOptions {
  readonly vlans?: readonly number[];
  readonly mpls?: number;
  readonly type?: number;
}

export function ethernet(inside: Uint8Array, { vlans = [], mpls = 0, type }: FrameOptions = {}): Uint8Array {
  const isV6 = inside[0]! >> 4 === 6;
  const bytes = new Bytes().zeros(12);
  for (const tag of vlans) bytes.put(tag, 2).put(7, 2);
  bytes.put(mpls > 0 ? 0x8847 : (type ?? (isV6 ? 0x86dd : 0x0800)), 2);
  for (let label = 1; label <= mpls; label++) bytes.put((label << 12) | (label === mpls ? 0x100 : 0) | 64, 4);
  return bytes.append(inside).build();
}

export function ipv4Packet(src: string, dst: string, protocol: number, inside: Uint8Array, fragment = 0): Uint8Array {
  const bytes = new Bytes()
    .put(0x45, 1)
    .zeros(1)
    .put(20 + inside.length, 2)
    .zeros(2)
    .put(fragment, 2)
    .put(64, 1);
  return bytes.put(protocol, 1).zeros(2).append(ipv4(src)).append(ipv4(dst)).append(inside).build();
}

export function ipv6Packet(src: Uint8Array, dst: Uint8Array, next: number, inside: Uint8Array): Uint8Array {
  const bytes = new Bytes().put(0x60000000, 4).put(inside.length, 2).put(next, 1).put(64, 1);
  return bytes.append(src).append(dst).append(inside).build();
}

export function tcpHeader(srcPort: number, dstPort: number, flags: number): Uint8Array {
  return new Bytes()
    .put(srcPort, 2)
    .put(dstPort, 2)
    .zeros(8)
    .put(0x5000 | flags, 2)
    .zeros(6)
    .build();
}

export function udpHeader(srcPort: number, dstPort: number): Uint8Array {
  return new Bytes().put(srcPort, 2).put(dstPort, 2).put(8, 2).zeros(2).build();
}
