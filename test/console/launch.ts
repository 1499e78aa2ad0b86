import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

// Chromium is Debian's, or the one that CHROMIUM names.

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const executablePath = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));

const FLAGS = [
  // Chromium refuses to run as root otherwise, and so do containers.
  "--no-sandbox",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
];

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: executablePath!, args: FLAGS });
}
