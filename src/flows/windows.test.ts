import { execFileSync } from "node:child_process";
import { appendFile, copyFile, mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RecordBatch, setExactCounter } from "../collectors/records.ts";
import { NewerFile } from "../lib/newer-file.ts";
import type { FullDiskOutcome } from "./full-disk.fixture.ts";
import { refuseNewerWindows, WindowJournal } from "./journal.ts";
import { summarise } from "./summary.ts";
import type { FlowTable } from "./table.ts";
import { Windows, type WindowSettings } from "./windows.ts";

const MINUTE = 60_000;
const T0 = 1_700_000_070_000;
const SETTINGS: WindowSettings = { graceMs: 15_000, lateMaxMs: 3_600_000, rowsMax: 10_000 };

interface Record {
  readonly exporter?: number;
  readonly src?: number;
  readonly dst?: number;
  readonly srcPort?: number;
  readonly dstPort?: number;
  readonly protocol?: number;
  readonly flags?: number;
  readonly bytes?: bigint;
  readonly packets?: bigint;
  readonly first?: number;
  readonly last?: number;
}

function batchOf(records: readonly Record[]): RecordBatch {
  const batch = new RecordBatch(() => undefined);
  for (const record of records) {
    const row = batch.next();
    batch.exporter[row] = record.exporter ?? 0;
    batch.version[row] = 9;
    batch.protocol[row] = record.protocol ?? 6;
    batch.tcpFlags[row] = record.flags ?? 0;
    batch.ports[row] = (((record.srcPort ?? 0) << 16) | (record.dstPort ?? 0)) >>> 0;
    batch.src[row * 4 + 3] = record.src ?? 1;
    batch.dst[row * 4 + 3] = record.dst ?? 2;
    setExactCounter(batch.bytes, row, record.bytes ?? 100n);
    setExactCounter(batch.packets, row, record.packets ?? 1n);
    batch.lastSeen[row] = record.last ?? T0;
    batch.firstSeen[row] = record.first ?? batch.lastSeen[row]!;
  }
  return batch;
}

function open(settings: Partial<WindowSettings> = {}) {
  const closed: FlowTable[] = [];
  const tooLate: number[] = [];
  const book = {
    addressBytes: (index: number) => new Uint8Array(16).fill(index),
    tooLate: (index: number) => void tooLate.push(index),
    taken: () => undefined,
  };
  const windows = new Windows({ ...SETTINGS, ...settings }, book, "run", (table) => void closed.push(table));
  return { windows, closed, tooLate };
}

const rowsOf = (table: FlowTable) => {
  const rows = table.rows(0, table.count);
  return Array.from({ length: rows.count }, (_, row) => ({
    minute: rows.windowStart[row]! / MINUTE,
    src: new Uint32Array(rows.src.buffer)[row * 4 + 3]!,
    dst: new Uint32Array(rows.dst.buffer)[row * 4 + 3]!,
    protocol: rows.protocol[row]!,
    exporter: rows.exporter[row * 16]!,
    bytes: rows.bytes[row]!,
    packets: rows.packets[row]!,
    flags: rows.tcpFlags[row]!,
    first: rows.firstSeen[row]!,
    last: rows.lastSeen[row]!,
  }));
};

const sumOf = (tables: readonly FlowTable[]) => tables.flatMap(rowsOf).reduce((sum, { bytes }) => sum + bytes, 0n);

