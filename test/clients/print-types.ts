import { createHash } from "node:crypto";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startTocsin } from "../tocsin.ts";
import { runCommand } from "./command.ts";

// `npm run client-types` prints clients/typescript/schema.d.ts, the types of the API, which the console is written against. The
// generator does not install beside TypeScript 7, so it runs in a temporary folder with the versions of test/clients/typescript.

const FILE = fileURLToPath(new URL("../../clients/typescript/schema.d.ts", import.meta.url));

const work = await mkdtemp(join(tmpdir(), "tocsin-types-"));
try {
  const server = await startTocsin(join(work, "data"));
  const text = await fetch(`${server.address}/openapi.json`)
    .then((answer) => answer.text())
    .finally(() => server.stop());
  for (const file of ["package.json", "package-lock.json"]) {
    await copyFile(join(import.meta.dirname, "typescript", file), join(work, file));
  }
  await writeFile(join(work, "openapi.json"), text);
  const run = (command: string, args: readonly string[]) => runCommand({ command, args, cwd: work, variables: {} });
  await run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  await run("node_modules/.bin/openapi-typescript", [
    "openapi.json",
    "--default-non-nullable=false",
    "--output",
    "schema.d.ts",
  ]);
  const types = await readFile(join(work, "schema.d.ts"), "utf8");
  const hash = createHash("sha256").update(text).digest("hex");
  await writeFile(FILE, `// Printed by npm run client-types. SHA-256 of /openapi.json: ${hash}\n${types}`);
  process.stdout.write("Wrote clients/typescript/schema.d.ts.\n");
} finally {
  await rm(work, { recursive: true, force: true });
}
