import { mkdir, open, readFile, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { parseAddress } from "../../lib/ip.ts";
import type { Decoder } from "../decoder.ts";
import type { KeptDomain, KeptOptions, KeptTemplate } from "./domain.ts";

// Templates on disk, so that data of a gateway that rarely sends its templates can be decoded after a restart. They are a
// convenience, not a record: whatever is wrong with the file, the service starts without it.

const FORMAT = "tocsin flow templates 1";
/** Those of most use; a site has dozens. */
const FILE_TEMPLATES_MAX = 2000;
const FILE_BYTES_MAX = 16 * 1024 * 1024;
const SAVE_MS = 60_000;
/** When they were last of use is written less often than what they are. */
const SAVE_TIMES_MS = 3_600_000;

export class TemplateFile {
  readonly #path: string;
  readonly #decoder: Decoder;
  #savedMs = 0;
  #checkedMs = 0;
  /** What is in the file, times left out. */
  #saved: number | undefined;

  constructor(path: string, decoder: Decoder) {
    this.#path = path;
    this.#decoder = decoder;
  }

  /** Gives in words what was wrong with the file; undefined where it was read, or there was none. */
  async load(): Promise<string | undefined> {
    try {
      const domains = await read(this.#path);
      if (domains) this.#decoder.restore(domains);
      return undefined;
    } catch (error) {
      this.#decoder.failRestore();
      return `${this.#path} is not used: ${(error as Error).message}; exporters have to send their templates again`;
    }
  }

  /** Saves where something has changed, at most once a minute. */
  async saveIfDue(nowMs: number): Promise<void> {
    if (Math.abs(nowMs - this.#checkedMs) < SAVE_MS) return;
    this.#checkedMs = nowMs;
    const domains = this.#decoder.keep(FILE_TEMPLATES_MAX);
    const isStale = Math.abs(nowMs - this.#savedMs) >= SAVE_TIMES_MS && domains.length > 0;
    if (identify(domains) === (this.#saved ?? identify([])) && !isStale) return;
    await this.#write(domains, nowMs);
  }

  async save(nowMs: number): Promise<void> {
    const domains = this.#decoder.keep(FILE_TEMPLATES_MAX);
    if (domains.length > 0 || this.#saved !== undefined) await this.#write(domains, nowMs);
  }

  /** All of it, or the file before it. */
  async #write(domains: readonly KeptDomain[], nowMs: number): Promise<void> {
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
    this.#saved = identify(domains);
  }
}

function identify(domains: readonly KeptDomain[]): number {
  const timeless = domains.map(({ templates, ...domain }) => [domain, templates.map(({ spec }) => spec).sort()]);
  return crc32(JSON.stringify(timeless.map((one) => JSON.stringify(one)).sort()));
}

async function read(path: string): Promise<KeptDomain[] | undefined> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > FILE_BYTES_MAX) throw new Error(`it has ${size} bytes, more than ${FILE_BYTES_MAX}`);
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [head = "", body = ""] = text.split("\n", 2);
  if (head !== `${FORMAT} ${crc32(body)}`) throw new Error("it is damaged, or of another version");
  const domains: unknown = JSON.parse(body);
  if (!Array.isArray(domains) || domains.length > FILE_TEMPLATES_MAX || !domains.every(isDomain))
    throw new Error("it holds something else than templates");
  return domains;
}

function isDomain(found: unknown): found is KeptDomain {
  const { address, port, key, options, templates } = (found ?? {}) as Partial<KeptDomain>;
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

function isOptions(found: unknown): found is KeptOptions {
  const { systemStartMs, rate, samplers } = (found ?? {}) as Partial<KeptOptions>;
  return (
    [systemStartMs, rate].every((number) => number === null || typeof number === "number") &&
    Array.isArray(samplers) &&
    samplers.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isFinite))
  );
}

function isTemplate(found: unknown): found is KeptTemplate {
  const { options, spec, learnedMs, sentMs, usedMs } = (found ?? {}) as Partial<KeptTemplate>;
  return (
    typeof options === "boolean" &&
    typeof spec === "string" &&
    [learnedMs, sentMs, usedMs].every((number) => Number.isFinite(number))
  );
}