describe("a window", () => {
  test("adds up one tuple: bytes and packets exactly, flags together, the first and the last time", () => {
    const { windows, closed } = open();
    windows.add(
      batchOf([
        { bytes: 2n ** 63n - 1n, packets: 2n ** 40n, flags: 2, first: T0 - 500, last: T0 },
        { bytes: 1n, packets: 1n, flags: 16, first: T0 - 900, last: T0 - 100 },
        { bytes: 5n, flags: 1, first: T0 + 100, last: T0 + 900 },
      ]),
      T0 + 1000,
    );
    windows.closeAll();
    expect(closed.flatMap(rowsOf)).toMatchObject([
      { bytes: 2n ** 63n + 5n, packets: 2n ** 40n + 2n, flags: 19, first: T0 - 900, last: T0 + 900 },
    ]);
  });

  test("keeps counters at their maximum rather than beginning anew", () => {
    const { windows, closed } = open();
    windows.add(batchOf([{ bytes: 2n ** 64n - 1n }, { bytes: 2n ** 64n - 1n }]), T0);
    windows.closeAll();
    expect(closed.flatMap(rowsOf)).toMatchObject([{ bytes: 2n ** 64n - 1n }]);
  });

  test("tells apart exporter, both ends, both ports, protocol", () => {
    const { windows } = open();
    const other: Record[] = [
      {},
      { exporter: 1 },
      { src: 9 },
      { dst: 9 },
      { srcPort: 1 },
      { dstPort: 1 },
      { protocol: 17 },
    ];
    windows.add(batchOf([...other, ...other]), T0);
    expect(windows.openRows).toBe(other.length);
  });

  test("takes a flow by its end, and is closed a grace after its own", () => {
    const { windows, closed } = open();
    const start = Math.floor(T0 / MINUTE) * MINUTE;
    windows.add(batchOf([{ first: start - 30 * MINUTE, last: start + 1000 }]), start + 2000);
    windows.closeDue(start + MINUTE + 14_999);
    expect(closed).toEqual([]);
    windows.closeDue(start + MINUTE + 15_000);
    expect(closed.flatMap(rowsOf)).toMatchObject([{ minute: start / MINUTE, first: start - 30 * MINUTE }]);
  });

  test("that is closed gets new rows for records that come late, with their own minute", () => {
    const { windows, closed } = open();
    const minute = Math.floor(T0 / MINUTE);
    windows.add(batchOf([{ last: T0 }]), T0);
    windows.closeDue(T0 + 3 * MINUTE);
    windows.add(batchOf([{ last: T0 }, { last: T0 + 3 * MINUTE }]), T0 + 3 * MINUTE);
    windows.closeAll();
    expect(closed.flatMap(rowsOf).map((row) => row.minute)).toEqual([minute, minute, minute + 3]);
    expect(windows.counts.late).toBe(1);
  });

  test("is not opened again for late records, from however many minutes they are", () => {
    const { windows } = open();
    windows.add(batchOf(Array.from({ length: 50 }, (_, index) => ({ last: T0 - index * MINUTE }))), T0);
    expect([...windows.tables()]).toHaveLength(1);
    expect(windows.openRows).toBe(50);
  });

  test("takes nothing that ended longer ago than the bound: it is counted", () => {
    const { windows, tooLate } = open();
    windows.add(batchOf([{ exporter: 3, last: T0 - 3_600_001 }, { last: T0 - 3_600_000 }]), T0);
    expect(tooLate).toEqual([3]);
    expect(windows.openRows).toBe(1);
  });
});

describe("more tuples than may be", () => {
  const scan = (from: number, count: number) =>
    batchOf(Array.from({ length: count }, (_, index) => ({ dst: from + index, bytes: 7n })));

  test("with half of them open the largest window is closed early", () => {
    const { windows, closed } = open({ rowsMax: 1000 });
    windows.add(scan(0, 700), T0);
    expect(closed.map(({ count }) => count)).toEqual([500]);
    expect([windows.openRows, windows.waitingRows]).toEqual([200, 500]);
  });

  test("with all of them there the rest is added to rows without addresses, and no byte is lost", () => {
    const { windows, closed } = open({ rowsMax: 1000 });
    for (let round = 0; round < 5; round++) windows.add(scan(round * 1000, 1000), T0);
    expect(windows.openRows + windows.waitingRows).toBeLessThanOrEqual(1001);
    expect(windows.counts.folded).toBe(4000);
    windows.closeAll();
    expect(sumOf(closed)).toBe(5000n * 7n);
    const others = closed.flatMap(rowsOf).filter(({ src, dst }) => src === 0 && dst === 0);
    expect(others).toMatchObject([{ packets: 4000n, protocol: 6 }]);
    windows.stored(windows.waitingRows);
    windows.add(scan(0, 10), T0);
    expect(windows.openRows, "there is room again").toBe(10);
  });
});

