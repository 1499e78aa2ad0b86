import { describe, expect, test } from "vitest";
import { v5 } from "../packets.fixture.ts";
import { NO_NAT, PacketReader } from "../decoded-flows.fixture.ts";

const flow = { src: "10.0.0.1", dst: "10.0.0.2", srcPort: 40_000, dstPort: 53, protocol: 17, flags: 0 };

test("every field of a record is read", () => {
  const packet = v5(
    [{ ...flow, bytes: 4_000_000_000, packets: 3_000_000_000, first: 90_000, last: 99_000, protocol: 6, flags: 27 }],
    { uptime: 100_000, seconds: 1_700_000_000, nanoseconds: 500_000_000 },
  );
  expect(new PacketReader().read(packet)).toEqual([
    {
      src: "10.0.0.1",
      dst: "10.0.0.2",
      srcPort: 40_000,
      dstPort: 53,
      protocol: 6,
      tcpFlags: 27,
      bytes: 4_000_000_000n,
      packets: 3_000_000_000n,
      firstSeen: 1_699_999_990_500,
      lastSeen: 1_699_999_999_500,
      version: 5,
      ...NO_NAT,
    },
  ]);
});

test("times are correct when the uptime wrapped around between the flow and its export", () => {
  const packet = v5([{ ...flow, first: 2 ** 32 - 5000, last: 2 ** 32 - 1000 }], { uptime: 1000 });
  expect(new PacketReader().read(packet)).toMatchObject([
    { firstSeen: 1_699_999_994_000, lastSeen: 1_699_999_998_000 },
  ]);
});

test.each([
  [0, 1n],
  [1, 1n],
  [100, 100n],
  [0x4000 | 100, 100n],
  [0xffff, 0x3fffn],
])("sampling %i in the header multiplies bytes and packets by %i", (sampling, rate) => {
  const reader = new PacketReader();
  expect(reader.read(v5([{ ...flow, bytes: 2 ** 32 - 1, packets: 7 }], { sampling }))).toMatchObject([
    { bytes: (2n ** 32n - 1n) * rate, packets: 7n * rate },
  ]);
  expect(reader.status().samplingRate).toBe(Number(rate));
});

describe("a malformed packet", () => {
  test("that declares more records than it holds is dropped as truncated", () => {
    const reader = new PacketReader();
    expect(reader.read(v5([flow], { count: 2 }))).toEqual([]);
    expect(reader.status()).toMatchObject({ drops: { truncated: 1 }, records: 0 });
    expect(reader.status().lastError!.message).toMatch(/72 bytes is shorter than its 2 records/);
  });

  test("that declares fewer records than it holds yields the declared number", () => {
    expect(new PacketReader().read(v5([flow, flow], { count: 1 }))).toHaveLength(1);
  });

  test.each([0, 1, 2, 3, 4, 23, 24, 71])("of %i bytes is dropped", (length) => {
    const reader = new PacketReader();
    expect(reader.read(v5([flow]).subarray(0, length))).toEqual([]);
    expect(reader.status().drops.truncated).toBe(1);
  });
});

describe("a sequence", () => {
  const numbered = (sequence: number, engine = 0) => v5([flow, flow], { sequence, engine });

  test("without a gap counts no loss, also across the wrap-around", () => {
    const reader = new PacketReader();
    for (const sequence of [2 ** 32 - 4, 2 ** 32 - 2, 0, 2]) reader.read(numbered(sequence));
    expect(reader.status()).toMatchObject({ gaps: 0, lost: 0 });
  });

  test("with a gap counts the missing flows", () => {
    const reader = new PacketReader();
    for (const sequence of [10, 12, 20, 22, 30]) reader.read(numbered(sequence));
    expect(reader.status()).toMatchObject({ gaps: 2, lost: 12 });
  });

  test("is tracked separately for each engine", () => {
    const reader = new PacketReader();
    for (const [sequence, engine] of [
      [0, 1],
      [500, 2],
      [2, 1],
      [502, 2],
    ] as const)
      reader.read(numbered(sequence, engine));
    expect(reader.status()).toMatchObject({ gaps: 0, lost: 0 });
  });

  test("that starts again is a restart, not a loss", () => {
    const reader = new PacketReader();
    for (const sequence of [100, 102, 0, 2, 4, 6, 8, 10]) reader.read(numbered(sequence));
    expect(reader.status()).toMatchObject({ gaps: 0, lost: 0 });
  });
});

describe("an exporter whose clock is off", () => {
  const YEAR_S = 365 * 86_400;
  const atMs = 1_700_000_000_000;

  test.each([-YEAR_S, YEAR_S, -3600, 3600])("by %i seconds is corrected and reported", (offset) => {
    const reader = new PacketReader(60_000);
    const packet = v5([{ ...flow, first: 90_000, last: 98_000 }], { seconds: 1_700_000_000 + offset });
    expect(reader.read(packet, { atMs })).toMatchObject([{ firstSeen: atMs - 10_000, lastSeen: atMs - 2000 }]);
    expect(reader.status()).toMatchObject({ clockCorrected: true, clockOffsetMs: offset * 1000 });
    expect(reader.status().summary).toMatch(
      new RegExp(`${Math.abs(offset)} seconds ${offset > 0 ? "ahead" : "behind"}`),
    );
    expect(reader.status().lastError, "it is not an error").toBeNull();
  });

  test("by less than the permitted skew is not corrected", () => {
    const reader = new PacketReader(60_000);
    expect(reader.read(v5([flow], { seconds: 1_700_000_030 }), { atMs })).toMatchObject([{ lastSeen: atMs + 30_000 }]);
    expect(reader.status().clockCorrected).toBe(false);
  });

  test("a flow that ends in the future ends at its receipt, and a flow that ends before its start has no duration", () => {
    const reader = new PacketReader(60_000);
    const [first, second] = reader.read(
      v5([
        { ...flow, first: 100_000, last: 100_000 + 86_400_000 },
        { ...flow, first: 99_000, last: 98_000 },
      ]),
      { atMs },
    );
    expect(first).toMatchObject({ lastSeen: atMs });
    expect(second).toMatchObject({ firstSeen: atMs - 2000, lastSeen: atMs - 2000 });
  });
});

test.each([
  [Uint8Array.of(0, 1, 0, 0), "version 1"],
  [Uint8Array.of(0, 7, 0, 0), "version 7"],
  [Uint8Array.of(0, 0, 0, 4, 0, 0), "version 0"],
  [Uint8Array.of(255, 255, 255, 255), "version 65535"],
])("an unknown version is dropped and reported with its number", (packet, message) => {
  const reader = new PacketReader();
  expect(reader.read(packet)).toEqual([]);
  expect(reader.status()).toMatchObject({ drops: { unknown_version: 1 }, state: "failing" });
  expect(reader.status().lastError!.message).toContain(message);
});
