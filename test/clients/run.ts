import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeKey } from "../server-process.ts";
import { startTocsin } from "../tocsin.ts";
import { runCommand, Skipped, type Command } from "./command.ts";
import { LANGUAGES, type Language } from "./languages.ts";

// `npm run test:clients` generates a client in each language from the document of a running service, compiles and uses it.
// Everything installed or generated goes into a temporary folder.

/** Steps of every client, as its program reports them. */
const USES = [
  "create a rule",
  "list rules",
  "read an error",
  "submit events",
  "list events",
  "search",
  "read the stream",
  "list alerts",
  "simulate the rule",
  "resolve the alert",
] as const;
const STEPS = ["install", "generate", "compile", ...USES];

const counts = { passed: 0, failed: 0, skipped: 0 };

function report(language: Language, step: string, detail: string): void {
  counts.passed++;
  process.stdout.write(`ok    ${language.name}, ${step}${detail && `: ${detail}`}\n`);
}

async function tryLanguage(language: Language, work: string, variables: Record<string, string>): Promise<void> {
  let done = 0;
  const folder = join(work, language.folder);
  const run = (command: Command) => runCommand({ ...command, cwd: folder, variables });
  try {
    await mkdir(folder);
    for (const file of language.files) {
      await copyFile(join(import.meta.dirname, language.folder, file), join(folder, file));
    }
    await copyFile(join(work, "openapi.json"), join(folder, "openapi.json"));
    for (const step of ["install", "generate", "compile"] as const) {
      report(language, step, await language[step]({ folder, run }));
      done++;
    }
    await language.use({ folder, run }, (line) => {
      const use = USES[done - 3];
      if (use === undefined || !line.startsWith(`${use}: `)) throw new Error(`expected "${use}", but it said: ${line}`);
      report(language, use, line.slice(use.length + 2));
      done++;
    });
    if (done < STEPS.length) throw new Error("the program ended too early");
  } catch (error) {
    const isSkipped = error instanceof Skipped;
    if (!isSkipped) counts.failed++;
    counts.skipped += STEPS.length - done - (isSkipped ? 0 : 1);
    const what = isSkipped
      ? `skip  ${language.name}, from "${STEPS[done]}" on`
      : `FAIL  ${language.name}, ${STEPS[done]}`;
    process.stdout.write(`${what}: ${(error as Error).message}\n`);
  }
}

async function fetchDocument(address: string): Promise<string> {
  const answer = await fetch(`${address}/openapi.json`);
  if (!answer.ok) throw new Error(`GET /openapi.json answered ${answer.status}`);
  return answer.text();
}

const work = await mkdtemp(join(tmpdir(), "tocsin-clients-"));
const data = join(work, "data");
const key = await makeKey(data);
const server = await startTocsin(data);
try {
  await writeFile(join(work, "openapi.json"), await fetchDocument(server.address));
  const variables = { TOCSIN_ADDRESS: server.address, TOCSIN_KEY: key };
  await Promise.all(LANGUAGES.map((language) => tryLanguage(language, work, variables)));
} finally {
  await server.stop();
  await rm(work, { recursive: true, force: true });
}
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`);
process.exitCode = counts.failed > 0 ? 1 : 0;