test("whatever comes in whatever order, totals by minute and tuple are those of plain adding up", () => {
  const record = fc.record({
    exporter: fc.nat(2),
    src: fc.nat(3),
    dst: fc.nat(3),
    dstPort: fc.nat(2),
    bytes: fc.bigInt({ min: 0n, max: 2n ** 60n }),
    last: fc.integer({ min: T0 - 10 * MINUTE, max: T0 }),
  });
  fc.assert(
    fc.property(fc.array(fc.array(record, { maxLength: 60 }), { maxLength: 12 }), (batches) => {
      const { windows, closed } = open();
      const expected = new Map<string, bigint>();
      batches.forEach((records, index) => {
        windows.add(batchOf(records), T0 + index * 20_000);
        windows.closeDue(T0 + index * 20_000);
        for (const { exporter, src, dst, bytes, last } of records) {
          const key = `${Math.floor(last / MINUTE)} ${exporter} ${src} ${dst}`;
          expected.set(key, (expected.get(key) ?? 0n) + bytes);
        }
      });
      windows.closeAll();
      const found = new Map<string, bigint>();
      for (const { minute, exporter, src, dst, bytes } of closed.flatMap(rowsOf)) {
        const key = `${minute} ${exporter} ${src} ${dst}`;
        found.set(key, (found.get(key) ?? 0n) + bytes);
      }
      expect(found).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});

describe("the journal", () => {
  let folder: string;
  beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "tocsin-windows-"))));
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const recover = async () => {
    const found: { table: FlowTable; closed: boolean }[] = [];
    const journal = new WindowJournal(folder);
    for await (const one of journal.recover()) found.push(one);
    await journal.close();
    return found;
  };
  const many = Array.from({ length: 3000 }, (_, index) => ({ exporter: index % 3, src: index, bytes: BigInt(index) }));

  test("gives back the table as it was last written, rows in their places", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf(many.slice(0, 2000)), T0);
    const [table] = windows.tables();
    await journal.write(table!, false);
    windows.add(batchOf(many), T0 + 1000);
    await journal.write(table!, true);
    await journal.close();
    const [found] = await recover();
    expect(found!.closed).toBe(true);
    expect(found!.table.id).toBe(table!.id);
    expect(rowsOf(found!.table)).toEqual(rowsOf(table!));
  });

  test("loses no more than what was not written, when the end of the file is torn or spoiled", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf(many.slice(0, 500)), T0);
    const [table] = windows.tables();
    await journal.write(table!, false);
    const before = rowsOf(table!);
    const path = join(folder, (await readdir(folder))[0]!);
    const size = journal.sizeOf(table!);
    windows.add(batchOf(many), T0);
    await journal.write(table!, true);
    await journal.close();
    await truncate(path, journal.sizeOf(table!) || size + 100);
    expect(rowsOf((await recover())[0]!.table)).toEqual(before);
    await appendFile(path, new Uint8Array(200).fill(9));
    expect(rowsOf((await recover())[0]!.table)).toEqual(before);
    await truncate(path, 5);
    expect(await recover()).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  test("writes every row again when its file was removed or replaced meanwhile, and says so", async () => {
    for (const harm of [
      (path: string) => rm(path),
      (path: string) => rename(path, `${path}.away`),
      async (path: string) => {
        await copyFile(path, `${path}.copy`);
        await rename(`${path}.copy`, path);
      },
    ]) {
      await rm(folder, { recursive: true });
      const { windows } = open();
      const troubles: string[] = [];
      const journal = new WindowJournal(folder, (trouble) => troubles.push(trouble));
      windows.add(batchOf(many.slice(0, 500)), T0);
      const [table] = windows.tables();
      await journal.write(table!, false);
      const path = join(folder, (await readdir(folder))[0]!);
      await harm(path);
      windows.add(batchOf(many.slice(400, 600)), T0);
      await journal.write(table!, true);
      await journal.close();
      expect(troubles).toEqual([expect.stringContaining(path)]);
      expect(rowsOf((await recover())[0]!.table)).toEqual(rowsOf(table!));
    }
  });

  test("keeps a file that is none of its own under another name, and says so", async () => {
    await writeFile(join(folder, "a.window"), new Uint8Array(100).fill(9));
    const troubles: string[] = [];
    const journal = new WindowJournal(folder, (trouble) => troubles.push(trouble));
    for await (const one of journal.recover()) throw new Error(`found ${one.table.id}`);
    expect(troubles).toEqual([expect.stringContaining("a.window")]);
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^a\.window\.\d+\.damaged$/)]);
  });

  test("of a newer version is refused in words, and left as it is", async () => {
    await writeFile(join(folder, "a.window"), "TFJ2 what a newer version makes of it");
    expect(() => refuseNewerWindows(folder)).toThrow(/newer version of Tocsin.*schema version is 2.*up to 1/s);
    await expect(recover()).rejects.toThrow(NewerFile);
    expect(await readFile(join(folder, "a.window"), "utf8")).toMatch(/^TFJ2 what/);
  });

  test("believes nothing that was written otherwise than it stands there", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf(many.slice(0, 500)), T0);
    const [table] = windows.tables();
    await journal.write(table!, false);
    const before = rowsOf(table!);
    const size = journal.sizeOf(table!);
    windows.add(batchOf(many.slice(0, 500)), T0);
    await journal.write(table!, false);
    await journal.close();
    const path = join(folder, (await readdir(folder))[0]!);
    const bytes = await readFile(path);
    bytes[size + 100]! ^= 1;
    await writeFile(path, bytes);
    expect(rowsOf((await recover())[0]!.table)).toEqual(before);
  });

  test("goes on where it was whole, once there is room again on a disk that was full", async (context) => {
    try {
      execFileSync("prlimit", ["--version"], { stdio: "ignore" });
    } catch {
      context.skip("the size of files cannot be limited here");
    }
    const fixture = JSON.stringify(new URL("./full-disk.fixture.ts", import.meta.url).href);
    const script = `import { writeOnFullDisk } from ${fixture};
      process.stdout.write(JSON.stringify(await writeOnFullDisk(process.argv[1])));`;
    const node = [process.execPath, "--input-type=module", "--eval", script, folder];
    const printed = execFileSync("sh", ["-c", `trap '' XFSZ; exec "$@"`, "sh", ...node], { encoding: "utf8" });
    const { outcomes, rows } = JSON.parse(printed) as FullDiskOutcome;
    expect(outcomes).toEqual(["written", "refused", "refused", "written", "written", "written", "written"]);
    const found = await recover();
    expect(found.map(({ table }) => table.count)).toEqual(rows);
    for (const { table } of found) expect(new Set(rowsOf(table).map(({ bytes }) => bytes))).toEqual(new Set([100n]));
  });

  test("has nothing of what is stored", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf(many), T0);
    const [table] = windows.tables();
    await journal.write(table!, true);
    await journal.remove(table!);
    expect(await recover()).toEqual([]);
  });
});

