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
import type { Measurement } from "./figures.ts";

// Cost of enrichment per event, in CPU time: the location of a new address, of a recent one, and a list of a million
// entries. The baseline is the bare reader of the same file.

const ADDRESSES = 200_000;
const OFTEN = 1000;
const ENTRIES = 1_000_000;
const ROUNDS = 5;
const PLACE_MICROSECONDS_MAX = 3;
/** No requirement covers lists; this limit is ours. */
const LIST_MICROSECONDS_MAX = 10;

export async function geo(): Promise<readonly Measurement[]> {
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
      measurementOf(`location of ${ADDRESSES.toLocaleString("en")} new addresses`, first, bare),
      measurementOf("location of recent addresses", again, bare),
      measurementOf(
        "location of new addresses, with a list of 1,000,000 entries",
        withList,
        bare,
        LIST_MICROSECONDS_MAX,
      ),
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}

function measurementOf(name: string, ours: number, bare: number, max = PLACE_MICROSECONDS_MAX): Measurement {
  return {
    name,
    result: `${ours.toFixed(2)} µs per event`,
    baseline: `${bare.toFixed(2)} µs per look-up in the bare reader`,
    ratio: ours / bare,
    target: `at most ${max} µs`,
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
    listStore: { all: async () => [], put: nobody, remove: nobody },
    reputationStore: {
      since: async () => [],
      put: nobody,
      removeBefore: nobody,
      lookups: async () => 0,
      saveLookups: nobody,
    },
    events: { amend: nobody, get: async () => undefined },
    annotate: nobody,
    registry: new Registry(),
    log: pino({ level: "silent" }),
  });
}

/** Nine out of ten are IPv4, as in the logs of most sites. */
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

/** CPU time per item in the best of several rounds. */
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
