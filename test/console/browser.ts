import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { setTheme } from "./chromium.ts";
import { executablePath } from "./launch.ts";

export { launchBrowser } from "./launch.ts";
export { openConsole, openPage, setTheme, settled, WIDTHS, type ConsolePage, type Theme } from "./chromium.ts";

/** Tests that need a browser; where there is none, their names say so. */
export function describeInBrowser(name: string, tests: () => void): void {
  if (executablePath === undefined) {
    describe.skip(`${name} (skipped: there is no chromium; install it, or name it in CHROMIUM)`, tests);
  } else {
    // A browser on a busy machine has moments of its own: a test that fails is tried once more, with what the others left.
    describe(name, { retry: 1 }, tests);
  }
}

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What a tool can find of WCAG 2.2 AA, in both themes. They differ in colours alone. */
export async function expectAccessible(page: Page): Promise<void> {
  const faults: string[] = [];
  for (const theme of ["dark", "light"] as const) {
    await setTheme(page, theme);
    const axe = new AxeBuilder({ page });
    const { violations } = await (theme === "dark" ? axe.withTags(TAGS) : axe.withRules("color-contrast")).analyze();
    for (const { id, help, nodes } of violations) {
      const places = nodes.map(({ html, failureSummary }) => `  ${html}\n  ${failureSummary}`);
      faults.push(`${theme}: ${id}: ${help}\n${places.join("\n")}`);
    }
  }
  expect(faults.join("\n\n")).toBe("");
}
