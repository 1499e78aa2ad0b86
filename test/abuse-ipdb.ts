import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

// A peer that answers as AbuseIPDB does, or as a test tells it to.

export type Answering = (response: ServerResponse, address: string) => void;

export interface AbusePeer {
  readonly url: string;
  /** Looked-up addresses, in order. */
  readonly asked: string[];
  /** API keys of the requests. */
  readonly keys: Set<unknown>;
  /** Answers to the next requests, one each; after them the peer answers normally. */
  readonly next: Answering[];
  /** Holds back all answers until the returned function is called. */
  hold(): () => void;
  close(): Promise<void>;
}

export const KEY = "not-for-anybody-else";

export const scoreOf = (address: string) => [...address].reduce((sum, char) => sum + char.charCodeAt(0), 0) % 101;

const report = (address: string) => ({
  data: {
    ipAddress: address,
    isPublic: true,
    ipVersion: address.includes(":") ? 6 : 4,
    isWhitelisted: false,
    abuseConfidenceScore: scoreOf(address),
    countryCode: "US",
    usageType: "Data Center/Web Hosting/Transit",
    isp: "Example Networks",
    domain: "example.net",
    hostnames: [],
    isTor: false,
    totalReports: 12,
    numDistinctUsers: 3,
    lastReportedAt: "2026-06-01T10:00:00+00:00",
  },
});

export async function startAbusePeer(): Promise<AbusePeer> {
  const asked: string[] = [];
  const keys = new Set<unknown>();
  const next: Answering[] = [];
  let held: Promise<void> = Promise.resolve();
  const server = createServer((request, response) => {
    const url = new URL(request.url!, "http://peer");
    const address = url.searchParams.get("ipAddress") ?? "";
    asked.push(address);
    keys.add(request.headers["key"]);
    const isRight = url.pathname === "/api/v2/check" && url.searchParams.get("maxAgeInDays") === "90";
    const answer: Answering =
      next.shift() ??
      ((to) =>
        isRight && request.headers["key"] === KEY && request.headers.accept === "application/json"
          ? to.setHeader("X-RateLimit-Remaining", "900").end(JSON.stringify(report(address)))
          : to.writeHead(401).end());
    void held.then(() => answer(response, address));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v2`,
    asked,
    keys,
    next,
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
