import { execFileSync } from "node:child_process";
import { appendFile, copyFile, mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NewerFile } from "../lib/newer-file.ts";
import type { FullDiskOutcome } from "./window-full-disk.fixture.ts";
import { refuseNewerWindows, WindowJournal } from "./window-journal.ts";
import type { WindowTable } from "./window-table.ts";
import { batchOf, MINUTE, openWindows as open, T0, type FlowRecord as Record } from "./flow-windows.fixture.ts";

const rowsOf = (table: WindowTable) => {
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
    nat: rows.nat && {
      src: new Uint32Array(rows.nat.src.buffer)[row * 4 + 3]!,
      dst: new Uint32Array(rows.nat.dst.buffer)[row * 4 + 3]!,
      srcPort: rows.nat.srcPort[row]!,
      dstPort: rows.nat.dstPort[row]!,
    },
  }));
};

const sumOf = (tables: readonly WindowTable[]) => tables.flatMap(rowsOf).reduce((sum, { bytes }) => sum + bytes, 0n);

describe("a window", () => {
  test("adds up one tuple: exact bytes and packets, combined flags, the first and the last time", () => {
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

  test("saturates counters instead of wrapping around", () => {
    const { windows, closed } = open();
    windows.add(batchOf([{ bytes: 2n ** 64n - 1n }, { bytes: 2n ** 64n - 1n }]), T0);
    windows.closeAll();
    expect(closed.flatMap(rowsOf)).toMatchObject([{ bytes: 2n ** 64n - 1n }]);
  });

  test("has a row for each exporter, source, destination, port pair and protocol", () => {
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

  test("keeps the last translation of a tuple, under its original addresses", () => {
    const { windows, closed } = open();
    const nat = { natSrc: 77, natSrcPort: 1000 };
    windows.add(batchOf([{ src: 1 }, { src: 2, ...nat }, { src: 2, natSrc: 78, natSrcPort: 2000 }]), T0);
    // A record without a translation does not remove it.
    windows.add(batchOf([{ src: 2 }, { src: 3, natDst: 79, natDstPort: 3000, bytes: 0n, packets: 0n }]), T0);
    windows.closeAll();
    expect(closed.flatMap(rowsOf)).toMatchObject([
      { src: 1, bytes: 100n, nat: { src: 0, dst: 0, srcPort: 0, dstPort: 0 } },
      { src: 2, bytes: 300n, nat: { src: 78, dst: 0, srcPort: 2000, dstPort: 0 } },
      { src: 3, bytes: 0n, packets: 0n, nat: { src: 0, dst: 79, srcPort: 0, dstPort: 3000 } },
    ]);
  });

  test("has no translation columns for a range of rows without translations", () => {
    const { windows } = open();
    windows.add(batchOf([{ src: 1, natSrc: 77 }, { src: 2 }, { src: 3 }]), T0);
    const [table] = windows.tables();
    expect(table!.rows(0, 1).nat).not.toBeNull();
    expect(table!.rows(1, 3).nat).toBeNull();
  });

  test("keeps all translations as it grows", () => {
    const { windows } = open({ rowsMax: 50_000 });
    const records = Array.from({ length: 4000 }, (_, nth) => ({ src: nth, ...(nth % 3 === 0 && { natSrc: nth + 1 }) }));
    for (let round = 0; round < 5; round++)
      windows.add(batchOf(records.map((record) => ({ ...record, dstPort: round }))), T0);
    const [table] = windows.tables();
    const rows = rowsOf(table!);
    expect(rows).toHaveLength(20_000);
    expect(rows.every(({ src, nat }) => nat!.src === (src % 3 === 0 ? src + 1 : 0))).toBe(true);
  });

  test("takes flows by their end, and is closed a grace period after its own end", () => {
    const { windows, closed } = open();
    const start = Math.floor(T0 / MINUTE) * MINUTE;
    windows.add(batchOf([{ first: start - 30 * MINUTE, last: start + 1000 }]), start + 2000);
    windows.closeDue(start + MINUTE + 14_999);
    expect(closed).toEqual([]);
    windows.closeDue(start + MINUTE + 15_000);
    expect(closed.flatMap(rowsOf)).toMatchObject([{ minute: start / MINUTE, first: start - 30 * MINUTE }]);
  });

  test("that is closed gets new rows for late records, with their own minute", () => {
    const { windows, closed } = open();
    const minute = Math.floor(T0 / MINUTE);
    windows.add(batchOf([{ last: T0 }]), T0);
    windows.closeDue(T0 + 3 * MINUTE);
    windows.add(batchOf([{ last: T0 }, { last: T0 + 3 * MINUTE }]), T0 + 3 * MINUTE);
    windows.closeAll();
    expect(closed.flatMap(rowsOf).map((row) => row.minute)).toEqual([minute, minute, minute + 3]);
    expect(windows.counts.late).toBe(1);
  });

  test("is not reopened for late records, however many minutes they span", () => {
    const { windows } = open();
    windows.add(batchOf(Array.from({ length: 50 }, (_, index) => ({ last: T0 - index * MINUTE }))), T0);
    expect([...windows.tables()]).toHaveLength(1);
    expect(windows.openRows).toBe(50);
  });

  test("counts and drops records of flows that ended too long ago", () => {
    const { windows, tooLate } = open();
    windows.add(batchOf([{ exporter: 3, last: T0 - 3_600_001 }, { last: T0 - 3_600_000 }]), T0);
    expect(tooLate).toEqual([3]);
    expect(windows.openRows).toBe(1);
  });
});

describe("beyond the limit on tuples", () => {
  const scan = (from: number, count: number) =>
    batchOf(Array.from({ length: count }, (_, index) => ({ dst: from + index, bytes: 7n })));

  test("the largest window is closed early when open windows reach half of it", () => {
    const { windows, closed } = open({ rowsMax: 1000 });
    windows.add(scan(0, 700), T0);
    expect(closed.map(({ count }) => count)).toEqual([500]);
    expect([windows.openRows, windows.waitingRows]).toEqual([200, 500]);
  });

  test("records are added to overflow rows without addresses, and no byte is lost", () => {
    const { windows, closed } = open({ rowsMax: 1000 });
    for (let round = 0; round < 5; round++) windows.add(scan(round * 1000, 1000), T0);
    expect(windows.openRows + windows.waitingRows).toBeLessThanOrEqual(1001);
    expect(windows.counts.folded).toBe(4000);
    windows.closeAll();
    expect(sumOf(closed)).toBe(5000n * 7n);
    const others = closed.flatMap(rowsOf).filter(({ src, dst }) => src === 0 && dst === 0);
    expect(others).toMatchObject([{ packets: 4000n, protocol: 6, nat: null }]);
    windows.stored(windows.waitingRows);
    windows.add(scan(0, 10), T0);
    expect(windows.openRows, "rows are free again").toBe(10);
  });
});

test("totals by minute and tuple are exact for any records in any order", () => {
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
    const found: { table: WindowTable; closed: boolean }[] = [];
    const journal = new WindowJournal(folder);
    for await (const one of journal.recover()) found.push(one);
    await journal.close();
    return found;
  };
  const many = Array.from({ length: 3000 }, (_, index) => ({
    exporter: index % 3,
    src: index,
    bytes: BigInt(index),
    ...(index % 5 === 0 && { natSrc: index + 1, natSrcPort: index }),
  }));

  test("recovers the table as last written, with rows in their positions", async () => {
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

  test("loses only unwritten rows when the end of the file is torn or damaged", async () => {
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

  test("writes every row again and reports it when its file was removed or replaced", async () => {
    for (const tamper of [
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
      const journal = new WindowJournal(folder, { onTrouble: (trouble) => troubles.push(trouble) });
      windows.add(batchOf(many.slice(0, 500)), T0);
      const [table] = windows.tables();
      await journal.write(table!, false);
      const path = join(folder, (await readdir(folder))[0]!);
      await tamper(path);
      windows.add(batchOf(many.slice(400, 600)), T0);
      await journal.write(table!, true);
      await journal.close();
      expect(troubles).toEqual([expect.stringContaining(path)]);
      expect(rowsOf((await recover())[0]!.table)).toEqual(rowsOf(table!));
    }
  });

  test("renames a file that is not a journal, and reports it", async () => {
    await writeFile(join(folder, "a.window"), new Uint8Array(100).fill(9));
    const troubles: string[] = [];
    const journal = new WindowJournal(folder, { onTrouble: (trouble) => troubles.push(trouble) });
    for await (const one of journal.recover()) throw new Error(`found ${one.table.id}`);
    expect(troubles).toEqual([expect.stringContaining("a.window")]);
    expect(await readdir(folder)).toEqual([expect.stringMatching(/^a\.window\.\d+\.damaged$/)]);
  });

  test("of a newer version is refused with an explanation and left unchanged", async () => {
    await writeFile(join(folder, "a.window"), "TFJ3 what a newer version makes of it");
    expect(() => refuseNewerWindows(folder)).toThrow(/newer version of Tocsin.*schema version is 3.*up to 2/s);
    await expect(recover()).rejects.toThrow(NewerFile);
    expect(await readFile(join(folder, "a.window"), "utf8")).toMatch(/^TFJ3 what/);
  });

  test("writes a translation again when only the translation has changed", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    for (const natSrc of [0, 70, 71]) {
      windows.add(batchOf([{ src: 1 }, { src: 2, natSrc, natSrcPort: natSrc, bytes: 0n, packets: 0n }]), T0);
      const [table] = windows.tables();
      await journal.write(table!, false);
      expect(rowsOf((await recover())[0]!.table)).toEqual(rowsOf(table!));
    }
    await journal.close();
  });

  test("of the version without translations is read and continued", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf([{ src: 1 }, { src: 2 }]), T0);
    const [table] = windows.tables();
    await journal.write(table!, false);
    await journal.close();
    const path = join(folder, (await readdir(folder))[0]!);
    const bytes = await readFile(path);
    expect(bytes.subarray(0, 4).toString()).toBe("TFJ2");
    // A file without translations differs from version 1 only in its version.
    bytes.write("TFJ1");
    await writeFile(path, bytes);
    refuseNewerWindows(folder);
    const next = new WindowJournal(folder);
    for await (const { table: found } of next.recover()) {
      expect(rowsOf(found)).toEqual(rowsOf(table!));
      await next.write(found, true);
    }
    await next.close();
    expect(await recover()).toMatchObject([{ closed: true }]);
  });

  test("ignores blocks with a wrong checksum", async () => {
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

  test("continues after its intact part once a full disk has space again", async (context) => {
    try {
      execFileSync("prlimit", ["--version"], { stdio: "ignore" });
    } catch {
      context.skip("the file size cannot be limited here");
    }
    const fixture = JSON.stringify(new URL("./window-full-disk.fixture.ts", import.meta.url).href);
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

  test("does not recover stored windows", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf(many), T0);
    const [table] = windows.tables();
    await journal.write(table!, true);
    await journal.remove(table!);
    expect(await recover()).toEqual([]);
  });

  test("keeps stored windows until they are too old or too large, and recovers them unchanged", async () => {
    const storeAll = async (journal: WindowJournal) => {
      const { windows, closed } = open();
      for (let minute = 0; minute < 3; minute++) {
        const last = T0 + minute * MINUTE;
        windows.add(batchOf(many.slice(0, 100).map((record) => ({ ...record, last }))), last);
      }
      windows.closeAll();
      for (const table of closed) {
        await journal.write(table, true);
        await journal.keep(table);
      }
      return closed;
    };
    const stored = async () => {
      const found: WindowTable[] = [];
      for await (const table of new WindowJournal(folder).recoverStored()) found.push(table);
      return found;
    };
    const journal = new WindowJournal(folder);
    const tables = await storeAll(journal);
    expect(await recover()).toEqual([]);
    expect((await stored()).map(rowsOf)).toEqual(tables.map(rowsOf));
    await journal.removeStored(tables[1]!.minute);
    expect((await stored()).map(({ minute }) => minute)).toEqual([tables[1]!.minute, tables[2]!.minute]);
    await journal.removeStored(Infinity);
    expect(await readdir(folder)).toEqual([]);
    const small = new WindowJournal(folder, { storedBytesMax: 25_000 });
    const [, second, third] = await storeAll(small);
    await small.removeStored(0);
    expect((await stored()).map(({ minute }) => minute)).toEqual([second!.minute, third!.minute]);
  });

  test("knows when the first flow of a row ended", async () => {
    const { windows } = open();
    const journal = new WindowJournal(folder);
    windows.add(batchOf([{ last: T0 + 500 }, { last: T0 }, { last: T0 - 100, bytes: 0n, packets: 0n }]), T0);
    const [table] = windows.tables();
    await journal.write(table!, true);
    await journal.close();
    const [found] = await recover();
    expect(found!.table.firstEnd[0]).toBe((T0 % MINUTE) + 1);
  });
});
