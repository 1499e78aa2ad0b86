import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";

// The files of the built console. They are read once, so a build beside a running service does not mix two versions.

/** Limits of a build; a larger one is refused as a whole. */
const FILES_MAX = 2000;
const BYTES_MAX = 64 * 1024 * 1024;
const REASON_CHARACTERS_MAX = 4000;

/** Written by bin/build-console.mjs when a build fails. */
const FAILURE_FILE = ".failed";

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
};

/** Suffixes of compressed copies, by content encoding; the preferred encoding comes first. */
const ENCODINGS = { br: ".br", gzip: ".gz" } as const;
export type FileEncoding = keyof typeof ENCODINGS;
export const ENCODING_NAMES = Object.keys(ENCODINGS) as FileEncoding[];

export interface ConsoleFile {
  readonly type: string;
  /** A hash of the content. */
  readonly tag: string;
  readonly plain: Buffer;
  readonly compressed: Partial<Readonly<Record<FileEncoding, Buffer>>>;
}

/** Files by URL path, such as `/assets/index-1a2b3c.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

export interface ConsoleBuild {
  readonly files: ConsoleFiles;
  /** Why there is no build, or why it is an older one; undefined if the last build succeeded. */
  readonly failure: string | undefined;
}

/** The files of a folder; none if there is no complete build in it. */
export async function readConsoleBuild(folder: string): Promise<ConsoleBuild> {
  const failure = await readFailure(folder);
  const names = await listFiles(folder);
  if (!names.includes("index.html")) return { files: new Map(), failure };
  if (names.length > FILES_MAX) return { files: new Map(), failure: `the build has more than ${FILES_MAX} files` };
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  if (sizes.reduce((sum, size) => sum + size, 0) > BYTES_MAX) {
    return { files: new Map(), failure: `the build is larger than ${BYTES_MAX / 1024 / 1024} MiB` };
  }
  const contents = new Map<string, Buffer>();
  for (const name of names) contents.set(name, await readFile(join(folder, name)));
  const suffixes: readonly string[] = Object.values(ENCODINGS);
  const files = [...contents]
    .filter(([name]) => !suffixes.includes(extname(name)))
    .map(([name, plain]): [string, ConsoleFile] => {
      const copies = ENCODING_NAMES.map((encoding) => [encoding, contents.get(name + ENCODINGS[encoding])] as const);
      return [
        `/${name}`,
        {
          type: TYPES[extname(name)] ?? "application/octet-stream",
          tag: createHash("sha256").update(plain).digest("base64url").slice(0, 22),
          plain,
          compressed: Object.fromEntries(copies.filter(([, bytes]) => bytes !== undefined)),
        },
      ];
    });
  return { files: new Map(files), failure };
}

/** Relative names with slashes. Files that begin with a dot, such as the mark of a build, and links are left out. */
async function listFiles(folder: string, below = ""): Promise<string[]> {
  const names: string[] = [];
  for (const entry of await entriesOf(join(folder, below))) {
    if (entry.name.startsWith(".")) continue;
    if (entry.isDirectory()) names.push(...(await listFiles(folder, `${below}${entry.name}/`)));
    else if (entry.isFile()) names.push(below + entry.name);
    // The caller refuses a build with too many files, wherever the walk ended.
    if (names.length > FILES_MAX) break;
  }
  return names;
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function readFailure(folder: string): Promise<string | undefined> {
  try {
    return (await readFile(join(folder, FAILURE_FILE), "utf8")).slice(0, REASON_CHARACTERS_MAX);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}
