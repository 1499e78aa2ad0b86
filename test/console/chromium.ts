import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { TestServer } from "../api-server.ts";

// Pages of a real browser on the real service.

export type Theme = "dark" | "light";
export const WIDTHS = { desktop: 1440, phone: 390 } as const;

export interface PageOptions {
  /** Default: a key with every scope. */
  readonly key?: string;
  readonly theme?: Theme;
  readonly width?: number;
  readonly height?: number;
  readonly context?: BrowserContextOptions;
}

export interface ConsolePage {
  readonly page: Page;
  /** Violations of the content security policy and errors that nobody handled. */
  readonly faults: string[];
  close(): Promise<void>;
}

export const WITH_MOTION: BrowserContextOptions = { reducedMotion: "no-preference" };

/** A page of a browser in which nobody is signed in. */
export async function openPage(browser: Browser, options: PageOptions = {}): Promise<ConsolePage> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? WIDTHS.desktop, height: options.height ?? 900 },
    colorScheme: options.theme ?? "dark",
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
    // The mark of a live connection moves as long as the page is open, and the CPU draws every frame of it.
    // Tests of main paths and of loading see it move.
    reducedMotion: "reduce",
    ...options.context,
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.stack ?? error.message));
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (/violat|Trusted ?Type/i.test(message.text())) faults.push(message.text());
  });
  page.on("request", (request) => {
    // Everything comes from the service itself.
    if (!/^(http:\/\/127\.0\.0\.1:|data:|blob:)/.test(request.url())) faults.push(`a request to ${request.url()}`);
  });
  await page.exposeFunction("tellViolation", (text: string) => faults.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      void (globalThis as unknown as { tellViolation: (text: string) => void }).tellViolation(
        `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`,
      );
    });
  });
  return { page, faults, close: () => context.close() };
}

/** Signs in as a person does, and opens the address. */
export async function openConsole(
  browser: Browser,
  server: TestServer,
  path: string,
  options: PageOptions = {},
): Promise<ConsolePage> {
  const opened = await openPage(browser, options);
  const { page } = opened;
  await page.goto(server.address + path);
  await page.getByLabel("API key").fill(options.key ?? server.key.secret);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Screens" }).waitFor();
  return opened;
}

/** Waits until nothing that is shown is loading or out of date. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector("main [data-loading], main [aria-busy=true]") === null);
}

/** Colours do not fade over: a check in between would measure neither theme. */
export async function setTheme(page: Page, theme: Theme): Promise<void> {
  await page.evaluate((value) => {
    localStorage.setItem("theme", value);
    document.documentElement.dataset["theme"] = value;
    const fades = document.getAnimations().filter(({ effect }) => effect?.getTiming().iterations !== Infinity);
    for (const fade of fades) fade.finish();
  }, theme);
}
