import { parseCidr } from "../lib/ip.ts";

// Builds small MMDB files.

type Value = string | number | bigint | readonly Value[] | { readonly [key: string]: Value };

function control(type: number, size: number): number[] {
  const extended = type > 7;
  const first = extended ? 0 : type << 5;
  const rest = extended ? [type - 7] : [];
  return size < 29 ? [first | size, ...rest] : [first | 29, ...rest, size - 29];
}

function encode(value: Value): number[] {
  if (typeof value === "string") {
    const bytes = [...Buffer.from(value)];
    return [...control(2, bytes.length), ...bytes];
  }
  if (typeof value === "number") return [...control(6, 4), ...bytesOf(BigInt(value), 4)];
  if (typeof value === "bigint") return [...control(9, 8), ...bytesOf(value, 8)];
  if (Array.isArray(value)) return [...control(11, value.length), ...(value as readonly Value[]).flatMap(encode)];
  const entries = Object.entries(value);
  return [...control(7, entries.length), ...entries.flatMap(([key, item]) => [...encode(key), ...encode(item)])];
}

function bytesOf(value: bigint, count: number): number[] {
  return Array.from({ length: count }, (_, i) => Number((value >> BigInt(8 * (count - 1 - i))) & 0xffn));
}

function nodeBytes(left: bigint, right: bigint, recordSize: number): number[] {
  if (recordSize !== 28) return [...bytesOf(left, recordSize / 8), ...bytesOf(right, recordSize / 8)];
  const middle = Number(((left >> 24n) << 4n) | (right >> 24n));
  return [...bytesOf(left & 0xffffffn, 3), middle, ...bytesOf(right & 0xffffffn, 3)];
}

/** A file with these networks; `six: false` makes it IPv4 only. */
export function makeMmdb(
  networks: Readonly<Record<string, Value>>,
  { six = true, kind = "Test", builtAt = 1_700_000_000, recordSize = 24 } = {},
): Buffer {
  const nodes: [number, number][] = [[-1, -1]];
  const data: number[] = [];
  const depth = six ? 128 : 32;
  for (const [network, record] of Object.entries(networks)) {
    const { from, to } = parseCidr(network)!;
    // IPv4 is at ::/96.
    const isFour = !network.includes(":");
    const start = isFour ? from & 0xffffffffn : from;
    const length = depth - ((to - from + 1n).toString(2).length - 1);
    let node = 0;
    for (let bit = 0; bit < length; bit++) {
      const side = Number((start >> BigInt(depth - 1 - bit)) & 1n) as 0 | 1;
      if (bit === length - 1) {
        nodes[node]![side] = -2 - data.length;
        data.push(...encode(record));
      } else {
        if (nodes[node]![side] === -1) nodes[node]![side] = nodes.push([-1, -1]) - 1;
        node = nodes[node]![side];
      }
    }
  }
  const point = (value: number) => (value === -1 ? nodes.length : value < 0 ? nodes.length + 16 + (-2 - value) : value);
  const tree = nodes.flatMap(([left, right]) => nodeBytes(BigInt(point(left)), BigInt(point(right)), recordSize));
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: BigInt(builtAt),
    database_type: kind,
    description: { en: "made for a test" },
    ip_version: six ? 6 : 4,
    languages: ["en"],
    node_count: nodes.length,
    record_size: recordSize,
  });
  const marker = [0xab, 0xcd, 0xef, ...Buffer.from("MaxMind.com")];
  return Buffer.from([...tree, ...Array.from({ length: 16 }, () => 0), ...data, ...marker, ...metadata]);
}
