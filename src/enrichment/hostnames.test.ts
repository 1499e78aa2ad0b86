import { Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";
import { startDns } from "./dns-server.fixture.ts";
import { Hostnames, type HostnamesOptions } from "./hostnames.ts";

const opened: { close(): void }[] = [];
afterEach(() => {
  for (const item of opened.splice(0)) item.close();
});

const openDns = async () => {
  const dns = await startDns();
  opened.push(dns);
  return dns;
};

function open(options: Partial<HostnamesOptions> & { resolver: string | null }) {
  const registry = new Registry();
  const hostnames = new Hostnames({ enabled: true, perSecondMax: 1000, registry, ...options });
  opened.push(hostnames);
  const outcomes = async (): Promise<Record<string, number>> => {
    const metric = await registry.getSingleMetric("tocsin_hostname_lookups_total")!.get();
    return Object.fromEntries(metric.values.map(({ labels, value }) => [labels["outcome"], value]));
  };
  const settled = async (lookups: number) => {
    while (Object.values(await outcomes()).reduce((sum, count) => sum + count, 0) < lookups)
      await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return { hostnames, outcomes, settled };
}

test("the first request returns nothing, later ones the name, and DNS is queried once", async () => {
  const dns = await openDns();
  dns.names.set("7.2.0.192.in-addr.arpa", "Mail.Example.ORG");
  dns.names.set(`1${".0".repeat(23)}.8.b.d.0.1.0.0.2.ip6.arpa`, "six.example.org");
  const { hostnames, settled, outcomes } = open({ resolver: dns.address });
  expect(hostnames.nameOf("192.0.2.7")).toBeNull();
  expect(hostnames.nameOf("192.0.2.7")).toBeNull();
  expect(hostnames.nameOf("2001:db8::1")).toBeNull();
  await settled(2);
  for (let time = 0; time < 3; time++) expect(hostnames.nameOf("192.0.2.7")).toBe("mail.example.org");
  expect(hostnames.nameOf("2001:db8::1")).toBe("six.example.org");
  expect(dns.asked.length).toBe(2);
  expect(await outcomes()).toEqual({ found: 2 });
});

test("a missing name is cached for less time than a name, and a failure for the least", async () => {
  const dns = await openDns();
  let clock = 1_000_000;
  dns.names.set("8.2.0.192.in-addr.arpa", "fail");
  const { hostnames, settled } = open({ resolver: dns.address, now: () => clock });
  const ask = () => [hostnames.nameOf("192.0.2.7"), hostnames.nameOf("192.0.2.8")];
  ask();
  await settled(2);
  const failures = dns.asked.length - 1;
  expect(ask()).toEqual([null, null]);
  clock += 120_000;
  dns.names.set("8.2.0.192.in-addr.arpa", "back.example.org");
  ask();
  await settled(3);
  expect(ask()).toEqual([null, "back.example.org"]);
  expect(dns.asked.length).toBe(failures + 2);
  clock += 3_600_000;
  ask();
  await settled(4);
  expect(dns.asked.filter((name) => name.startsWith("7.")).length).toBe(2);
});

test("a stale name is returned until it is confirmed, and survives a failing resolver", async () => {
  const dns = await openDns();
  let clock = 0;
  dns.names.set("7.2.0.192.in-addr.arpa", "old.example.org");
  const { hostnames, settled } = open({ resolver: dns.address, now: () => clock });
  hostnames.nameOf("192.0.2.7");
  await settled(1);
  clock += 24 * 3_600_000;
  dns.names.set("7.2.0.192.in-addr.arpa", "fail");
  expect(hostnames.nameOf("192.0.2.7")).toBe("old.example.org");
  await settled(2);
  expect(hostnames.nameOf("192.0.2.7")).toBe("old.example.org");
  clock += 120_000;
  dns.names.set("7.2.0.192.in-addr.arpa", "new.example.org");
  hostnames.nameOf("192.0.2.7");
  await settled(3);
  expect(hostnames.nameOf("192.0.2.7")).toBe("new.example.org");
});

test("private addresses are looked up at a configured resolver only, and unassignable ones never", async () => {
  const dns = await openDns();
  const privates = [
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.1.1",
    "127.0.0.1",
    "::1",
    "fd00::1",
  ];
  const unassignable = ["0.0.0.0", "224.0.0.251", "255.255.255.255", "::", "ff02::1"];
  const system = open({ resolver: null, systemServers: [dns.address] });
  for (const address of [...privates, ...unassignable, "192.0.2.1"]) system.hostnames.nameOf(address);
  await system.settled(1);
  expect(dns.asked).toEqual(["1.2.0.192.in-addr.arpa"]);
  const configured = open({ resolver: dns.address });
  for (const address of [...privates, ...unassignable]) configured.hostnames.nameOf(address);
  await configured.settled(privates.length);
  expect(dns.asked.length).toBe(1 + privates.length);
});

test("nothing is looked up when disabled", async () => {
  const dns = await openDns();
  const off = open({ resolver: dns.address, enabled: false });
  const on = open({ resolver: dns.address });
  expect(off.hostnames.nameOf("192.0.2.1")).toBeNull();
  on.hostnames.nameOf("192.0.2.2");
  await on.settled(1);
  expect(dns.asked).toEqual(["2.2.0.192.in-addr.arpa"]);
});

test("invalid names are ignored", async () => {
  const dns = await openDns();
  const bad = ["<script>alert(1)</script>.example", "a b.example", "é.example", "-.example", "line\nbreak.example"];
  for (const [nth, name] of bad.entries()) dns.names.set(`${nth}.2.0.192.in-addr.arpa`, name);
  const { hostnames, settled } = open({ resolver: dns.address });
  const ask = () => bad.map((_, nth) => hostnames.nameOf(`192.0.2.${nth}`));
  ask();
  await settled(bad.length);
  expect(ask()).toEqual(bad.map(() => null));
});

test("concurrent lookups are limited, others are queued, and those beyond the limit are dropped and counted", async () => {
  const dns = await openDns();
  const addresses = Array.from({ length: 10_020 }, (_, nth) => `198.51.${nth >> 8}.${nth & 255}`);
  for (const address of addresses) dns.names.set(`${address.split(".").reverse().join(".")}.in-addr.arpa`, undefined);
  const { hostnames, outcomes } = open({ resolver: dns.address, perSecondMax: 1_000_000 });
  for (const address of addresses) hostnames.nameOf(address);
  while (new Set(dns.asked).size < 8) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(new Set(dns.asked).size).toBe(8);
  const { dropped } = await outcomes();
  expect(dropped).toBeGreaterThan(0);
  expect(dropped).toBeLessThanOrEqual(20);
});

test("the least recently used name is evicted first", async () => {
  const dns = await openDns();
  for (const nth of [1, 2, 3]) dns.names.set(`${nth}.2.0.192.in-addr.arpa`, `host${nth}.example.org`);
  const { hostnames, settled } = open({ resolver: dns.address, namesMax: 2 });
  for (const nth of [1, 2, 3]) {
    hostnames.nameOf(`192.0.2.${nth}`);
    await settled(nth);
  }
  expect(hostnames.nameOf("192.0.2.3")).toBe("host3.example.org");
  expect(hostnames.nameOf("192.0.2.2")).toBe("host2.example.org");
  expect(hostnames.nameOf("192.0.2.1")).toBeNull();
});
