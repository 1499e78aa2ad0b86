import type { Browser, Page } from "playwright-core";
import { describe, expect } from "vitest";
import { accessibilityFaults } from "./axe.ts";
import { setTheme, WIDTHS } from "./chromium.ts";
import { launchBrowser as launch, testExecutablePath } from "./launch.ts";

export {
  openConsole,
  openPage,
  setTheme,
  settled,
  WIDTHS,
  WITH_MOTION,
  type ConsolePage,
  type Theme,
} from "./chromium.ts";

export const launchBrowser = (): Promise<Browser> => launch(testExecutablePath);

/** Tests that need a browser; where there is none, their names say so. */
export function describeInBrowser(name: string, tests: () => void): void {
  if (testExecutablePath === undefined) {
    describe.skip(`${name} (skipped: there is no chromium; install it, or name it in CHROMIUM)`, tests);
  } else {
    // A browser on a busy machine has moments of its own: a test that fails is tried once more, with what the others left.
    describe(name, { retry: 1 }, tests);
  }
}

/** What a tool can find of WCAG 2.2 AA, in both themes. They differ in colours alone. */
export async function expectAccessible(page: Page): Promise<void> {
  const faults: string[] = [];
  for (const theme of ["dark", "light"] as const) {
    await setTheme(page, theme);
    const found = await accessibilityFaults(page, { coloursOnly: theme === "light" });
    faults.push(...found.map((fault) => `${theme}: ${fault}`));
  }
  expect(faults.join("\n\n")).toBe("");
}

const HEIGHTS = { desktop: 900, phone: 844 } as const;

/**
 * Faults in both widths and both themes. What covers the page is looked at alone: the page under it is a state of its own. So
 * is the screen, where what stands around it was looked at before.
 */
export async function everyLookFaults(page: Page, { isShellKnown = false } = {}): Promise<string[]> {
  const faults: string[] = [];
  for (const [device, width] of Object.entries(WIDTHS)) {
    await page.setViewportSize({ width, height: HEIGHTS[device as keyof typeof WIDTHS] });
    // The layout follows in the next frames.
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    const isCovered = (await page.locator("[data-covers-page]").count()) > 0;
    const within = isCovered ? "[data-covers-page]" : isShellKnown ? "#screen" : undefined;
    for (const theme of ["dark", "light"] as const) {
      await setTheme(page, theme);
      const found = await accessibilityFaults(page, { within, coloursOnly: theme === "light" });
      faults.push(...found.map((fault) => `${device}, ${theme}: ${fault}`));
    }
    const tooWide = await page.evaluate(() => {
      const reach = [document.documentElement, ...document.querySelectorAll("[role=dialog]")];
      return reach.some(
        (element) => element.scrollWidth > innerWidth || element.getBoundingClientRect().right > innerWidth,
      );
    });
    // A menu stays where its button was before the window changed.
    if (tooWide && (await page.getByRole("menu").count()) === 0) faults.push(`${device}: wider than the window`);
  }
  await page.setViewportSize({ width: WIDTHS.desktop, height: HEIGHTS.desktop });
  return faults;
}