describe("the summary of a window", () => {
  const settings = { peersMin: 10, portsMin: 10, bytesMin: 1_000_000 };
  const summaryOf = (records: readonly Record[]) => {
    const { windows, closed } = open();
    windows.add(batchOf(records), T0);
    windows.closeAll();
    return summarise(closed[0]!, settings, "site");
  };
  const range = (count: number, make: (index: number) => Record) =>
    Array.from({ length: count }, (_, index) => make(index));

  test("tells of a sweep by its peers, also with pings", () => {
    const swept = summaryOf(range(12, (index) => ({ src: 5, dst: 100 + index, protocol: 1, dstPort: 0x0800 })));
    expect(swept.events.map(({ draft }) => draft.raw)).toMatchObject([{ peers: 12, ports: 0, flows: 12 }]);
    const replies = summaryOf(range(12, (index) => ({ src: 5, dst: 100 + index, protocol: 1, dstPort: 0 })));
    expect(replies.events).toEqual([]);
  });

  test("tells of a scan of ports above the scanner's own, since nobody answers", () => {
    const scan = (flags: number) => range(12, (index) => ({ src: 5, srcPort: 1024, dstPort: 2000 + index, flags }));
    expect(summaryOf(scan(2)).events).toHaveLength(1);
    expect(summaryOf(scan(18)).events).toEqual([]);
  });

  test("tells of many bytes, with where most of them went", () => {
    const { events } = summaryOf([
      { src: 5, dst: 7, dstPort: 443, srcPort: 50_000, bytes: 900_000n },
      { src: 5, dst: 8, dstPort: 22, srcPort: 50_000, bytes: 200_000n },
    ]);
    expect(events[0]!.draft.raw).toMatchObject({ bytes: 1_100_000, top_dst_port: 443, top_bytes: 900_000 });
    expect(events[0]!.draft.timestampMs % MINUTE).toBe(0);
  });

  test("has an end: so many hosts, and how many are left", () => {
    const records = range(700, (index) => ({ src: 1 + index, bytes: 2_000_000n }));
    const { events, left } = summaryOf(records);
    expect([events.length, left]).toEqual([500, 200]);
    expect(new Set(events.map(({ idempotencyToken }) => idempotencyToken)).size).toBe(500);
  });
});
