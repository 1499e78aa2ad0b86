import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

// Who may import whom. Data flows from the top of this list to the bottom; an import may only point upward in it.
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  model: ["lib"],
  demo: ["lib", "model"],
  config: ["lib", "model"],
  enrichment: ["lib", "model", "store/store.ts"],
  store: ["lib", "model"],
  collectors: ["lib", "model"],
  flows: ["lib", "model", "collectors"],
  exports: ["lib", "model", "store/store.ts"],
  intake: ["lib", "model", "store/store.ts"],
  alerts: ["lib", "model", "store/store.ts"],
  detection: ["lib", "model", "store/store.ts"],
  notify: ["lib", "model", "store/store.ts"],
  analysis: ["lib", "model", "store/store.ts"],
  sigma: ["lib", "model", "detection"],
  api: [
    "lib",
    "model",
    "config",
    "enrichment",
    "store/store.ts",
    "collectors/status.ts",
    "collectors/reading.ts",
    "collectors/inlet/status.ts",
    "collectors/posts.ts",
    "exports",
    "intake",
    "alerts",
    "detection",
    "sigma",
  ],
  docs: ["lib", "model", "config", "detection", "api/problems.ts"],
  retention: ["lib", "config", "store/store.ts"],
  app: [
    "lib",
    "model",
    "config",
    "enrichment",
    "store",
    "exports",
    "intake",
    "alerts",
    "detection",
    "collectors",
    "notify",
    "analysis",
    "flows",
    "api",
    "retention",
  ],
  commands: [
    "lib",
    "model",
    "demo",
    "config",
    "enrichment",
    "store",
    "collectors",
    "detection",
    "sigma",
    "notify",
    "docs",
    "app",
  ],
  main: ["commands"],
};

const root = fileURLToPath(new URL("../src/", import.meta.url));
const sources = globSync("**/*.{ts,mjs}", { cwd: root }).filter(
  (file) => !/\.test\.ts$|(^|\/)contract\.ts$/.test(file),
);

/** The part of the house that a file belongs to: its folder under src, or its own name. */
const partOf = (file: string) => file.split("/")[0]!.replace(/\.(ts|mjs)$/, "");

const imports = sources.flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:from|import\(|import)\s*"(\.[^"]+)"/g)].map((match) => ({
    file,
    target: relative(root, join(root, dirname(file), match[1]!)),
  })),
);

test("blocks of shell on the pages hold no comments: pasted into zsh, the default on macOS, they are arguments", () => {
  const pages = globSync(["*.md", "docs/**/*.md"], { cwd: join(root, "..") });
  const comments = pages.flatMap((page) => {
    const blocks = readFileSync(join(root, "..", page), "utf8").matchAll(/^```(?:sh|bash|zsh)\n([^]*?)^```$/gm);
    const lines = [...blocks].flatMap(([, block]) => block!.split("\n"));
    return lines.filter((line) => /(^|\s)#/.test(line)).map((line) => `${page}: ${line}`);
  });
  expect(comments, "say it in words above the block").toEqual([]);
});

test("every part of the house has its line in the table", () => {
  const unknown = [...new Set(sources.map(partOf))].filter((part) => !(part in MAY_IMPORT));
  expect(unknown, "add the part to MAY_IMPORT in test/house.test.ts, with what it may import").toEqual([]);
});

test("imports point one way: from what is told to what is known", () => {
  const wrong = imports
    .filter(({ file, target }) => partOf(file) !== partOf(target))
    .filter(({ file, target }) => {
      const allowed = MAY_IMPORT[partOf(file)] ?? [];
      return !allowed.includes(partOf(target)) && !allowed.includes(target);
    })
    .map(({ file, target }) => {
      const allowed = MAY_IMPORT[partOf(file)]?.join(", ") || "nothing of ours";
      return `src/${file} imports src/${target}, but ${partOf(file)} may import ${allowed}. Move what is shared up into model or lib, or have app.ts pass it in.`;
    });
  expect(wrong).toEqual([]);
});

test("the engines of the embedded store are known to nobody but the store", () => {
  const wrong = sources.filter(
    (file) =>
      partOf(file) !== "store" && /from "(node:sqlite|@duckdb\/node-api)"/.test(readFileSync(join(root, file), "utf8")),
  );
  expect(wrong, "ask for it through src/store/store.ts").toEqual([]);
});

test("importing a file does nothing: only main.mjs and the code of a thread act by themselves", () => {
  const wrong = sources.filter((file) => {
    const text = readFileSync(join(root, file), "utf8");
    const acts = /^(await |void |process\.|[a-zA-Z.]+\(.*\);$)/m.test(text);
    return acts && file !== "main.mjs" && !/^serveThread\(/m.test(text);
  });
  expect(wrong, "put it in a function that app.ts or a command calls").toEqual([]);
});

/** It checks what people send, and runs for one import of rules. */
const CHECKING_THREADS = ["sigma/worker.ts"];

/** What a file of ours brings with it when it is loaded, packages by their names. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  const text = readFileSync(join(root, file), "utf8");
  for (const [, from] of text.matchAll(/^(?:import|export)(?! type\b)[^;]*?from "([^"]+)";$/gm)) {
    const target = from!.startsWith(".") ? relative(root, join(root, dirname(file), from!)) : from!;
    if (loaded.has(target)) continue;
    loaded.add(target);
    if (target.endsWith(".ts")) loadedWith(target, loaded);
  }
  return loaded;
}

test("threads that check nothing load no schemas: each would take a tenth of a second of every start, and megabytes", () => {
  const threads = sources.filter((file) => /^serveThread\(/m.test(readFileSync(join(root, file), "utf8")));
  const loading = threads.filter((file) => loadedWith(file).has("zod"));
  expect(loading, "keep what they need apart from its schema, as model/condition.ts is").toEqual(CHECKING_THREADS);
});
