import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestServer } from "../api-server.ts";
import { describeInBrowser, launchBrowser, openConsole, settled, WIDTHS, WITH_MOTION } from "./browser.ts";
import { openDemoServer } from "./demo-server.ts";

interface LayoutShift {
  readonly value: number;
  readonly sources: readonly { readonly node: unknown }[];
}

const SHIFT_MAX = 0.02;

describeInBrowser("screens that load", () => {
  let server: TestServer;
  let browser: Browser;
  let paths: readonly string[];
  beforeAll(async () => {
    [server, browser] = await Promise.all([openDemoServer({ settings: { rateLimits: false } }), launchBrowser()]);
    const { body } = await server.call("GET", "/v1/alerts?rule_name=site.intrusion_across_domains&limit=1");
    const alert = body.data[0].id as string;
    paths = [
      "/home",
      "/alerts",
      "/alerts?view=all&group=none",
      `/alerts?view=all&alert=${alert}`,
      "/axis?range=7d",
      `/axis?alert=${alert}`,
      "/events",
      "/flows",
      "/rules?rule=site.intrusion_across_domains",
      "/sources",
      "/entity/address/10.20.3.240",
      "/settings",
      "/settings?section=storage",
    ];
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** Holds the answers of the service back until it is told to let them go. */
  async function holdAnswers(page: Page) {
    let isHeld = false;
    let release: () => void = () => {};
    let released = Promise.resolve();
    await page.route(/\/v1\/(?!session|stream)/, async (route) => {
      if (isHeld) await released;
      // Nobody waits for it any longer.
      await route.continue().catch(() => {});
    });
    return {
      hold: () => {
        isHeld = true;
        released = new Promise((resolve) => {
          release = resolve;
        });
      },
      letGo: () => {
        isHeld = false;
        release();
      },
    };
  }

  /** How much has moved since the page was opened, and what. */
  const shifts = (page: Page) =>
    page.evaluate(
      () =>
        new Promise<{ sum: number; moved: string[] }>((resolve) => {
          const shift = { sum: 0, moved: [] as string[] };
          new PerformanceObserver((list) => {
            for (const entry of list.getEntries() as unknown as LayoutShift[]) {
              shift.sum += entry.value;
              for (const { node } of entry.sources)
                shift.moved.push(`${entry.value} ${(node as Element | null)?.outerHTML?.slice(0, 120) ?? ""}`);
            }
          }).observe({ type: "layout-shift", buffered: true });
          setTimeout(() => resolve(shift), 500);
        }),
    );

  test.each(Object.entries(WIDTHS))(
    "show skeletons of their final size while answers take long, and nothing shifts when they come (%s)",
    async (_, width) => {
      const { page, faults, close } = await openConsole(browser, server, "/settings", { width, context: WITH_MOTION });
      await settled(page);
      const answers = await holdAnswers(page);
      for (const path of paths) {
        answers.hold();
        await page.goto(server.address + path, { waitUntil: "commit" });
        const skeleton = page.locator("main [data-loading].animate-pulse");
        // Settings that are known without an answer have nothing to wait for.
        if (!/^\/settings$/.test(path)) await skeleton.first().waitFor();
        answers.letGo();
        await settled(page);
        const { sum, moved } = await shifts(page);
        expect(sum, `${path}: ${moved.join("\n")}`).toBeLessThan(SHIFT_MAX);
      }
      expect(faults).toEqual([]);
      await close();
    },
  );

  test("old rows stay, dimmed, while new ones take long, and what is left is no longer asked for", async () => {
    const { page, faults, close } = await openConsole(browser, server, "/events?range=7d");
    const answers = await holdAnswers(page);
    const table = page.getByRole("table", { name: "Events" });
    await table.getByRole("row").nth(5).waitFor();
    await settled(page);
    const words = await table.getByRole("row").nth(3).innerText();
    const asked = new Set<Request>();
    const aborted = new Set<Request>();
    const isSearch = (request: Request) => request.url().endsWith("/v1/events/search");
    page.on("request", (request) => isSearch(request) && asked.add(request));
    page.on("requestfailed", (request) => isSearch(request) && aborted.add(request));

    answers.hold();
    await page.getByRole("combobox", { name: "Filter events" }).fill("source=platform_access");
    await page.keyboard.press("Enter");
    await page.locator("[role=table][aria-busy=true]").waitFor();
    expect(await table.getByRole("row").nth(3).innerText()).toBe(words);
    expect(asked.size).toBeGreaterThan(0);

    // Somewhere else in the meantime: that screen waits for its own answers only.
    const left = [...asked];
    await page.keyboard.press("Escape");
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Sources" }).click();
    await page.getByRole("heading", { name: "Sources", level: 1 }).waitFor();
    await expect.poll(() => left.every((request) => aborted.has(request))).toBe(true);
    answers.letGo();
    await settled(page);
    expect(await page.getByRole("table", { name: "Events" }).count()).toBe(0);
    expect(faults).toEqual([]);
    await close();
  });
});
