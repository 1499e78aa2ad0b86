import { createSocket } from "node:dgram";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { closeAfter, closeAll, connected, LINE, linesOf, openSockets, sendDatagrams } from "./sockets.fixture.ts";
import type { SenderStatus } from "./status.ts";

// What a sender may take of a socket, and what the others keep.

afterEach(closeAll);

const hasIpv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));

describe("limits", () => {
  test("who is not allowed is refused, by datagram and by connection", async () => {
    const inlet = openSockets({ allowed: ["127.0.0.2/32"] });
    await inlet.sockets.listenTcp(inlet.place);
    await inlet.sockets.listenUdp(inlet.place);
    await sendDatagrams(inlet.portOf("udp"), linesOf(2, "stranger"));
    await sendDatagrams(inlet.portOf("udp"), linesOf(2, "known"), "127.0.0.2");
    await (
      await connected(inlet.portOf("tcp"))
    ).gone;
    await inlet.linesWhen(linesOf(2, "known"));
    expect(inlet.sender("127.0.0.1", "udp")!.refused.not_allowed).toBe(2);
    expect(inlet.sender("127.0.0.1", "udp")!.summary).toContain("allowed_senders");
    expect(inlet.sender("127.0.0.1", "tcp")!.refused.not_allowed).toBe(1);
  });

  test("one sender has so many connections and no more, and so have all together", async () => {
    const inlet = openSockets({ connectionsMax: 3, connectionsPerSenderMax: 2 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    const first = await connected(port);
    const second = await connected(port);
    await (
      await connected(port)
    ).gone;
    expect(inlet.sender()).toMatchObject({ connections: 2, refused: { too_many_connections: 1 } });
    const third = await connected(port, "127.0.0.2");
    for (const socket of [first, second, third]) socket.write(`${LINE}\n`);
    await inlet.linesWhen([LINE, LINE, LINE]);
    await (
      await connected(port, "127.0.0.3")
    ).gone;
    expect(inlet.sender("127.0.0.3")!.lastRefusal!.message).toContain("all 3 connections");
    second.destroy();
    await inlet.senderWhen(({ connections }) => connections === 1);
    (await connected(port)).end(`${LINE}\n`);
    await inlet.linesWhen([LINE, LINE, LINE, LINE]);
  });

  test("when all places are taken, who never sent anything makes room, then who has not for a minute", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, connectionsMax: 4, connectionsPerSenderMax: 2 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    const quiet = await connected(port, "127.0.0.2");
    quiet.write("<13>quiet\n");
    await inlet.linesWhen(["<13>quiet"]);
    const busy = await connected(port, "127.0.0.3");
    const idlers = [await connected(port, "127.0.0.4"), await connected(port, "127.0.0.4")];
    await inlet.senderWhen(({ connections }) => connections === 2, "127.0.0.4");
    nowMs += 30_000;
    busy.write("<13>busy\n");
    await inlet.linesWhen(["<13>busy", "<13>quiet"]);
    const newcomers: Socket[] = [];
    for (const [n, idler] of idlers.entries()) {
      const newcomer = await connected(port, `127.0.0.${5 + n}`);
      newcomer.write(`<13>new ${n}\n`);
      newcomers.push(newcomer);
      await idler.gone;
    }
    await inlet.linesWhen(["<13>busy", "<13>new 0", "<13>new 1", "<13>quiet"]);
    const lost = inlet.sender("127.0.0.4")!;
    expect(lost).toMatchObject({ connections: 0, refused: { too_many_connections: 2, cut_off: 0 } });
    expect(lost.lastRefusal!.message).toContain("to make room, since all 4 are taken: nothing had come by it in 30 s");

    // All have sent something, and none is silent for long enough.
    await (
      await connected(port, "127.0.0.7")
    ).gone;
    expect(inlet.sender("127.0.0.7")!.refused.too_many_connections).toBe(1);
    nowMs += 31_000;
    const last = await connected(port, "127.0.0.8");
    await quiet.gone;
    last.write("<13>last\n");
    busy.write("<13>busy again\n");
    await inlet.linesWhen(["<13>busy", "<13>busy again", "<13>last", "<13>new 0", "<13>new 1", "<13>quiet"]);
    expect(newcomers.map(({ destroyed }) => destroyed)).toEqual([false, false]);
  });

  test("many addresses that say nothing do not keep others out", async () => {
    const inlet = openSockets({ connectionsMax: 20, connectionsPerSenderMax: 5 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    for (let n = 0; n < 20; n++) await connected(port, `127.0.0.${10 + (n % 4)}`);
    const lines = linesOf(10, "heard");
    for (const [n, line] of lines.entries()) (await connected(port, `127.0.0.${50 + n}`)).write(`${line}\n`);
    await inlet.linesWhen(lines);
  });

  test("a Unix socket keeps its place, however silent it is", async () => {
    const folder = await mkdtemp(join(tmpdir(), "tocsin-sockets-"));
    closeAfter({ close: () => rm(folder, { recursive: true }) });
    const inlet = openSockets({ connectionsMax: 1 });
    await inlet.sockets.listenTcp(inlet.place);
    await inlet.sockets.listenUnix("eve", join(folder, "eve.sock"));
    const local = connect(join(folder, "eve.sock"));
    closeAfter({ close: () => local.destroy() });
    await inlet.senderWhen(({ connections }) => connections === 1, "unix");
    await (
      await connected(inlet.portOf("tcp"))
    ).gone;
    expect(inlet.sender("unix")!.connections).toBe(1);
  });

  test("datagrams beyond the rate are dropped and counted", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 20 });
    await inlet.sockets.listenUdp(inlet.place);
    await sendDatagrams(inlet.portOf("udp"), linesOf(50, "first"));
    const { summary } = await inlet.senderWhen(({ lines }) => lines === 50);
    expect(summary).toContain("lines_per_second_max");
    expect(inlet.sender()!.refused.too_fast).toBe(30);
    nowMs += 500;
    await sendDatagrams(inlet.portOf("udp"), linesOf(50, "second"));
    await inlet.senderWhen(({ lines }) => lines === 100);
    expect(inlet.sender()).toMatchObject({ refused: { too_fast: 70 } });
    await inlet.linesWhen([...linesOf(20, "first"), ...linesOf(10, "second")]);
  });

  test.skipIf(process.platform !== "linux").each(hasIpv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"])(
    "datagrams that the system drops since nobody reads them are counted, at %s",
    async (address) => {
      const inlet = openSockets({ receiveBufferBytes: 65_536 });
      await inlet.sockets.listenUdp({ ...inlet.place, address });
      const socket = createSocket(address === "::1" ? "udp6" : "udp4");
      closeAfter(socket);
      // All at once: what would read them has no turn in between.
      for (let n = 0; n < 500; n++) socket.send("x".repeat(1000), inlet.portOf("udp"), address);
      await expect
        .poll(() => inlet.sockets.status().map(({ packets, systemDrops }) => packets + systemDrops!))
        .toEqual([500]);
      expect(inlet.sockets.status()[0]!.systemDrops).toBeGreaterThan(0);
    },
  );

  test("a stream beyond the rate is read more slowly and loses nothing", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 100 });
    await inlet.sockets.listenTcp(inlet.place);
    const all = linesOf(5000, `long ${"x".repeat(100)}`);
    (await connected(inlet.portOf("tcp"))).end(all.join("\n"));
    const first = await inlet.senderWhen(({ lines }) => lines > 100);
    expect(first.lines).toBeLessThan(5000);
    await expect
      .poll(() => {
        nowMs += 1_000_000;
        return inlet.sender()!.lines;
      })
      .toBe(5000);
    await inlet.linesWhen(all);
    expect(inlet.sender()!.refused.too_fast).toBe(0);
  });

  test.each([
    ["no text", "\u0001\u0002\u0003\n", ({ refused }: SenderStatus) => refused.not_text],
    ["too long", `${"x".repeat(1025)}\n`, ({ refused }: SenderStatus) => refused.too_long],
    ["empty", "\n", ({ nothing }: SenderStatus) => nothing],
  ])(
    "lines that are %s cost a stream's sender as much as any, on all its connections together",
    async (_, line, countOf) => {
      let nowMs = 1_000_000;
      const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 100, lineBytesMax: 1024 });
      await inlet.sockets.listenTcp(inlet.place);
      const port = inlet.portOf("tcp");
      const junk = Buffer.from(line.repeat(Math.ceil(1_000_000 / line.length)));
      for (let n = 0; n < 5; n++) (await connected(port, "127.0.0.2")).write(junk);
      await inlet.senderWhen((sender) => countOf(sender) >= 100, "127.0.0.2");
      const quiet = await connected(port, "127.0.0.3");
      for (let n = 1; n <= 20; n++) {
        quiet.write(`${LINE}\n`);
        await inlet.senderWhen(({ lines }) => lines === n, "127.0.0.3");
      }
      const { lines, refused } = inlet.sender("127.0.0.2")!;
      // What it may send in a second, and what is read at a time.
      expect(lines).toBeLessThanOrEqual(100 + Math.ceil(16_384 / line.length));
      expect(countOf(inlet.sender("127.0.0.2")!)).toBe(lines);
      expect(refused.too_fast).toBe(0);
      nowMs += 1000 * Math.ceil(lines / 100);
      await inlet.senderWhen((sender) => countOf(sender) > lines, "127.0.0.2");
    },
  );

  test("the connections of a sender that is too fast are read in turn", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 100 });
    await inlet.sockets.listenTcp(inlet.place);
    const port = inlet.portOf("tcp");
    for (let n = 0; n < 9; n++) (await connected(port)).write("\n".repeat(1_000_000));
    await inlet.senderWhen(({ lines }) => lines >= 100);
    nowMs++;
    (await connected(port)).write(`${LINE}\n`);
    await inlet.senderWhen(({ lastSeenMs }) => lastSeenMs === nowMs);
    expect(inlet.raws, "it waits like the others").toEqual([]);
    await expect
      .poll(() => {
        nowMs += 1_000_000;
        return inlet.raws.length;
      })
      .toBe(1);
    expect(inlet.sender()!.lines, "each of the others had about one turn before it").toBeLessThan(20 * 16_384);
  });

  test("datagrams that are no text or empty count for the rate, and so does each line of one", async () => {
    let nowMs = 1_000_000;
    const inlet = openSockets({ now: () => nowMs, linesPerSecondMax: 20 });
    await inlet.sockets.listenUdp(inlet.place);
    const port = inlet.portOf("udp");
    const junk = [...Array<string>(15).fill("\u0001\u0002\u0003"), ...Array<string>(5).fill("\n")];
    await sendDatagrams(port, [...junk, LINE]);
    await inlet.senderWhen(({ lines }) => lines === 21);
    expect(inlet.sender()).toMatchObject({ nothing: 5, refused: { not_text: 15, too_fast: 1 } });

    nowMs += 1000;
    const many = linesOf(50, "of one datagram");
    await sendDatagrams(port, [many.join("\n"), LINE]);
    await inlet.linesWhen(many);
    await inlet.senderWhen(({ refused }) => refused.too_fast === 2);
    nowMs += 1500;
    await sendDatagrams(port, [LINE]);
    await inlet.senderWhen(({ refused }) => refused.too_fast === 3);
    nowMs += 100;
    await sendDatagrams(port, [LINE]);
    await inlet.linesWhen([...many, LINE]);
  });
});
