import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { openTestServerIn, type TestServer } from "../api-server.ts";
import { makeFolder, tocsinProcess } from "../tocsin.ts";
import { openConsole, settled, WITH_MOTION, type Theme } from "./chromium.ts";
import { executablePath, launchBrowser } from "./launch.ts";

// `npm run screenshots` draws every screen in both themes and three widths into screenshots/, from a demo with a fixed clock and
// zone. With --docs it draws those that the pages show into docs/pictures/. They are for looking at, not for comparing by pixel.

const END = "2026-11-17T08:30:00.000Z";
const SIZES = { "1440": [1440, 900], "1920": [1920, 1080], "390": [390, 844] } as const;
const root = fileURLToPath(new URL("../..", import.meta.url));

interface Shot {
  readonly name: string;
  readonly path: string;
  /** Drawn for the pages in this theme. */
  readonly docs?: Theme;
  readonly prepare?: (page: Page) => Promise<void>;
}

const alertOf = async (server: TestServer, rule: string): Promise<any> => {
  const { body } = await server.call("GET", `/v1/alerts?rule_name=${rule}&limit=1`);
  return body.data[0];
};

async function shots(server: TestServer): Promise<Shot[]> {
  const intruder = await alertOf(server, "site.intrusion_across_domains");
  const rule = intruder.rule_name as string;
  const from = new Date(Date.parse(intruder.first_event_at) - 12 * 60_000).toISOString();
  const to = new Date(Date.parse(intruder.last_event_at) + 12 * 60_000).toISOString();
  return [
    { name: "home", path: "/home", docs: "light" },
    { name: "alerts", path: "/alerts", docs: "dark" },
    { name: "alert", path: `/alerts?view=all&alert=${intruder.id}`, docs: "light" },
    { name: "axis", path: `/axis?alert=${intruder.id}&from=${from}&to=${to}`, docs: "light" },
    { name: "axis-week", path: "/axis?range=7d", docs: "dark" },
    { name: "events", path: "/events", docs: "dark" },
    { name: "flows", path: "/flows", docs: "dark" },
    { name: "rules", path: `/rules?rule=${rule}`, docs: "light" },
    { name: "sources", path: "/sources?connect=rsyslog" },
    { name: "entity", path: "/entity/address/10.20.3.240", docs: "dark" },
    { name: "settings", path: "/settings?section=storage" },
    { name: "phone", path: "/alerts", docs: "light" },
    {
      name: "keys",
      path: "/alerts",
      prepare: async (page) => {
        await page.keyboard.press("?");
        await page.getByRole("dialog").waitFor();
      },
    },
  ];
}

async function draw(): Promise<void> {
  const forDocs = process.argv.includes("--docs");
  const folder = join(root, forDocs ? "docs/pictures" : "screenshots");
  const data = makeFolder();
  const made = await tocsinProcess(["demo", "--data-dir", data, "--end", END, "--seed", "1", "--json"]);
  if (made.code !== 0) throw new Error(made.stderr);
  await mkdir(folder, { recursive: true });
  const now = Date.parse(END);
  const server = await openTestServerIn(data, { now: () => now });
  const { secret: key } = await server.addKey({ name: "ada.morin@example.com" });
  const browser = await launchBrowser();
  try {
    const list = await shots(server);
    for (const theme of ["dark", "light"] as const) {
      for (const [size, [width, height]] of Object.entries(SIZES)) {
        if (forDocs && size === "1920") continue;
        const { page, close } = await openConsole(browser, server, "/settings", {
          key,
          theme,
          width,
          height,
          context: WITH_MOTION,
        });
        await page.clock.setFixedTime(now);
        for (const shot of list) {
          const isPhone = size === "390";
          if (forDocs && (shot.docs !== theme || isPhone !== (shot.name === "phone"))) continue;
          await page.goto(server.address + shot.path);
          await settled(page);
          await shot.prepare?.(page);
          await page.waitForTimeout(1000);
          // Parts that came late ask for what they show.
          await settled(page);
          await page.waitForTimeout(200);
          const file = forDocs ? `${shot.name}.png` : `${shot.name}-${size}-${theme}.png`;
          await page.screenshot({ path: join(folder, file) });
          process.stdout.write(`${file}\n`);
        }
        await close();
      }
    }
  } finally {
    await browser.close();
    await server.close();
    await rm(data, { recursive: true, force: true });
  }
}

if (executablePath === undefined) {
  process.stderr.write("There is no chromium: install it, or name it in CHROMIUM.\n");
  process.exitCode = 1;
} else {
  await draw();
}
