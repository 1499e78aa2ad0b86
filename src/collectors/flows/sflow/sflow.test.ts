import { describe, expect, test } from "vitest";
import {
  Bytes,
  concat,
  ethernet,
  flowSample,
  ipv4,
  ipv4Packet,
  ipv6Packet,
  rawHeader,
  sflow,
  tcpHeader,
  udpHeader,
} from "../packets.fixture.ts";
import { NO_NAT, PacketReader } from "../decoded-flows.fixture.ts";
import { ipv6, T0 } from "../netflow/netflow-records.fixture.ts";

const tcp = ipv4Packet("10.0.0.1", "10.0.0.2", 6, tcpHeader(40_000, 443, 0x12));
const sampleOf = (frame: Uint8Array, length = 1000, protocol = 1) =>
  flowSample([rawHeader(frame, length, protocol)], 100);

function readOne(sample: Uint8Array) {
  const reader = new PacketReader();
  const flows = reader.read(sflow([sample]), { atMs: T0 });
  return { flow: flows[0], flows, status: reader.status() };
}

test("a sampled packet becomes a flow of as many packets as the rate, with the IP length, at its time of arrival", () => {
  expect(readOne(sampleOf(ethernet(tcp), 1514)).flow).toEqual({
    src: "10.0.0.1",
    dst: "10.0.0.2",
    srcPort: 40_000,
    dstPort: 443,
    protocol: 6,
    tcpFlags: 0x12,
    bytes: 4_000n,
    packets: 100n,
    firstSeen: T0,
    lastSeen: T0,
    version: 105,
    ...NO_NAT,
  });
});

test("an expanded sample is read the same way", () => {
  const sample = flowSample([rawHeader(ethernet(tcp), 1514)], 2 ** 31, true);
  expect(readOne(sample).flow).toMatchObject({ packets: 2n ** 31n, bytes: 40n * 2n ** 31n });
});

test("a packet without a length in its header gets that of its frame, without the link headers", () => {
  const lengthless = tcp.slice().fill(0, 2, 4);
  expect(readOne(sampleOf(ethernet(lengthless, { vlans: [0x8100] }), 1518)).flow).toMatchObject({ bytes: 150_000n });
});

describe("the sampled header", () => {
  const udp6 = ipv6Packet(ipv6(1), ipv6(2), 17, udpHeader(5353, 53));
  test.each([
    ["a VLAN tag", ethernet(tcp, { vlans: [0x8100] }), { dstPort: 443 }],
    ["two VLAN tags", ethernet(tcp, { vlans: [0x88a8, 0x8100] }), { dstPort: 443 }],
    ["three MPLS labels", ethernet(tcp, { mpls: 3 }), { dstPort: 443 }],
    ["IPv6", ethernet(udp6), { src: "2001:db8::1", dst: "2001:db8::2", srcPort: 5353, dstPort: 53, protocol: 17 }],
    [
      "IPv6 with extension headers",
      ethernet(
        ipv6Packet(
          ipv6(1),
          ipv6(2),
          0,
          concat(Uint8Array.of(60, 0, 0, 0, 0, 0, 0, 0, 17, 1), new Uint8Array(14), udpHeader(1, 2)),
        ),
      ),
      { protocol: 17, srcPort: 1, dstPort: 2 },
    ],
    [
      "a later IPv6 fragment, which has no ports",
      ethernet(ipv6Packet(ipv6(1), ipv6(2), 44, concat(Uint8Array.of(17, 0, 0, 8, 0, 0, 0, 0), udpHeader(1, 2)))),
      { protocol: 17, srcPort: 0, dstPort: 0 },
    ],
    [
      "a later IPv4 fragment, which has no ports",
      ethernet(ipv4Packet("10.0.0.1", "10.0.0.2", 17, udpHeader(1, 2), 100)),
      { protocol: 17, srcPort: 0, dstPort: 0 },
    ],
    [
      "ICMP, with type and code as the destination port",
      ethernet(ipv4Packet("10.0.0.1", "10.0.0.2", 1, Uint8Array.of(8, 3, 0, 0))),
      { protocol: 1, srcPort: 0, dstPort: 0x0803 },
    ],
    ["PPPoE", ethernet(concat(Uint8Array.of(0x11, 0, 0, 1, 0, 42, 0, 0x21), tcp), { type: 0x8864 }), { dstPort: 443 }],
    ["a header that ends before its ports", ethernet(tcp).subarray(0, 36), { protocol: 6, srcPort: 0, dstPort: 0 }],
  ])("%s", (_, frame, expected) => {
    expect(readOne(sampleOf(frame)).flow).toMatchObject(expected);
  });

  test("IP without an Ethernet header", () => {
    expect(readOne(sampleOf(tcp, 1000, 11)).flow).toMatchObject({ dstPort: 443 });
    expect(readOne(sampleOf(udp6, 1000, 12)).flow).toMatchObject({ dstPort: 53 });
  });

  test.each([
    ["ARP", ethernet(new Uint8Array(28), { type: 0x0806 })],
    ["a header that ends within the addresses", ethernet(tcp).subarray(0, 33)],
    ["an empty header", new Uint8Array(0)],
    ["an unknown version of IP", ethernet(Uint8Array.of(0x75, ...tcp.subarray(1)), { type: 0x0800 })],
  ])("%s is dropped and counted", (_, frame) => {
    const { flows, status } = readOne(sampleOf(frame));
    expect(flows).toEqual([]);
    expect(status).toMatchObject({ drops: { no_address: 1 }, records: 0 });
  });
});

