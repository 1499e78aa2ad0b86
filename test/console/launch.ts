import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

// Chromium is Debian's, or the one that CHROMIUM names.

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const SHELL = "/usr/bin/chromium-headless-shell";

/** The whole browser, of which pictures are taken and measurements made. */
export const executablePath = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));

/** For tests: the same engine without windows, tabs and extensions, which cost CPU time, if it is there. */
export const testExecutablePath = process.env["CHROMIUM"] ?? (existsSync(SHELL) ? SHELL : executablePath);

const FLAGS = [
  // Chromium refuses to run as root otherwise, and so do containers.
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

export function launchBrowser(path = executablePath): Promise<Browser> {
  return chromium.launch({ executablePath: path!, args: FLAGS });
}
