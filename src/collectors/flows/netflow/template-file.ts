import { mkdir, open, readFile, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { parseAddress } from "../../../lib/ip.ts";
import type { FlowDecoder } from "../flow-decoder.ts";
import type { SavedDomain, SavedOptions, SavedTemplate } from "./saved-templates.ts";

// Templates on disk, so that data of exporters that rarely send templates can be decoded after a restart. The file is derived
// data: if it is damaged, the service starts without it.

const FORMAT = "tocsin flow templates 1";
/** A site has dozens. */
const FILE_TEMPLATES_MAX = 2000;
const FILE_BYTES_MAX = 16 * 1024 * 1024;
const SAVE_MS = 60_000;
/** Changes of the times alone are saved less often. */
const SAVE_TIMES_MS = 3_600_000;

export class TemplateFile {
  readonly #path: string;
  readonly #decoder: FlowDecoder;
  #savedMs = 0;
  #checkedMs = 0;
  /** Checksum of the file's content, without times. */
  #savedChecksum: number | undefined;

  constructor(path: string, decoder: FlowDecoder) {
    this.#path = path;
    this.#decoder = decoder;
  }

  /** Returns the error message of a file that cannot be used; undefined if it was read or does not exist. */
  async load(): Promise<string | undefined> {
    try {
      const domains = await read(this.#path);
      if (domains) this.#decoder.restoreTemplates(domains);
      return undefined;
    } catch (error) {
      this.#decoder.countDamagedFile();
      return `${this.#path} is ignored: ${(error as Error).message}; exporters have to send their templates again`;
    }
  }

  /** Saves changes, at most once a minute. */
  async saveIfDue(nowMs: number): Promise<void> {
    if (Math.abs(nowMs - this.#checkedMs) < SAVE_MS) return;
    this.#checkedMs = nowMs;
    const domains = this.#decoder.saveTemplates(FILE_TEMPLATES_MAX);
    const isStale = Math.abs(nowMs - this.#savedMs) >= SAVE_TIMES_MS && domains.length > 0;
    if (checksum(domains) === (this.#savedChecksum ?? checksum([])) && !isStale) return;
    await this.#write(domains, nowMs);
  }

  async save(nowMs: number): Promise<void> {
    const domains = this.#decoder.saveTemplates(FILE_TEMPLATES_MAX);
    if (domains.length > 0 || this.#savedChecksum !== undefined) await this.#write(domains, nowMs);
  }

  /** Replaces the file atomically. */
  async #write(domains: readonly SavedDomain[], nowMs: number): Promise<void> {
    const next = `${this.#path}.next`;
    const body = JSON.stringify(domains);
    await mkdir(dirname(this.#path), { recursive: true });
    const file = await open(next, "w", 0o600);
    try {
      await file.writeFile(`${FORMAT} ${crc32(body)}\n${body}`);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(next, this.#path);
    this.#savedMs = nowMs;
    this.#savedChecksum = checksum(domains);
  }
}

function checksum(domains: readonly SavedDomain[]): number {
  const timeless = domains.map(({ templates, ...domain }) => [domain, templates.map(({ spec }) => spec).sort()]);
  return crc32(JSON.stringify(timeless.map((one) => JSON.stringify(one)).sort()));
}

async function read(path: string): Promise<SavedDomain[] | undefined> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > FILE_BYTES_MAX) throw new Error(`it has ${size} bytes, more than the limit of ${FILE_BYTES_MAX}`);
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [head = "", body = ""] = text.split("\n", 2);
  if (head !== `${FORMAT} ${crc32(body)}`) throw new Error("it is damaged or has another version");
  const domains: unknown = JSON.parse(body);
  if (!Array.isArray(domains) || domains.length > FILE_TEMPLATES_MAX || !domains.every(isDomain))
    throw new Error("it does not contain templates");
  return domains;
}

function isDomain(value: unknown): value is SavedDomain {
  const { address, port, key, options, templates } = (value ?? {}) as Partial<SavedDomain>;
  return (
    typeof address === "string" &&
    parseAddress(address) !== undefined &&
    [port, key].every((number) => Number.isSafeInteger(number) && number! >= 0) &&
    isOptions(options) &&
    Array.isArray(templates) &&
    templates.length <= FILE_TEMPLATES_MAX &&
    templates.every(isTemplate)
  );
}

function isOptions(value: unknown): value is SavedOptions {
  const { systemStartMs, rate, samplers } = (value ?? {}) as Partial<SavedOptions>;
  return (
    [systemStartMs, rate].every((number) => number === null || typeof number === "number") &&
    Array.isArray(samplers) &&
    samplers.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isFinite))
  );
}

function isTemplate(value: unknown): value is SavedTemplate {
  const { options, spec, learnedMs, sentMs, usedMs } = (value ?? {}) as Partial<SavedTemplate>;
  return (
    typeof options === "boolean" &&
    typeof spec === "string" &&
    [learnedMs, sentMs, usedMs].every((number) => Number.isFinite(number))
  );
}