test("records with addresses and ports instead of a header are read", () => {
  const v4 = new Bytes().put(3, 4).put(32, 4).put(500, 4).put(17, 4).append(ipv4("10.0.0.1")).append(ipv4("10.0.0.2"));
  v4.put(1000, 4).put(53, 4).put(0, 4).put(0, 4);
  expect(readOne(flowSample([v4.build()], 10)).flow).toMatchObject({ src: "10.0.0.1", dstPort: 53, bytes: 5000n });
  const v6 = new Bytes().put(4, 4).put(56, 4).put(500, 4).put(6, 4).append(ipv6(1)).append(ipv6(2));
  v6.put(1000, 4).put(443, 4).put(2, 4).put(0, 4);
  expect(readOne(flowSample([v6.build()], 10)).flow).toMatchObject({ dst: "2001:db8::2", tcpFlags: 2, dstPort: 443 });
});

test("counters, unknown samples and unknown records are skipped", () => {
  const counters = new Bytes().put(2, 4).put(8, 4).zeros(8).build();
  const foreign = new Bytes()
    .put((4413 << 12) | 1, 4)
    .put(12, 4)
    .zeros(12)
    .build();
  const extended = new Bytes().put(1001, 4).put(16, 4).zeros(16).build();
  const sample = flowSample([extended, rawHeader(ethernet(tcp), 60)]);
  const reader = new PacketReader();
  expect(reader.read(sflow([counters, foreign, sample, counters, sample]))).toHaveLength(2);
});

test("missing datagrams are counted; an agent may have an IPv6 address", () => {
  const reader = new PacketReader();
  const agent = ipv6(9);
  for (const sequence of [7, 8, 11]) reader.read(sflow([sampleOf(ethernet(tcp))], { sequence, agent }));
  expect(reader.status()).toMatchObject({ gaps: 1, lost: 2, records: 3, versions: [105] });
});

describe("bad input", () => {
  const whole = sflow([sampleOf(ethernet(tcp)), sampleOf(ethernet(tcp))]);

  test.each(Array.from({ length: whole.length }, (_, length) => length))(
    "a datagram truncated to %i bytes",
    (length) => {
      const reader = new PacketReader();
      expect(reader.read(whole.subarray(0, length)).length).toBeLessThanOrEqual(1);
      const { drops } = reader.status();
      expect(drops.truncated + drops.unknown_version).toBeGreaterThan(0);
    },
  );

  test("a wrong count of samples or records", () => {
    const many = new PacketReader();
    expect(many.read(sflow([sampleOf(ethernet(tcp))], { samples: 5 }))).toHaveLength(1);
    expect(many.status().drops.truncated).toBe(1);
    const absurd = new PacketReader();
    expect(absurd.read(sflow([], { samples: 2 ** 32 - 1 }))).toEqual([]);
    expect(absurd.status().drops.malformed).toBe(1);
    const sample = sampleOf(ethernet(tcp));
    new DataView(sample.buffer).setUint32(8 + 28, 2 ** 32 - 1);
    expect(readOne(sample).flows).toHaveLength(1);
  });

  test("an agent address of an unknown type", () => {
    const datagram = whole.slice();
    new DataView(datagram.buffer).setUint32(4, 3);
    const reader = new PacketReader();
    expect(reader.read(datagram)).toEqual([]);
    expect(reader.status().drops.malformed).toBe(1);
  });
});
