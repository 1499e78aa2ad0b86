import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestServer } from "./api-server.ts";
import { makeFolder } from "./tocsin.ts";

// The real build, by the real Vite, of a small site in a project folder of its own.

const script = fileURLToPath(new URL("../bin/build-console.mjs", import.meta.url));
const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
/** Long enough that a compressed copy is worth it. */
const WORDS = "one page and one script ".repeat(40);

let folder: string;
let dist: string;
const source = (name: string) => join(folder, "console", name);
const writeMain = (code: string) => writeFileSync(source("app/main.ts"), code);
const good = (title: string) =>
  `const title: string = "${title}"; document.title = title; document.body.title = "${WORDS}";`;

beforeEach(() => {
  folder = makeFolder();
  dist = join(folder, "console/dist");
  mkdirSync(source("app"), { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "package-lock.json"), "{}");
  writeFileSync(source("vite.config.ts"), 'export default { build: { outDir: "dist", manifest: true } };');
  writeFileSync(
    source("index.html"),
    `<!doctype html><title>Site</title><script type="module" src="/app/main.ts"></script><p>${WORDS}</p>`,
  );
  writeMain(good("first"));
});
afterEach(() => {
  chmodSync(source(""), 0o755);
  rmSync(folder, { recursive: true, force: true });
});

async function build(options: { uid?: number; gid?: number } = {}) {
  const child = spawn(process.execPath, [script, folder], { stdio: ["ignore", "pipe", "pipe"], ...options });
  const [[code], stdout, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  expect(stdout, "standard output belongs to the command that follows").toBe("");
  return { code: code as number, stderr };
}

const assets = () => readdirSync(join(dist, "assets"));
const builtScript = () =>
  readFileSync(
    join(
      dist,
      "assets",
      assets().find((name) => name.endsWith(".js"))!,
    ),
    "utf8",
  );

test("a build has compressed copies, is served, and is repeated only when a source or a package has changed", async () => {
  expect(await build()).toEqual({ code: 0, stderr: expect.stringMatching(/^Built the console in [\d.]+ s\.\n$/) });
  const [name] = assets();
  const plain = readFileSync(join(dist, "assets", name!));
  expect(name).toMatch(/^index-[\w-]+\.js$/);
  expect(brotliDecompressSync(readFileSync(join(dist, "assets", `${name}.br`)))).toEqual(plain);
  expect(gunzipSync(readFileSync(join(dist, "assets", `${name}.gz`)))).toEqual(plain);
  expect(existsSync(join(dist, ".vite/manifest.json"))).toBe(true);

  const server = await openTestServer({ consoleFolder: dist });
  const page = await fetch(`${server.address}/alerts`, { headers: { accept: "text/html", "accept-encoding": "br" } });
  expect(page.headers.get("content-encoding")).toBe("br");
  expect(await page.text()).toContain(`/assets/${name}`);
  expect(await (await fetch(`${server.address}/assets/${name}`)).text()).toBe(plain.toString());
  await server.close();

  const { ino } = statSync(dist);
  expect(await build()).toEqual({ code: 0, stderr: "" });
  expect(statSync(dist).ino).toBe(ino);
  for (const change of [
    () => writeMain(good("second")),
    () => writeFileSync(join(folder, "package-lock.json"), '{ "changed": true }'),
    () => writeFileSync(source("app/unused.ts"), ""),
  ]) {
    change();
    expect((await build()).stderr).toMatch(/^Built/);
    expect((await build()).stderr).toBe("");
  }
  expect(builtScript()).toContain("second");
  expect(assets()).not.toContain(name);
  expect(readdirSync(source("")).sort()).toEqual(["app", "dist", "index.html", "vite.config.ts"]);
});

test("a failed build says why, names no folder of the machine, and leaves the earlier build", async () => {
  const failure = join(dist, ".failed");
  writeMain("this is no script(");
  const first = await build();
  expect(first.code).toBe(1);
  expect(first.stderr).toMatch(/^The console was not built; the service starts without it\. .*main\.ts.*\n$/);
  expect(readFileSync(failure, "utf8")).toMatch(/ended with code 1[^]*console\/app\/main\.ts/);
  expect(readFileSync(failure, "utf8")).not.toContain(folder);
  writeMain(good("repaired"));
  expect((await build()).code).toBe(0);
  expect(existsSync(failure)).toBe(false);
  const page = readFileSync(join(dist, "index.html"), "utf8");
  writeMain("broken again(");
  expect((await build()).stderr).toContain("an earlier build is served");
  expect(readFileSync(join(dist, "index.html"), "utf8")).toBe(page);
  expect(existsSync(failure)).toBe(true);
  writeMain(good("repaired"));
  expect(await build(), "the sources of the earlier build").toEqual({ code: 0, stderr: "" });
  expect(existsSync(failure)).toBe(false);
});

test("processes that start at the same time build once", async () => {
  const outcomes = await Promise.all([build(), build(), build()]);
  expect(outcomes.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(outcomes.filter(({ stderr }) => stderr.includes("Built the console"))).toHaveLength(1);
  expect(builtScript()).toContain("first");
});

test("a folder that cannot be written keeps its build, and without one it is reported in one line", async () => {
  const asOther = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const lock = () => [folder, source("")].forEach((path) => chmodSync(path, 0o555));
  const unlock = () => [folder, source("")].forEach((path) => chmodSync(path, 0o755));
  lock();
  const refused = await build(asOther);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^The console was not built; .*cannot be written \(E\w+\): run .* as its owner\n$/);
  unlock();
  expect((await build()).code).toBe(0);
  lock();
  expect(await build(asOther), "an existing build").toEqual({ code: 0, stderr: "" });
  unlock();
});

test.runIf(isRoot)("what root builds belongs to the owner of the folder, who can replace it", async () => {
  for (const path of [folder, source(""), source("app"), source("app/main.ts")]) chownSync(path, NOBODY, NOBODY);
  expect((await build()).code).toBe(0);
  expect(statSync(join(dist, "assets", assets()[0]!)).uid).toBe(NOBODY);
  writeMain(good("second"));
  expect(await build({ uid: NOBODY, gid: NOBODY })).toMatchObject({ code: 0 });
  expect(builtScript()).toContain("second");
});

test("a folder without a console is left alone", async () => {
  rmSync(source("index.html"));
  expect(await build()).toEqual({ code: 0, stderr: "" });
  expect(existsSync(dist)).toBe(false);
});
