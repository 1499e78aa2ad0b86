import { readFile, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { Reader, type Response } from "maxmind";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import type { JsonObject } from "../model/event.ts";
import { GeoTree } from "./geo-tree.ts";
import type { EnrichmentFault, GeoStatus } from "./enrichment-status.ts";

// Locations of addresses, from an MMDB file in memory. An invalid file is refused, and the previous one stays in use.

const FILE_BYTES_MAX = 1024 * 1024 * 1024;
const PLACES_CACHED_MAX = 50_000;
const CITY_CHARACTERS_MAX = 100;
/** Addresses across the whole file that are looked up without an error before it is accepted. */
const PROBE_ADDRESSES = 2048;

export interface GeoOptions {
  /** Null selects the bundled file. */
  readonly file: string | null;
  readonly registry: Registry;
  readonly log: Logger;
  readonly now: () => number;
}

interface LoadedGeoFile {
  readonly reader: Reader<Response>;
  readonly tree: GeoTree;
  /** Decoded places by record number. */
  readonly places: Map<number, JsonObject>;
  readonly readAtMs: number;
}

export class Geo {
  readonly #options: GeoOptions;
  readonly #path: string;
  readonly #faults: Counter;
  #loaded: LoadedGeoFile | undefined;
  #fault: EnrichmentFault | null = null;
  /** The signature of the last file read, and the fault of its content. */
  #lastRead: { readonly signature: string; readonly fault: EnrichmentFault | null } = { signature: "", fault: null };

  constructor(options: GeoOptions) {
    this.#options = options;
    this.#path = options.file ?? builtinFile();
    this.#faults = new Counter({
      name: "tocsin_enrichment_geo_faults_total",
      help: "Geolocation files refused, and addresses whose record cannot be decoded",
      registers: [options.registry],
    });
  }

  /** Reads the file again if it has changed. Returns true if answers may have changed. */
  async poll(): Promise<boolean> {
    let signature = "";
    try {
      const found = await stat(this.#path);
      const { size, mtimeMs, ino } = found;
      signature = `${size} ${mtimeMs} ${ino}`;
      if (signature === this.#lastRead.signature) {
        // The file may have been missing since.
        this.#fault = this.#lastRead.fault;
        return false;
      }
      if (!found.isFile()) throw new Error("it is not a regular file");
      if (size > FILE_BYTES_MAX) throw new Error(`it is larger than ${FILE_BYTES_MAX} bytes`);
      const bytes = await readFile(this.#path);
      const reader = openReader(bytes);
      const tree = new GeoTree(bytes, reader.metadata);
      this.#loaded = { reader, tree, places: new Map(), readAtMs: this.#options.now() };
      this.#fault = null;
      this.#lastRead = { signature, fault: null };
      this.#options.log.info({ kind: reader.metadata.databaseType }, "loaded the geolocation file");
      return true;
    } catch (error) {
      const code = systemCodeOf(error);
      this.#refuse(error, code ?? (error instanceof Error ? error.message : String(error)));
      // A system error may go away without a change of the file.
      if (code === undefined) this.#lastRead = { signature, fault: this.#fault };
      return false;
    }
  }

  #refuse(error: unknown, reason: string): void {
    const message = `the geolocation file cannot be used: ${reason}${this.#loaded ? "; the previous one stays in use" : ""}`;
    const isNew = this.#fault?.message !== message;
    if (!isNew) return;
    this.#fault = { message, atMs: this.#options.now() };
    this.#faults.inc();
    this.#options.log.warn({ err: error }, message);
  }

  /** The place of a canonical address. */
  placeOf(address: string): JsonObject | undefined {
    const record = this.#loaded?.tree.find(address);
    if (record === undefined) return undefined;
    const { places } = this.#loaded!;
    let place = places.get(record);
    if (!place) {
      if (places.size >= PLACES_CACHED_MAX) places.clear();
      places.set(record, (place = this.#decode(address)));
    }
    return place === NO_PLACE ? undefined : place;
  }

  #decode(address: string): JsonObject {
    try {
      const record = this.#loaded!.reader.get(address);
      return typeof record === "object" && record !== null ? placeIn(record as Record<string, unknown>) : NO_PLACE;
    } catch {
      // A damaged part of the file that the probes did not touch.
      this.#faults.inc();
      return NO_PLACE;
    }
  }

  get status(): GeoStatus {
    const metadata = this.#loaded?.reader.metadata;
    return {
      kind: metadata?.databaseType ?? null,
      builtAtMs: metadata?.buildEpoch.getTime() ?? null,
      readAtMs: this.#loaded?.readAtMs ?? null,
      isBuiltin: this.#options.file === null,
      fault: this.#fault,
    };
  }
}

/** Opens even without a readable file: events then have no place, and the status says why. */
export async function openGeo(options: GeoOptions): Promise<Geo> {
  const geo = new Geo(options);
  await geo.poll();
  return geo;
}

function systemCodeOf(error: unknown): string | undefined {
  const { code } = error as NodeJS.ErrnoException;
  return code?.startsWith("E") && !code.startsWith("ERR_") ? code : undefined;
}

/** The bundled file, which covers both address families. */
export function builtinFile(): string {
  const require = createRequire(import.meta.url);
  return require.resolve("@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb");
}

/** Throws if the file is not an MMDB file, is truncated, or has a damaged tree. */
function openReader(bytes: Buffer): Reader<Response> {
  let reader: Reader<Response>;
  try {
    reader = new Reader<Response>(bytes);
  } catch (error) {
    throw new Error("it is not an MMDB file, or it is truncated", { cause: error });
  }
  const { searchTreeSize, nodeCount, ipVersion, buildEpoch, databaseType } = reader.metadata;
  const isSound =
    Number.isSafeInteger(nodeCount) &&
    nodeCount > 0 &&
    (ipVersion === 4 || ipVersion === 6) &&
    typeof databaseType === "string" &&
    Number.isFinite(buildEpoch.getTime()) &&
    searchTreeSize < bytes.length;
  if (!isSound) throw new Error("its metadata is invalid");
  let found = 0;
  try {
    for (let i = 0; i < PROBE_ADDRESSES; i++) {
      const four = (i * 2_654_435_761) >>> 0;
      const text = [four >>> 24, (four >>> 16) & 255, (four >>> 8) & 255, four & 255].join(".");
      if (reader.get(text)) found++;
      // Global unicast: 2000::/3.
      if (
        ipVersion === 6 &&
        reader.get(`2${(i & 0xfff).toString(16).padStart(3, "0")}:${(four & 0xffff).toString(16)}::`)
      )
        found++;
    }
  } catch (error) {
    throw new Error("parts of it are damaged", { cause: error });
  }
  if (found === 0 && nodeCount > PROBE_ADDRESSES) throw new Error("it has no entries for probed addresses");
  return reader;
}

const NO_PLACE: JsonObject = {};

/** Reads the records of GeoLite2 and DB-IP, and the flat records of country files. */
function placeIn(record: Record<string, unknown>): JsonObject {
  const country =
    countryIn(record["country"]) ?? countryIn(record["country_code"]) ?? countryIn(record["registered_country"]);
  const city = cityIn(record["city"]);
  if (country === undefined) return NO_PLACE;
  return city === undefined ? { country } : { country, city };
}

function countryIn(value: unknown): string | undefined {
  const code = typeof value === "object" && value !== null ? (value as { iso_code?: unknown }).iso_code : value;
  return typeof code === "string" && /^[A-Za-z]{2}$/.test(code) ? code.toUpperCase() : undefined;
}

function cityIn(value: unknown): string | undefined {
  const names =
    typeof value === "object" && value !== null ? (value as { names?: Record<string, unknown> }).names : undefined;
  const name = typeof value === "string" ? value : (names?.["en"] ?? Object.values(names ?? {})[0]);
  return typeof name === "string" && name !== "" ? name.slice(0, CITY_CHARACTERS_MAX) : undefined;
}
