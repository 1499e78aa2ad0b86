import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";

// The rules of axe on a page, or on a part of it.

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

interface AxeWindow {
  readonly axe?: { run(context: unknown, options: unknown): Promise<{ violations: Violation[] }> };
}

export interface AxeOptions {
  /** A selector. Default: the whole page. */
  readonly within?: string | undefined;
  /** What differs between themes. */
  readonly coloursOnly?: boolean;
}

/** What a tool can find of WCAG 2.2 AA, one text for each fault. */
export async function accessibilityFaults(page: Page, options: AxeOptions = {}): Promise<string[]> {
  // The builder leaves axe in the page, but loads it each time: a page needs it once.
  const isLoaded = await page.evaluate(() => (globalThis as AxeWindow).axe !== undefined);
  if (!isLoaded) await new AxeBuilder({ page }).setLegacyMode().withRules("document-title").analyze();
  const violations = await page.evaluate(
    async ({ within, coloursOnly, tags }) => {
      const runOnly = coloursOnly ? { type: "rule", values: ["color-contrast"] } : { type: "tag", values: tags };
      const found = await (globalThis as AxeWindow).axe!.run(within === undefined ? document : [[within]], {
        runOnly,
        resultTypes: ["violations"],
      });
      return found.violations.map(({ id, help, nodes }) => ({
        id,
        help,
        nodes: nodes.map(({ html, failureSummary = "" }) => ({ html, failureSummary })),
      }));
    },
    { within: options.within, coloursOnly: options.coloursOnly ?? false, tags: TAGS },
  );
  return violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}\n${nodes.map(({ html, failureSummary }) => `  ${html}\n  ${failureSummary}`).join("\n")}`,
  );
}
