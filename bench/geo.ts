import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Reader, type Response } from "maxmind";
import pino from "pino";
import { Registry } from "prom-client";
import { randomFrom } from "../src/demo/random.ts";
import { openEnrichment, type Enrichment } from "../src/enrichment/enrichment.ts";
import { builtinFile } from "../src/enrichment/geo.ts";
import { publicAddress } from "../src/lib/address-scope.ts";
import type { Answer } from "./figures.ts";

// What enrichment adds to the price of an event: the place of an address that was never seen before, of one that was, and
// a list of a million entries. By the time that the processor spent: other work on the machine does not count. Beside it
// the bare reader of the same file.

const ADDRESSES = 200_000;
const OFTEN = 1000;
const ENTRIES = 1_000_000;
const ROUNDS = 5;
const PLACE_MICROSECONDS_MAX = 3;
/** Our own: nobody has asked for one. */
const LIST_MICROSECONDS_MAX = 10;

export async function geo(): Promise<readonly Answer[]> {
  const folder = await mkdtemp(join(tmpdir(), "tocsin-geo-"));
  try {
    const addresses = outsideAddresses(ADDRESSES);
    const events = addresses.map((address) => ({ src_ip: address, user: "ann", action: "blocked" }));
    const often = Array.from({ length: ADDRESSES }, (_, i) => events[i % OFTEN]!);
    const reader = new Reader<Response>(readFileSync(builtinFile()), {
      cache: new Map(),
    });
    const bare = microseconds(addresses, (address) => reader.get(address));

    const plain = await open(folder, []);
    const first = microseconds(events, (raw) => plain.enrich(raw));
    const again = microseconds(often, (raw) => plain.enrich(raw));
    await plain.close();

    const list = join(folder, "list.txt");
    await writeFile(list, outsideAddresses(ENTRIES).join("\n"));
    const listed = await open(folder, [`large=${list}`]);
    const withList = microseconds(events, (raw) => listed.enrich(raw));
    await listed.close();
    return [
      answer(`place of an address that was not seen before, ${ADDRESSES.toLocaleString("en")} of them`, first, bare),
      answer("place of an address that was", again, bare),
      answer("the first, and a list of 1,000,000 addresses", withList, bare, LIST_MICROSECONDS_MAX),
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}

function answer(question: string, ours: number, bare: number, max = PLACE_MICROSECONDS_MAX): Answer {
  return {
    question,
    figure: `${ours.toFixed(2)} µs an event`,
    baseline: `${bare.toFixed(2)} µs a look-up by the bare reader`,
    ratio: ours / bare,
    reach: `at most ${max} µs${max === LIST_MICROSECONDS_MAX ? " (our own)" : ""}`,
    met: ours <= max,
    values: { microseconds: ours, bare },
  };
}

function open(dataDir: string, lists: readonly string[]): Promise<Enrichment> {
  const nobody = () => Promise.resolve();
  return openEnrichment({
    settings: {
      geo: true,
      geoFile: null,
      lists,
      listsEveryMinutes: 60,
      abuseipdbKey: null,
      abuseipdbPerDay: 1,
      abuseipdbUrl: "",
    },
    dataDir,
    reputationStore: {
      since: async () => [],
      put: nobody,
      removeBefore: nobody,
      lookups: async () => 0,
      saveLookups: nobody,
    },
    events: { amend: nobody },
    annotate: nobody,
    registry: new Registry(),
    log: pino({ level: "silent" }),
  });
}

/** Nine of ten are IPv4, as in the logs of most sites. */
function outsideAddresses(count: number): string[] {
  const random = randomFrom(7);
  const found = new Set<string>();
  while (found.size < count) {
    const part = () => random.below(256);
    const group = () => random.below(65_536).toString(16);
    const text = random.onceIn(10)
      ? `2a0${random.below(10)}:${group()}:${group()}::${group()}`
      : `${part()}.${part()}.${part()}.${part()}`;
    const address = publicAddress(text);
    if (address !== undefined) found.add(address);
  }
  return [...found];
}

/** Of each, in the best of several rounds. */
function microseconds<Item>(items: readonly Item[], work: (item: Item) => unknown): number {
  let best = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (const item of items) work(item);
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / items.length);
  }
  return best;
}
