import { createSocket } from "node:dgram";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { closeAfter, closeAll, connected, LINE, linesOf, openSockets, sendDatagrams } from "./line-sockets.fixture.ts";
import type { SenderStatus } from "./line-status.ts";

// Limits of senders, and their effect on other senders.

afterEach(closeAll);

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

describe("limits", () => {
  test("senders that are not allowed are refused, by datagram and by connection", async () => {
    const collector = openSockets({ allowed: ["127.0.0.2/32"] });
    await collector.sockets.listenTcp(collector.endpoint);
    await collector.sockets.listenUdp(collector.endpoint);
    await sendDatagrams(collector.portOf("udp"), linesOf(2, "stranger"));
    await sendDatagrams(collector.portOf("udp"), linesOf(2, "known"), "127.0.0.2");
    await (
      await connected(collector.portOf("tcp"))
    ).gone;
    await collector.linesWhen(linesOf(2, "known"));
    expect(collector.sender("127.0.0.1", "udp")!.refused.not_allowed).toBe(2);
    expect(collector.sender("127.0.0.1", "udp")!.summary).toContain("allowed_senders");
    expect(collector.sender("127.0.0.1", "tcp")!.refused.not_allowed).toBe(1);
  });

  test("connections are limited per sender and in total", async () => {
    const collector = openSockets({ connectionsMax: 3, connectionsPerSenderMax: 2 });
    await collector.sockets.listenTcp(collector.endpoint);
    const port = collector.portOf("tcp");
    const first = await connected(port);
    const second = await connected(port);
    await (
      await connected(port)
    ).gone;
    expect(collector.sender()).toMatchObject({ connections: 2, refused: { too_many_connections: 1 } });
    const third = await connected(port, "127.0.0.2");
    for (const socket of [first, second, third]) socket.write(`${LINE}\n`);
    await collector.linesWhen([LINE, LINE, LINE]);
    await (
      await connected(port, "127.0.0.3")
    ).gone;
    expect(collector.sender("127.0.0.3")!.lastRefusal!.message).toContain("all 3 connections");
    second.destroy();
    await collector.senderWhen(({ connections }) => connections === 1);
    (await connected(port)).end(`${LINE}\n`);
    await collector.linesWhen([LINE, LINE, LINE, LINE]);
  });

  test("with all slots taken, unused connections are evicted first, then those silent for a minute", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, connectionsMax: 4, connectionsPerSenderMax: 2 });
    await collector.sockets.listenTcp(collector.endpoint);
    const port = collector.portOf("tcp");
    const quiet = await connected(port, "127.0.0.2");
    quiet.write("<13>quiet\n");
    await collector.linesWhen(["<13>quiet"]);
    const busy = await connected(port, "127.0.0.3");
    const idlers = [await connected(port, "127.0.0.4"), await connected(port, "127.0.0.4")];
    await collector.senderWhen(({ connections }) => connections === 2, "127.0.0.4");
    nowMs += 30_000;
    busy.write("<13>busy\n");
    await collector.linesWhen(["<13>busy", "<13>quiet"]);
    const newcomers: Socket[] = [];
    for (const [n, idler] of idlers.entries()) {
      const newcomer = await connected(port, `127.0.0.${5 + n}`);
      newcomer.write(`<13>new ${n}\n`);
      newcomers.push(newcomer);
      await idler.gone;
    }
    await collector.linesWhen(["<13>busy", "<13>new 0", "<13>new 1", "<13>quiet"]);
    const lost = collector.sender("127.0.0.4")!;
    expect(lost).toMatchObject({ connections: 0, refused: { too_many_connections: 2, cut_off: 0 } });
    expect(lost.lastRefusal!.message).toContain("to free a slot, since all 4 were taken: it sent nothing in 30 s");

    // All have sent something, and none has been silent for long enough.
    await (
      await connected(port, "127.0.0.7")
    ).gone;
    expect(collector.sender("127.0.0.7")!.refused.too_many_connections).toBe(1);
    nowMs += 31_000;
    const last = await connected(port, "127.0.0.8");
    await quiet.gone;
    last.write("<13>last\n");
    busy.write("<13>busy again\n");
    await collector.linesWhen(["<13>busy", "<13>busy again", "<13>last", "<13>new 0", "<13>new 1", "<13>quiet"]);
    expect(newcomers.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  });

  test("many silent addresses do not keep others out", async () => {
    const collector = openSockets({ connectionsMax: 20, connectionsPerSenderMax: 5 });
    await collector.sockets.listenTcp(collector.endpoint);
    const port = collector.portOf("tcp");
    for (let n = 0; n < 20; n++) await connected(port, `127.0.0.${10 + (n % 4)}`);
    const lines = linesOf(10, "heard");
    for (const [n, line] of lines.entries()) (await connected(port, `127.0.0.${50 + n}`)).write(`${line}\n`);
    await collector.linesWhen(lines);
  });

  test("a Unix socket keeps its slot, however silent it is", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tocsin-sockets-"));
    closeAfter({ close: () => rm(folder, { recursive: true }) });
    const collector = openSockets({ connectionsMax: 1 });
    await collector.sockets.listenTcp(collector.endpoint);
    await collector.sockets.listenUnix("eve", join(folder, "eve.sock"));
    const local = connect(join(folder, "eve.sock"));
    closeAfter({ close: () => local.destroy() });
    await collector.senderWhen(({ connections }) => connections === 1, "unix");
    await (
      await connected(collector.portOf("tcp"))
    ).gone;
    expect(collector.sender("unix")!.connections).toBe(1);
  });

  test("datagrams beyond the rate are dropped and counted", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, linesPerSecondMax: 20 });
    await collector.sockets.listenUdp(collector.endpoint);
    await sendDatagrams(collector.portOf("udp"), linesOf(50, "first"));
    const { summary } = await collector.senderWhen(({ lines }) => lines === 50);
    expect(summary).toContain("lines_per_second_max");
    expect(collector.sender()!.refused.too_fast).toBe(30);
    nowMs += 500;
    await sendDatagrams(collector.portOf("udp"), linesOf(50, "second"));
    await collector.senderWhen(({ lines }) => lines === 100);
    expect(collector.sender()).toMatchObject({ refused: { too_fast: 70 } });
    await collector.linesWhen([...linesOf(20, "first"), ...linesOf(10, "second")]);
  });

  test.skipIf(process.platform !== "linux").each(hasIpv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"])(
    "datagrams that the kernel drops are counted, at %s",
    async (address) => {
      const collector = openSockets({ receiveBufferBytes: 65_536 });
      await collector.sockets.listenUdp({ ...collector.endpoint, address });
      const socket = createSocket(address === "::1" ? "udp6" : "udp4");
      closeAfter(socket);
      // Sent without yielding to the reader.
      for (let n = 0; n < 500; n++) socket.send("x".repeat(1000), collector.portOf("udp"), address);
      await expect
        .poll(() => collector.sockets.status().map(({ packets, systemDrops }) => packets + systemDrops!))
        .toEqual([500]);
      expect(collector.sockets.status()[0]!.systemDrops).toBeGreaterThan(0);
    },
  );

  test("a stream beyond the rate is throttled and loses nothing", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, linesPerSecondMax: 100 });
    await collector.sockets.listenTcp(collector.endpoint);
    const all = linesOf(5000, `long ${"x".repeat(100)}`);
    (await connected(collector.portOf("tcp"))).end(all.join("\n"));
    const first = await collector.senderWhen(({ lines }) => lines > 100);
    expect(first.lines).toBeLessThan(5000);
    await expect
      .poll(() => {
        nowMs += 1_000_000;
        return collector.sender()!.lines;
      })
      .toBe(5000);
    await collector.linesWhen(all);
    expect(collector.sender()!.refused.too_fast).toBe(0);
  });

  test.each([
    ["binary", "\u0001\u0002\u0003\n", ({ refused }: SenderStatus) => refused.not_text],
    ["too long", `${"x".repeat(1025)}\n`, ({ refused }: SenderStatus) => refused.too_long],
    ["empty", "\n", ({ nothing }: SenderStatus) => nothing],
  ])("lines that are %s count against the sender's rate, over all its connections", async (_, line, countOf) => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, linesPerSecondMax: 100, lineBytesMax: 1024 });
    await collector.sockets.listenTcp(collector.endpoint);
    const port = collector.portOf("tcp");
    const junk = Buffer.from(line.repeat(Math.ceil(1_000_000 / line.length)));
    for (let n = 0; n < 5; n++) (await connected(port, "127.0.0.2")).write(junk);
    await collector.senderWhen((sender) => countOf(sender) >= 100, "127.0.0.2");
    const quiet = await connected(port, "127.0.0.3");
    for (let n = 1; n <= 20; n++) {
      quiet.write(`${LINE}\n`);
      await collector.senderWhen(({ lines }) => lines === n, "127.0.0.3");
    }
    const { lines, refused } = collector.sender("127.0.0.2")!;
    // The rate of one second, and the lines of one read.
    expect(lines).toBeLessThanOrEqual(100 + Math.ceil(16_384 / line.length));
    expect(countOf(collector.sender("127.0.0.2")!)).toBe(lines);
    expect(refused.too_fast).toBe(0);
    nowMs += 1000 * Math.ceil(lines / 100);
    await collector.senderWhen((sender) => countOf(sender) > lines, "127.0.0.2");
  });

  test("the connections of a throttled sender take turns", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, linesPerSecondMax: 100 });
    await collector.sockets.listenTcp(collector.endpoint);
    const port = collector.portOf("tcp");
    for (let n = 0; n < 9; n++) (await connected(port)).write("\n".repeat(1_000_000));
    await collector.senderWhen(({ lines }) => lines >= 100);
    nowMs++;
    (await connected(port)).write(`${LINE}\n`);
    await collector.senderWhen(({ lastSeenMs }) => lastSeenMs === nowMs);
    expect(collector.raws, "it is paused like the others").toEqual([]);
    await expect
      .poll(() => {
        nowMs += 1_000_000;
        return collector.raws.length;
      })
      .toBe(1);
    expect(collector.sender()!.lines, "each of the others had about one turn before it").toBeLessThan(20 * 16_384);
  });

  test("datagrams that are binary or empty count against the rate, and so does each line of one", async () => {
    let nowMs = 1_000_000;
    const collector = openSockets({ now: () => nowMs, linesPerSecondMax: 20 });
    await collector.sockets.listenUdp(collector.endpoint);
    const port = collector.portOf("udp");
    const junk = [...Array<string>(15).fill("\u0001\u0002\u0003"), ...Array<string>(5).fill("\n")];
    await sendDatagrams(port, [...junk, LINE]);
    await collector.senderWhen(({ lines }) => lines === 21);
    expect(collector.sender()).toMatchObject({ nothing: 5, refused: { not_text: 15, too_fast: 1 } });

    nowMs += 1000;
    const many = linesOf(50, "of one datagram");
    await sendDatagrams(port, [many.join("\n"), LINE]);
    await collector.linesWhen(many);
    await collector.senderWhen(({ refused }) => refused.too_fast === 2);
    nowMs += 1500;
    await sendDatagrams(port, [LINE]);
    await collector.senderWhen(({ refused }) => refused.too_fast === 3);
    nowMs += 100;
    await sendDatagrams(port, [LINE]);
    await collector.linesWhen([...many, LINE]);
  });
});
