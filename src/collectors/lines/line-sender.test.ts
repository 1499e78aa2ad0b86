import { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { parseCidr } from "../../lib/ip.ts";
import { ConnectionSlots } from "../connection-slots.ts";
import { LineSenders, SENDERS_MAX } from "./line-sender.ts";
import { LINE } from "./line-sockets.fixture.ts";

// Senders and their limits, without sockets.

test("senders past the limit are still accepted, and do not evict senders with events", () => {
  const now = () => 1_000_000;
  const senders = new LineSenders({ allowed: [parseCidr("10.0.0.0/8")!], linesPerSecondMax: 10, now });
  for (let n = 0; n < SENDERS_MAX; n++) senders.find("syslog", "udp", `10.0.${n >> 8}.${n & 255}`).events = 1;
  const other = senders.find("syslog", "udp", "10.1.0.1");
  expect(other.address).toBe("others");
  expect(senders.admits(other, "10.1.0.1")).toBe(true);
  expect(senders.admits(other, "192.0.2.1")).toBe(false);
  expect(senders.status(now()).total.events).toBe(SENDERS_MAX);
});

test("a sender without an event is evicted for the next, and its counts stay in the total", () => {
  let nowMs = 1_000_000;
  const senders = new LineSenders({ allowed: [], linesPerSecondMax: 10, now: () => nowMs++ });
  for (let n = 0; n < 5000; n++) senders.find("syslog", "udp", `10.0.${n >> 8}.${n & 255}`).lines++;
  const { senders: known, total } = senders.status(nowMs);
  expect(known).toHaveLength(SENDERS_MAX);
  expect(total.lines).toBe(5000);
});

describe("the queues of all senders together", () => {
  const MEBI = 1024 * 1024;
  const longText = "x".repeat(MEBI / 4);
  const line = (text: string) => ({ text, isReplaced: false, atMs: 1_000_000, from: "192.0.2.1" });
  /** Sixteen senders that queue 64 Mi characters, which is exactly the limit. */
  const crowd = () => {
    const senders = new LineSenders({ allowed: [], linesPerSecondMax: 1_000_000, now: () => 1_000_000 });
    const find = (address: string) => senders.find("syslog", "udp", address);
    const full = Array.from({ length: 16 }, (_, n) => find(`10.0.0.${n}`));
    for (const sender of full) for (let n = 0; n < 16; n++) expect(sender.offer(line(longText))).toBe(true);
    return { find, full };
  };

  test("hold 64 Mi characters of datagrams; past it each sender may still queue a small amount", () => {
    const { find, full } = crowd();
    expect(full[0]!.offer(line("y")), "one sender has 4 Mi").toBe(false);
    const [last, other] = [find("10.0.1.1"), find("10.0.1.2")];
    expect(last.offer(line(longText)), "all are just full").toBe(true);
    for (const sender of [last, other]) expect(sender.offer(line(longText))).toBe(false);
    expect(other.offer(line("x".repeat(16 * 1024)))).toBe(true);
    expect(other.offer(line("y"))).toBe(false);
    full[0]!.take();
    full[0]!.take();
    expect(other.offer(line(longText)), "there is room again").toBe(true);
  });

  test("pause streams past the limit, except those that queue little", () => {
    const { find, full } = crowd();
    const [stream, quiet] = [find("10.0.1.1"), find("10.0.1.2")];
    stream.put(line(longText));
    quiet.put(line("y"));
    expect(stream.mustPause(1_000_000)).toBe(true);
    expect(quiet.mustPause(1_000_000)).toBe(false);
    full[0]!.take();
    full[0]!.take();
    expect(stream.mustPause(1_000_000), "there is room again").toBe(false);
  });
});

describe("IPv6 senders", () => {
  const line = (atMs: number, from: string) => ({ text: LINE, isReplaced: false, atMs, from });

  test("share the rate of one sender within a /64 network, and are listed by address", () => {
    let nowMs = 1_000_000;
    const senders = new LineSenders({ allowed: [], linesPerSecondMax: 10, now: () => nowMs });
    const offer = (address: string) => {
      const sender = senders.find("syslog", "udp", address);
      if (!sender.mayAccept(nowMs)) return false;
      sender.count();
      return sender.offer(line(nowMs, address));
    };
    const near = Array.from({ length: 20 }, (_, n) => `2001:db8:0:1::${n + 1}`);
    expect(near.map(offer).filter(Boolean)).toHaveLength(10);
    for (const other of ["2001:db8:0:2::1", "192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3"])
      expect(offer(other), other).toBe(true);
    nowMs += 500;
    expect(near.map(offer).filter(Boolean)).toHaveLength(5);
    const shown = senders.status(nowMs).senders.map(({ address }) => address);
    expect(shown).toEqual([...near, "2001:db8:0:2::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]);
  });

  test("share the connection limit of one sender within a /64 network", () => {
    const now = () => 1_000_000;
    const senders = new LineSenders({ allowed: [], linesPerSecondMax: 10, now });
    const slots = new ConnectionSlots({ connectionsMax: 100, connectionsPerSenderMax: 3, now });
    const take = (address: string) => slots.take(new Socket(), senders.find("syslog", "tcp", address));
    const taken = [1, 2, 3].map((n) => take(`2001:db8::${n}`));
    expect(take("2001:db8::4")).toContain("already has 3 open connections");
    expect(typeof take("2001:db8:0:1::4")).toBe("object");
    for (const n of [1, 2, 3, 4]) expect(typeof take(`192.0.2.${n}`)).toBe("object");
    const [first] = taken;
    if (typeof first !== "object") throw new Error(first);
    first.socket.emit("close");
    expect(typeof take("2001:db8::4")).toBe("object");
    expect(senders.find("syslog", "tcp", "2001:db8::4").connections).toBe(1);
  });
});
