import { fileURLToPath } from "node:url";
import type { Logger } from "pino";
import {
  ENCODING_NAMES,
  readConsoleBuild,
  type ConsoleBuild,
  type ConsoleFile,
  type FileEncoding,
} from "./console-files.ts";

// Serves the built console. Each of its screens has an address of its own, which a browser may reload: any path that it
// navigates to and that is not part of the API answers the one page of the console.

/** Where bin/build-console.mjs puts the build. */
const FOLDER = fileURLToPath(new URL("../../console/dist", import.meta.url));

const INDEX = "/index.html";
/** Files below have a hash of their content in their name. */
const ASSETS = "/assets/";
const RETRY_SECONDS = 60;

/** First parts of paths that belong to the API and its pages. */
const RESERVED: ReadonlySet<string> = new Set(["v1", "api", "docs", "openapi.json", "healthz", "readyz", "metrics"]);

const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  // With no-referrer, some browsers send `Origin: null` with the console's own requests.
  "Referrer-Policy": "same-origin",
};

export interface ConsoleRequest {
  readonly method: string;
  /** The path as requested, without the query. */
  readonly path: string;
  readonly headers: {
    readonly accept?: string | undefined;
    readonly "accept-encoding"?: string | string[] | undefined;
    readonly "if-none-match"?: string | undefined;
  };
}

export interface ConsoleResponse {
  readonly status: 200 | 304 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

export interface ConsoleOptions {
  readonly folder?: string | undefined;
  readonly log: Logger;
}

/** Reads the build. Without one, the service still runs, and `/` says why. */
export async function openConsole({ folder = FOLDER, log }: ConsoleOptions): Promise<ConsolePages> {
  const build = await readConsoleBuild(folder);
  if (build.files.size === 0) log.warn({ reason: build.failure }, "the console is not built; the API works without it");
  else if (build.failure !== undefined) {
    log.warn({ reason: build.failure }, "the last build of the console failed; an earlier one is served");
  }
  return new ConsolePages(build);
}

export class ConsolePages {
  readonly #files: ConsoleBuild["files"];
  readonly #notBuilt: ConsoleFile;

  constructor({ files, failure }: ConsoleBuild) {
    this.#files = files;
    const plain = Buffer.from(notBuiltPage(failure));
    this.#notBuilt = { type: "text/html; charset=utf-8", tag: "", plain, compressed: {} };
  }

  get isBuilt(): boolean {
    return this.#files.has(INDEX);
  }

  /** Undefined if the request is not for the console. */
  respond({ method, path, headers }: ConsoleRequest): ConsoleResponse | undefined {
    if (method !== "GET" && method !== "HEAD") return undefined;
    if (RESERVED.has(path.split("/", 2)[1] ?? "")) return undefined;
    const isPage = path === "/" || path === INDEX || (!path.startsWith(ASSETS) && isNavigation(headers.accept));
    const name = this.#files.has(path) ? path : isPage ? INDEX : undefined;
    if (name === undefined) return undefined;
    const file = this.#files.get(name);
    return file ? respondWith(file, name.startsWith(ASSETS), headers) : this.#respondNotBuilt();
  }

  #respondNotBuilt(): ConsoleResponse {
    const { type, plain } = this.#notBuilt;
    const headers = {
      ...HEADERS,
      "Content-Type": type,
      "Cache-Control": "no-store",
      "Retry-After": `${RETRY_SECONDS}`,
    };
    return { status: 503, headers, body: plain };
  }
}

function respondWith(file: ConsoleFile, isHashed: boolean, headers: ConsoleRequest["headers"]): ConsoleResponse {
  const encoding = acceptedEncoding(file, String(headers["accept-encoding"] ?? ""));
  const etag = `"${file.tag}${encoding === undefined ? "" : `-${encoding}`}"`;
  const common = {
    ...HEADERS,
    "Cache-Control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
    ETag: etag,
    Vary: "Accept-Encoding",
  };
  if (isListed(etag, headers["if-none-match"])) return { status: 304, headers: common, body: null };
  return {
    status: 200,
    headers: {
      ...common,
      "Content-Type": file.type,
      ...(encoding !== undefined && { "Content-Encoding": encoding }),
    },
    body: encoding === undefined ? file.plain : file.compressed[encoding]!,
  };
}

/** A browser that navigates names HTML; scripts and programs accept anything or JSON. */
function isNavigation(accept = ""): boolean {
  return accept.split(",").some((part) => part.split(";", 1)[0]!.trim().toLowerCase() === "text/html");
}

/** The preferred encoding that the file has and the client accepts; undefined: none. */
function acceptedEncoding({ compressed }: ConsoleFile, header: string): FileEncoding | undefined {
  const accepted = new Set(
    header
      .toLowerCase()
      .split(",")
      .map((part) => part.split(";").map((piece) => piece.trim()))
      .filter(([, quality]) => quality === undefined || !/^q=0(\.0*)?$/.test(quality))
      .map(([name]) => name),
  );
  return ENCODING_NAMES.find((encoding) => accepted.has(encoding) && compressed[encoding]);
}

function isListed(etag: string, header = ""): boolean {
  return header.split(",").some((part) => part.trim().replace(/^W\//, "") === etag);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function notBuiltPage(failure = "It was never built on this machine."): string {
  const reason = failure.trim().replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!);
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Tocsin: console not built</title></head>
<body>
<h1>The console is not built</h1>
<p>The service runs, and its API works: see <a href="/docs">the API page</a>. Only these pages are missing.</p>
<p>Reason:</p>
<pre>${reason}</pre>
<p>Remove the cause, run <code>node bin/build-console.mjs</code> in the folder of Tocsin and restart the service.</p>
</body>
</html>
`;
}
