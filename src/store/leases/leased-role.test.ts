import pino from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { embeddedLeases } from "../embedded/embedded-leases.ts";
import type { LeaseStore } from "../ports/lease-store.ts";
import { StoreUnavailable } from "../ports/store-errors.ts";
import { LeasedRole } from "./leased-role.ts";

const TTL_MS = 1500;

/** A node that notes when it works. */
function openNode(leases: LeaseStore, holder: string, isWorking: Set<string>) {
  return new LeasedRole({
    name: "work",
    holder,
    leases,
    registry: new Registry(),
    log: pino({ level: "silent" }),
    ttlMs: TTL_MS,
    work: async (_lease, signal, begun) => {
      isWorking.add(holder);
      begun();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      isWorking.delete(holder);
    },
  });
}

test("one node works at a time; another goes on when it closes", async () => {
  const leases = embeddedLeases();
  const isWorking = new Set<string>();
  const first = openNode(leases, "first", isWorking);
  await expect.poll(() => [...isWorking]).toEqual(["first"]);
  const second = openNode(leases, "second", isWorking);
  await new Promise((resolve) => setTimeout(resolve, 2 * TTL_MS));
  expect([...isWorking]).toEqual(["first"]);
  await first.close();
  expect(isWorking.has("first")).toBe(false);
  await expect.poll(() => [...isWorking]).toEqual(["second"]);
  await second.close();
});

test("a node that cannot renew its lease stops before another one begins", async () => {
  const leases = embeddedLeases();
  let isCut = false;
  const cut: LeaseStore = {
    ...leases,
    acquire: (...asked) => (isCut ? Promise.reject(new StoreUnavailable("failed", "cut")) : leases.acquire(...asked)),
    renew: (...asked) => (isCut ? Promise.reject(new StoreUnavailable("failed", "cut")) : leases.renew(...asked)),
  };
  const isWorking = new Set<string>();
  const most: number[] = [];
  const add = isWorking.add.bind(isWorking);
  isWorking.add = (holder) => {
    add(holder);
    most.push(isWorking.size);
    return isWorking;
  };
  const first = openNode(cut, "first", isWorking);
  await expect.poll(() => [...isWorking]).toEqual(["first"]);
  const second = openNode(leases, "second", isWorking);
  isCut = true;
  await expect.poll(() => [...isWorking]).toEqual(["second"]);
  expect(Math.max(...most)).toBe(1);
  await first.close();
  await second.close();
});

test("a node whose lease another has taken stops at once", async () => {
  const leases = embeddedLeases();
  const isWorking = new Set<string>();
  const node = openNode(leases, "node", isWorking);
  await expect.poll(() => [...isWorking]).toEqual(["node"]);
  await leases.release((await leases.current("work"))!);
  await leases.acquire("work", "thief", 60_000);
  await expect.poll(() => [...isWorking]).toEqual([]);
  await node.close();
});

test("work that fails begins again after a pause, though its own release is announced", async () => {
  let attempts = 0;
  const leases = embeddedLeases();
  // As PostgreSQL does: a moment later.
  const late: LeaseStore = {
    ...leases,
    onRelease: (heard) => leases.onRelease((name) => void setTimeout(() => heard(name), 5)),
  };
  const node = new LeasedRole({
    name: "work",
    holder: "node",
    leases: late,
    registry: new Registry(),
    log: pino({ level: "silent" }),
    work: async () => {
      attempts++;
      throw new Error("broken");
    },
  });
  await expect.poll(() => attempts).toBeGreaterThanOrEqual(2);
  const before = attempts;
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(attempts - before).toBeLessThanOrEqual(1);
  await node.close();
});
