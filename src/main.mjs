import * as loader from "node:module";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

// JavaScript, and nothing imported before the cache is on: what takes types out of a file stays in memory once it was
// needed, 12 MB of it, and the cache has every other file without them.

// An older Node cannot read what comes next, and would say so in words that help nobody. It has no cache to import by name either.
const NODE_MIN = 26;
if (Number(process.versions.node.split(".")[0]) < NODE_MIN) {
  process.stderr.write(
    `Tocsin needs Node ${NODE_MIN}, and this is ${process.versions.node}.\n` +
      `npm start and npx tocsin bring their own; or install Node ${NODE_MIN}.\n`,
  );
  process.exit(1);
}

// Two limits without which memory grows for hours under steady load, and which are read when a process begins. So the service
// begins again as itself, with the same process id. Whoever has set one of them keeps it.
// - glibc gives each thread an arena of its own, up to eight for each core, and does not use what was freed in another.
// - V8 lets the semi-spaces of the main thread grow to 32 MB on a large machine. lib/thread.ts has the limit of the others.
const ARENAS_MAX = "2";
const SEMI_SPACE = "--max-semi-space-size";
const SEMI_SPACE_MB_MAX = 8;
const { execPath, execArgv, argv, env } = process;
const hasSemiSpace = [...execArgv, env.NODE_OPTIONS ?? ""].some((flags) => flags.includes(SEMI_SPACE));
if (argv[2] === "serve" && (!hasSemiSpace || env.MALLOC_ARENA_MAX === undefined)) {
  const flags = hasSemiSpace ? execArgv : [...execArgv, `${SEMI_SPACE}=${SEMI_SPACE_MB_MAX}`];
  process.execve(execPath, [execPath, ...flags, ...argv.slice(1)], { MALLOC_ARENA_MAX: ARENAS_MAX, ...env });
}

// What lib/rest.ts asks for is done within seconds of the rest, and from the start on, not half a minute later.
setFlagsFromString("--memory-reducer-delay-ms=4000");
setFlagsFromString("--gc-memory-reducer-start-delay-ms=0");
// V8's own default, said aloud: lib/rest.ts says it again after each rest, and it would else be another set of flags.
setFlagsFromString("--no-memory-saver-mode");

// Threads of libuv's pool, which DuckDB's statements hold for as long as they run: room for every question that the store
// lets run at once, and for the files, names and compression of everybody else. Read when the pool is first used.
process.env.UV_THREADPOOL_SIZE ??= "32";

// Every thread of the service loads its code for itself; from this cache that takes half the time and a third less memory.
// The variable is what the threads go by. It keeps code apart by the flags above, which is why they come first.
const cache = fileURLToPath(new URL("../node_modules/.cache/tocsin", import.meta.url));
process.env.NODE_COMPILE_CACHE ??= cache;
loader.enableCompileCache(process.env.NODE_COMPILE_CACHE);

const { runCommandLine } = await import("./commands/program.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
// What a command that failed has left open does not keep the process: whoever watches over it is to know.
if (process.exitCode !== 0) {
  for (const stream of [process.stdout, process.stderr]) await new Promise((done) => stream.write("", done));
  process.exit();
}
