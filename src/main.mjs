import * as loader from "node:module";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

// JavaScript, and no imports before the compile cache is enabled: Node's type stripper stays in memory once used (12 MB),
// and the cache holds every other file already stripped.

// An older Node cannot parse the rest and would fail with an unhelpful message. It has no named export for the cache either.
const NODE_MIN = 26;
if (Number(process.versions.node.split(".")[0]) < NODE_MIN) {
  process.stderr.write(
    `Tocsin needs Node ${NODE_MIN}, and this is ${process.versions.node}.\n` +
      `npm start and npx tocsin bring their own; or install Node ${NODE_MIN}.\n`,
  );
  process.exit(1);
}

// Without these limits, memory grows for hours under steady load. They are read at process start, so the service re-executes
// itself, with the same process id. A value that the operator has set is kept.
// - glibc gives each thread its own arena, up to eight per core, and does not reuse memory freed in another.
// - glibc maps large buffers and returns them when freed, but raises its threshold with each one, up to 32 MB. Megabytes of
//   requests and responses then land in the arenas, which small long-lived buffers keep from shrinking. A fixed threshold
//   prevents that.
// - V8 lets the semi-spaces of the main thread grow to 32 MB on a large machine. lib/thread.ts limits those of the threads.
const MALLOC = { MALLOC_ARENA_MAX: "2", MALLOC_MMAP_THRESHOLD_: "131072" };
const SEMI_SPACE = "--max-semi-space-size";
const SEMI_SPACE_MB_MAX = 8;
const { execPath, execArgv, argv, env } = process;
const hasSemiSpace = [...execArgv, env.NODE_OPTIONS ?? ""].some((flags) => flags.includes(SEMI_SPACE));
const hasMalloc = Object.keys(MALLOC).every((name) => env[name] !== undefined);
const isServer = argv[2] === "serve" || (argv[2] === "demo" && argv.includes("--serve"));
if (isServer && !(hasSemiSpace && hasMalloc)) {
  const flags = hasSemiSpace ? execArgv : [...execArgv, `${SEMI_SPACE}=${SEMI_SPACE_MB_MAX}`];
  process.execve(execPath, [execPath, ...flags, ...argv.slice(1)], { ...MALLOC, ...env });
}

// On a large machine V8 lets garbage grow to three times the live heap before a full collection. With 100 percent the main
// thread swings by 50 MB under load instead of 150, for a collection of some 50 ms every half minute.
setFlagsFromString("--heap-growing-percent=100");
// The collections that lib/idle-memory.ts triggers run within seconds, and from the start, not half a minute later.
setFlagsFromString("--memory-reducer-delay-ms=4000");
setFlagsFromString("--gc-memory-reducer-start-delay-ms=0");
// V8's default, set explicitly: lib/idle-memory.ts sets it after each idle period, and the flags must stay the same for the cache.
setFlagsFromString("--no-memory-saver-mode");

// Threads of libuv's pool. A DuckDB statement holds one while it runs: this leaves enough for all concurrent queries of the
// store, and for files, DNS and compression. Read when the pool is first used.
process.env.UV_THREADPOOL_SIZE ??= "32";

// Every thread loads its own code; from this cache that takes half the time and a third less memory. Threads read the
// variable. The cache is keyed by the flags above, which is why they come first.
const cache = fileURLToPath(new URL("../node_modules/.cache/tocsin", import.meta.url));
process.env.NODE_COMPILE_CACHE ??= cache;
loader.enableCompileCache(process.env.NODE_COMPILE_CACHE);

const { runCommandLine } = await import("./commands/program.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
// Handles that a failed command left open must not keep the process alive: a supervisor must see the exit code.
if (process.exitCode !== 0) {
  for (const stream of [process.stdout, process.stderr]) await new Promise((done) => stream.write("", done));
  process.exit();
}
