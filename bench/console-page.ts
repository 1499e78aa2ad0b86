import type { Browser, CDPSession, Page } from "playwright-core";
import { launchBrowser } from "../test/console/launch.ts";
import { withServer } from "./bench.ts";

// A real browser on the console of a real service, for benches. What runs in the page has no types: those of a browser are not
// those of a service.

export interface BenchPage {
  readonly page: Page;
  open(path: string): Promise<void>;
  /** Bytes that scripts hold after a collection of garbage, and nodes in the document. */
  memory(): Promise<PageMemory>;
}

export interface PageMemory {
  readonly heapBytes: number;
  readonly nodes: number;
}

/** Signs in on a service of the folder. */
export function withConsole<T>(folder: string, work: (page: BenchPage) => Promise<T>): Promise<T> {
  return withServer(folder, async ({ address, key }) => {
    const browser: Browser = await launchBrowser();
    try {
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
      const page = await context.newPage();
      const protocol = await context.newCDPSession(page);
      await page.goto(`${address}/settings`);
      await page.getByLabel("API key").fill(key);
      await page.keyboard.press("Enter");
      await page.getByRole("navigation", { name: "Screens" }).waitFor();
      const open = async (path: string) => void (await page.goto(address + path));
      return await work({ page, open, memory: () => memoryOf(page, protocol) });
    } finally {
      await browser.close();
    }
  });
}

/** Waits until nothing that is shown is loading or out of date. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(
    () => (globalThis as any).document.querySelector("main [data-loading], main [aria-busy=true]") === null,
  );
}

/** Waits until the page has drawn what it has. */
export async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise((resolve) => (globalThis as any).requestAnimationFrame(() => setTimeout(resolve))),
  );
}

async function memoryOf(page: Page, protocol: CDPSession): Promise<PageMemory> {
  await protocol.send("HeapProfiler.collectGarbage");
  const { usedSize } = await protocol.send("Runtime.getHeapUsage");
  return {
    heapBytes: usedSize,
    nodes: await page.evaluate(() => (globalThis as any).document.querySelectorAll("*").length),
  };
}
