import { cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTestServerIn, type TestOptions, type TestServer } from "../api-server.ts";
import { makeFolder, tocsin } from "../tocsin.ts";

// A service with a week of a site: events, alerts that people have handled, and flows.

const EVENTS = 4000;
const FLOWS = 3000;

/** Made once for the test files of a process. */
let made: Promise<string> | undefined;

async function makeDemo(): Promise<string> {
  const folder = makeFolder();
  const { code, stderr } = await tocsin([
    "demo",
    "--data-dir",
    folder,
    "--events",
    String(EVENTS),
    "--flows",
    String(FLOWS),
    "--json",
  ]);
  if (code !== 0) throw new Error(`tocsin demo failed: ${stderr}`);
  return folder;
}

/** A server on a copy of the demo, which a test may change. */
export async function openDemoServer(options: TestOptions = {}): Promise<TestServer> {
  made ??= makeDemo();
  const folder = await mkdtemp(join(tmpdir(), "tocsin-console-demo-"));
  await cp(await made, folder, { recursive: true });
  return openTestServerIn(folder, options);
}
