import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openLists, type Lists } from "./lists.ts";

let folder: string;
let clock = Date.UTC(2026, 0, 1);
const ends: (() => void)[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tocsin-lists-"));
  ends.push(() => rmSync(folder, { recursive: true }));
});
afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
});

const open = (...items: string[]) => openWith(items, pino({ level: "silent" }));

const openWith = async (items: string[], log: pino.Logger) => {
  const lists = await openLists({
    items,
    everyMs: 3_600_000,
    dataDir: folder,
    registry: new Registry(),
    log,
    now: () => clock,
  });
  ends.push(() => lists.close());
  return lists;
};

const poll = async (lists: Lists) => (await Promise.all(lists.all.map((list) => list.poll()))).includes(true);

const put = (name: string, text: string | Buffer) => {
  const path = join(folder, name);
  writeFileSync(`${path}.part`, text);
  renameSync(`${path}.part`, path);
  return path;
};

async function serve(listener: RequestListener): Promise<{ port: number; stop(): void }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  ends.push(stop);
  return { port: (server.address() as AddressInfo).port, stop };
}

const later = (ms = 3_600_001) => void (clock += ms);

describe("lists in files", () => {
  test("return the lists with an address or name, in the order of the settings", async () => {
    const lists = await open(
      `one=${put("one", "192.0.2.7\nevil.example")}`,
      `two=${put("two", "192.0.2.0/24\n2001:db8::/32")}`,
    );
    expect(lists.withAddress("192.0.2.7")).toEqual(["one", "two"]);
    expect(lists.withAddress("::ffff:192.0.2.9")).toEqual(["two"]);
    expect(lists.withAddress("2001:db8::1%eth0")).toEqual(["two"]);
    expect(lists.withAddress("no address")).toEqual([]);
    expect(lists.withName("WWW.Evil.Example.")).toEqual(["one"]);
    expect(lists.withName("192.0.2.7")).toEqual([]);
  });

  test("are loaded again when they change, and an invalid file leaves the last content", async () => {
    const path = put("mine", "192.0.2.1");
    const lists = await open(`mine=${path}`);
    expect(await poll(lists)).toBe(false);
    put("mine", "192.0.2.2\n192.0.2.3");
    expect(await poll(lists)).toBe(true);
    expect([lists.withAddress("192.0.2.1"), lists.withAddress("192.0.2.2")]).toEqual([[], ["mine"]]);
    put("mine", Buffer.from(Array.from({ length: 4000 }, (_, i) => (i * 2_654_435_761) >>> 24)));
    await poll(lists);
    expect(lists.withAddress("192.0.2.2")).toEqual(["mine"]);
    expect(lists.status[0]!.fault!.message).toContain("its last content stays in use");
    put("mine", "192.0.2.4\nwhat is this\n");
    expect(await poll(lists)).toBe(true);
    expect(lists.status[0]).toMatchObject({ addresses: 1, badLines: 1, fault: null });
  });

  test("that are missing are reported without their path, and loaded once they exist", async () => {
    const lists = await open(`mine=${join(folder, "missing")}`);
    expect(lists.status[0]!.fault!.message).toBe("the list mine could not be loaded: the file cannot be read (ENOENT)");
    put("missing", "192.0.2.1");
    expect(await poll(lists)).toBe(true);
    expect(lists.withAddress("192.0.2.1")).toEqual(["mine"]);
  });
});

describe("lists over the network", () => {
  test("are fetched when due and only if changed, and a copy is used after a restart without the network", async () => {
    let content = "192.0.2.1\n";
    const asked: (string | undefined)[] = [];
    const peer = await serve((request, response) => {
      asked.push(request.headers["if-none-match"]);
      const etag = `"${content.length}"`;
      if (request.headers["if-none-match"] === etag) response.writeHead(304).end();
      else response.writeHead(200, { ETag: etag }).end(content);
    });
    const item = `feed=http://127.0.0.1:${peer.port}/list?key=secret`;
    const lists = await open(item);
    expect(lists.withAddress("192.0.2.1")).toEqual([]);
    expect(await poll(lists)).toBe(true);
    expect(await poll(lists)).toBe(false);
    later();
    expect(await poll(lists)).toBe(false);
    content = "192.0.2.1\n192.0.2.2\n";
    later();
    expect(await poll(lists)).toBe(true);
    expect(asked).toEqual([undefined, '"10"', '"10"']);
    expect(lists.withAddress("192.0.2.2")).toEqual(["feed"]);
    expect(JSON.stringify(lists.status)).not.toContain("secret");
    peer.stop();
    const again = await open(item);
    expect(again.withAddress("192.0.2.2")).toEqual(["feed"]);
    await poll(again);
    expect(again.withAddress("192.0.2.2")).toEqual(["feed"]);
    expect(again.status[0]!.fault!.message).toMatch(/ECONNREFUSED.*stays in use$/);
    const elsewhere = await open(`${item}2`);
    expect(elsewhere.withAddress("192.0.2.2")).toEqual([]);
  });

  test.each<[string, RequestListener, string]>([
    [
      "a redirect to an internal address",
      (_, response) => response.writeHead(302, { Location: "/inside" }).end("192.0.2.66"),
      "status 302",
    ],
    ["an error", (_, response) => response.writeHead(503).end("192.0.2.66"), "status 503"],
    ["a login page", (_, response) => response.end("<html>\n<h1>Log in</h1>\n</html>"), 'begins with "<html>"'],
    ["a closed connection", (request) => request.socket.destroy(), "socket hang up"],
  ])("that return %s keep the last content, and no other URL is requested", async (_, listener, reason) => {
    let isGood = true;
    const paths: (string | undefined)[] = [];
    const { port } = await serve((request, response) => {
      paths.push(request.url);
      if (isGood) response.end("192.0.2.1");
      else listener(request, response);
    });
    const lists = await open(`feed=http://127.0.0.1:${port}/list`);
    await poll(lists);
    isGood = false;
    later();
    expect(await poll(lists)).toBe(false);
    expect([lists.withAddress("192.0.2.1"), lists.withAddress("192.0.2.66")]).toEqual([["feed"], []]);
    expect(lists.status[0]!.fault!.message).toContain(reason);
    expect(paths).toEqual(["/list", "/list"]);
    // The retry comes before the list is due.
    isGood = true;
    later(300_001);
    await poll(lists);
    expect(lists.status[0]!.fault).toBeNull();
  });

  test("whose response repeats the URL are reported without it", async () => {
    const { port } = await serve((request, response) => response.end(`no such list: ${request.url}`));
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const lists = await openWith([`feed=http://127.0.0.1:${port}/list.txt?key=a-long-secret`], log);
    await poll(lists);
    expect(lists.status[0]!.fault!.message).toContain('it begins with "no such list: (hidden)"');
    expect(lines).toHaveLength(1);
    expect(JSON.stringify([lists.status, lines])).not.toContain("a-long-secret");
  });

  test("are not fetched from a name that resolves to a private address", async () => {
    let asked = 0;
    const { port } = await serve((_, response) => {
      asked++;
      response.end("192.0.2.1");
    });
    const lists = await open(`feed=http://localhost:${port}/list`);
    await poll(lists);
    expect([asked, lists.status[0]!.addresses]).toEqual([0, 0]);
    expect(lists.status[0]!.fault!.message).toContain("not a public address");
  });
});
