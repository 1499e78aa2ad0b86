import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

// Allowed imports. Data flows from the top of this list to the bottom; an import may only point upward in it.
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  model: ["lib"],
  config: ["lib", "model", "notify/channels.ts"],
  enrichment: ["lib", "model", "store/ports"],
  "store/ports": ["lib", "model"],
  "store/leases": ["lib", "store/ports"],
  "store/files": ["lib", "model", "store/ports"],
  "store/queries": ["lib", "model", "store/ports"],
  "store/search": ["lib", "model", "store/ports", "store/files"],
  "store/alert-index": ["lib", "model", "store/ports", "store/queries", "store/search"],
  "store/sqlite": ["lib", "model", "store/ports", "store/files", "store/queries", "store/search", "store/alert-index"],
  "store/duckdb": ["lib", "model", "store/ports", "store/files", "store/queries", "store/search", "store/sqlite"],
  "store/embedded": [
    "lib",
    "model",
    "store/ports",
    "store/files",
    "store/queries",
    "store/search",
    "store/sqlite",
    "store/duckdb",
  ],
  "store/postgres": ["lib", "model", "store/ports", "store/queries", "store/search", "store/alert-index"],
  "store/open-store": [
    "lib",
    "model",
    "store/ports",
    "store/files",
    "store/sqlite",
    "store/embedded",
    "store/postgres",
    "store/opensearch",
  ],
  "store/opensearch": ["lib", "model", "store/ports", "store/files", "store/queries", "store/search", "store/leases"],
  "store/open-archive": [
    "lib",
    "store/ports",
    "store/files",
    "store/sqlite",
    "store/duckdb",
    "store/embedded",
    "store/postgres",
    "store/opensearch",
  ],
  collectors: ["lib", "model"],
  flows: ["lib", "model", "collectors"],
  exports: ["lib", "model", "store/ports"],
  intake: ["lib", "model", "store/ports"],
  alerts: ["lib", "model", "store/ports"],
  detection: ["lib", "model", "store/ports"],
  notify: ["lib", "model", "store/ports"],
  analysis: ["lib", "model", "store/ports"],
  sigma: ["lib", "model", "detection"],
  demo: ["lib", "model", "store/ports", "alerts", "analysis", "detection"],
  migration: ["lib", "model", "store/ports"],
  console: ["lib"],
  reports: [
    "lib",
    "model",
    "store/ports",
    "collectors/flows/flow-status.ts",
    "collectors/formats/reading.ts",
    "collectors/lines/line-status.ts",
  ],
  api: [
    "lib",
    "model",
    "config",
    "enrichment",
    "store/ports",
    "store/search",
    "collectors/flows/flow-status.ts",
    "collectors/formats/reading.ts",
    "collectors/formats/taught-status.ts",
    "collectors/lines/line-status.ts",
    "collectors/lines/unparsed-samples.ts",
    "collectors/http/post-collector.ts",
    "exports",
    "intake",
    "alerts",
    "detection",
    "sigma",
    "console/serve.ts",
    "reports",
  ],
  docs: [
    "lib",
    "model",
    "config",
    "detection",
    "collectors/formats/line-format.ts",
    "collectors/formats/known-formats.ts",
    "notify/channels.ts",
    "notify/message-template.ts",
    "api/problems.ts",
  ],
  retention: ["lib", "model", "config", "store/ports"],
  roles: ["lib", "store/ports", "store/leases"],
  app: [
    "lib",
    "model",
    "config",
    "enrichment",
    "store/ports",
    "store/files",
    "store/open-store",
    "store/duckdb/parquet/convert-to-parquet.ts",
    "exports",
    "intake",
    "alerts",
    "detection",
    "collectors",
    "notify",
    "analysis",
    "flows",
    "console",
    "api",
    "retention",
    "roles",
  ],
  commands: [
    "lib",
    "model",
    "demo",
    "config",
    "enrichment",
    "store/ports",
    "store/open-store",
    "store/open-archive",
    "migration",
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
const sources = globSync("**/*.{ts,mjs}", { cwd: root }).filter((file) => !/\.test\.ts$|\/testing\//.test(file));

/** The part that a file belongs to: its folder under src, or its own name. The store has parts of its own. */
const partOf = (file: string) =>
  file
    .split("/")
    .slice(0, file.startsWith("store/") ? 2 : 1)
    .join("/")
    .replace(/\.(ts|mjs)$/, "");

const imports = sources.flatMap((file) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/(?:from|import\(|import)\s*"(\.[^"]+)"/g)].map((match) => ({
    file,
    target: relative(root, join(root, dirname(file), match[1]!)),
  })),
);

test("shell blocks on the pages contain no comments, which zsh, the default on macOS, would take as arguments", () => {
  const pages = globSync(["*.md", "docs/**/*.md"], { cwd: join(root, "..") });
  const comments = pages.flatMap((page) => {
    const blocks = readFileSync(join(root, "..", page), "utf8").matchAll(/^```(?:sh|bash|zsh)\n([^]*?)^```$/gm);
    const lines = [...blocks].flatMap(([, block]) => block!.split("\n"));
    return lines.filter((line) => /(^|\s)#/.test(line)).map((line) => `${page}: ${line}`);
  });
  expect(comments, "explain it above the block").toEqual([]);
});

test("every part has its line in the table", () => {
  const unknown = [...new Set(sources.map(partOf))].filter((part) => !(part in MAY_IMPORT));
  expect(unknown, "add the part to MAY_IMPORT in test/house.test.ts, with its allowed imports").toEqual([]);
});

test("imports point one way", () => {
  const wrong = imports
    // Fixtures serve tests, which may import anything.
    .filter(({ file, target }) => partOf(file) !== partOf(target) && !file.endsWith(".fixture.ts"))
    .filter(({ file, target }) => {
      const allowed = MAY_IMPORT[partOf(file)] ?? [];
      return !allowed.includes(partOf(target)) && !allowed.includes(target);
    })
    .map(({ file, target }) => {
      const allowed = MAY_IMPORT[partOf(file)]?.join(", ") || "nothing of ours";
      return `src/${file} imports src/${target}, but ${partOf(file)} may import ${allowed}. Move shared code up into model or lib, or have app.ts pass it in.`;
    });
  expect(wrong).toEqual([]);
});

const production = sources.filter((file) => file.endsWith(".ts") && !file.endsWith(".fixture.ts"));

test("a file name is used once", () => {
  const byName = Map.groupBy(production, (file) => file.split("/").at(-1)!);
  const repeated = [...byName.values()].filter((files) => files.length > 1);
  expect(repeated, "give each file a more specific name").toEqual([]);
});

test("a type name is declared in one file", () => {
  const declared = production.flatMap((file) =>
    [
      ...readFileSync(join(root, file), "utf8").matchAll(
        /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm,
      ),
    ].map((match) => ({ name: match[1]!, file })),
  );
  const repeated = [...Map.groupBy(declared, ({ name }) => name)]
    .map(([name, places]) => [name, ...new Set(places.map(({ file }) => file))])
    .filter((places) => places.length > 2);
  expect(repeated, "give each type a more specific name, or import the one that exists").toEqual([]);
});

test("files do not import each other in a circle", () => {
  const targets = Map.groupBy(imports, ({ file }) => file);
  const open: string[] = [];
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string): void => {
    if (done.has(file)) return;
    if (open.includes(file)) {
      circles.push([...open.slice(open.indexOf(file)), file].join(" -> "));
      return;
    }
    open.push(file);
    for (const { target } of targets.get(file) ?? []) visit(target);
    open.pop();
    done.add(file);
  };
  for (const file of production) visit(file);
  expect(circles, "move the shared code to a file of its own").toEqual([]);
});

test("only the store imports its engines", () => {
  const wrong = sources.filter(
    (file) =>
      !file.startsWith("store/") &&
      /from "(node:sqlite|@duckdb\/node-api|pg"|@opensearch-project\/opensearch)/.test(
        readFileSync(join(root, file), "utf8"),
      ),
  );
  expect(wrong, "use a port of src/store/ports").toEqual([]);
});

test("importing a file has no side effects, except main.mjs and the code of threads", () => {
  const wrong = sources.filter((file) => {
    const text = readFileSync(join(root, file), "utf8");
    const acts = /^(await |void |process\.|[a-zA-Z.]+\(.*\);$)/m.test(text);
    return acts && file !== "main.mjs" && !/^serveThread\(/m.test(text);
  });
  expect(wrong, "put it in a function that app.ts or a command calls").toEqual([]);
});

/** Validates input, and runs only during an import of rules. */
const CHECKING_THREADS = ["sigma/import-thread.ts"];

/** The files and packages that loading a file loads. */
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

test("threads that validate nothing load no schemas, which would cost each a tenth of a second per start, and megabytes", () => {
  const threads = sources.filter((file) => /^serveThread\(/m.test(readFileSync(join(root, file), "utf8")));
  const loading = threads.filter((file) => loadedWith(file).has("zod"));
  expect(loading, "separate the code they need from its schema, as in model/condition.ts").toEqual(CHECKING_THREADS);
});
