import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { EventDraft, JsonObject, Severity } from "../../src/model/event.ts";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, expectAccessible, launchBrowser, openConsole, WIDTHS } from "./browser.ts";

// A day ago, so that nothing falls out of what the service keeps: an intruder in the evening, a busy hour in the morning.
const MINUTE_MS = 60_000;
const EVENING_MS = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 24 * 3_600_000;
const MORNING_MS = EVENING_MS - 12 * 60 * MINUTE_MS;
const TITLE = "An intruder may have connected a device (02:00:5e:66:06:66 on switch-2)";

const at = (ms: number) => new Date(ms).toISOString();
const between = (fromMs: number, toMs: number) => `from=${at(fromMs)}&to=${at(toMs)}`;

function draft(
  type: string,
  timestampMs: number,
  domain: string,
  raw: JsonObject,
  severity: Severity = "info",
): EventDraft {
  return { type, source: `platform_${domain}`, class: "security", severity, timestampMs, raw, enrichment: {} };
}

const INTRUDER = [
  draft("access_granted", EVENING_MS - MINUTE_MS, "access", { user: "viktor.horvat", door: "Loading dock" }),
  draft("door_held", EVENING_MS, "access", { door: "Loading dock", duration_s: 41 }, "medium"),
  draft("person", EVENING_MS + MINUTE_MS, "protect", { camera: "Dock camera", count: 2 }, "medium"),
  draft("call_started", EVENING_MS + 2 * MINUTE_MS, "talk", { from: "118", to: "124", call: "c1" }),
  draft("call_ended", EVENING_MS + 5 * MINUTE_MS, "talk", { from: "118", to: "124", call: "c1" }),
  draft(
    "client_connected",
    EVENING_MS + 8 * MINUTE_MS,
    "network",
    { src_mac: "02:00:5e:66:06:66", device: "switch-2", port: 17, known: false },
    "medium",
  ),
  draft("dns_query", EVENING_MS + 9 * MINUTE_MS, "network", {
    src_mac: "02:00:5e:66:06:66",
    query: "c2.example.org",
  }),
  draft("dns_query", EVENING_MS + 9 * MINUTE_MS, "network", { src_ip: "10.20.3.7", query: "news.example.org" }),
];

/** Ten minutes of 1,500 events, then half an hour of 700. */
const BUSY = Array.from({ length: 2200 }, (_, index) => {
  const seconds = index < 1500 ? index * 0.4 : 600 + (index - 1500) * 2.5;
  return draft("dns_query", MORNING_MS + seconds * 1000, "network", {
    src_ip: "10.20.3.7",
    query: `${index}.example.net`,
  });
});

describeInBrowser("the time axis", () => {
  let server: TestServer;
  let browser: Browser;
  let alert: string;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
    await server.intake.collect([...INTRUDER, ...BUSY]);
    const raised = async () =>
      (await server.call("GET", "/v1/alerts?rule_name=site.intrusion_across_domains")).body.data[0]?.id;
    alert = await vi.waitUntil(raised, { timeout: 100_000, interval: 200 });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const picture = (page: Page) => page.getByRole("img", { name: /on one time axis/ });
  const words = (page: Page) => page.getByRole("region", { name: "Events in words" });
  const drawnAs = (page: Page) => picture(page).getAttribute("data-marks");
  const range = (page: Page) => {
    const { searchParams } = new URL(page.url());
    return [searchParams.get("from"), searchParams.get("to")].map((time) => Date.parse(time ?? ""));
  };
  const length = (page: Page) => range(page)[1]! - range(page)[0]!;

  test("an alert is drawn as a thread through its lanes, and told in words beside it", async () => {
    const { page, faults, close } = await openConsole(browser, server, `/axis?alert=${alert}`);
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    // The address named no time: it is the alert's, with what was around it.
    await expect.poll(() => range(page)).toEqual([EVENING_MS - 12 * MINUTE_MS, EVENING_MS + 20 * MINUTE_MS]);
    for (const lane of ["Loading dock", "Dock camera", "Calls", "Devices joining", "Names asked for"]) {
      await page.getByRole("region", { name: "Lanes" }).getByText(lane, { exact: true }).first().waitFor();
    }
    const texts = await picture(page).locator("text").allTextContents();
    expect(texts).toEqual(
      expect.arrayContaining(["1", "2", "3", "held open 41 s", "2 people", "viktor.horvat", TITLE]),
    );
    // What the same device asked for is read, what another one asked for is not.
    await words(page).getByText("c2.example.org").waitFor();
    expect(await words(page).getByText("news.example.org").count()).toBe(0);
    await page.getByRole("button", { name: "Everything" }).click();
    await words(page).getByText("news.example.org").waitFor();
    expect(page.url()).toContain("show=everything");
    expect(faults).toEqual([]);
    await close();
  });

  test("the wheel zooms at the pointer, a drag pans, a drag with shift zooms to a stretch", async () => {
    const { page, close } = await openConsole(
      browser,
      server,
      `/axis?${between(EVENING_MS - 30 * MINUTE_MS, EVENING_MS + 30 * MINUTE_MS)}`,
    );
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    const box = (await page.locator(".cursor-crosshair").boundingBox())!;
    const x = (share: number) => box.x + box.width * share;
    const y = box.y + 200;
    await page.mouse.move(x(0.5), y);
    await page.mouse.wheel(0, -500);
    await expect.poll(() => length(page)).toBeLessThan(40 * MINUTE_MS);
    expect((range(page)[0]! + range(page)[1]!) / 2 - EVENING_MS).toBeCloseTo(0, -4);

    const before = range(page);
    await page.mouse.down();
    await page.mouse.move(x(0.4), y, { steps: 5 });
    await page.mouse.up();
    await expect.poll(() => range(page)[0]! - before[0]!).toBeGreaterThan(0.05 * (before[1]! - before[0]!));
    expect(length(page)).toBe(before[1]! - before[0]!);

    const panned = range(page);
    await page.keyboard.down("Shift");
    await page.mouse.move(x(0.25), y);
    await page.mouse.down();
    await page.mouse.move(x(0.75), y, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await expect.poll(() => length(page) / (panned[1]! - panned[0]!)).toBeCloseTo(0.5, 1);
    // None of this is a step to go back through.
    await page.goBack();
    expect(new URL(page.url()).pathname).not.toBe("/axis");
    await close();
  });

  test("keys move, zoom, fit, walk through the alerts and follow the clock", async () => {
    const { page, close } = await openConsole(
      browser,
      server,
      `/axis?${between(EVENING_MS - 30 * MINUTE_MS, EVENING_MS + 30 * MINUTE_MS)}`,
    );
    await words(page).waitFor();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => range(page)[0]).toBe(EVENING_MS - 15 * MINUTE_MS);
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => range(page)[0]).toBe(EVENING_MS - 30 * MINUTE_MS);
    await page.keyboard.press("-");
    await expect.poll(() => length(page)).toBe(96 * MINUTE_MS);
    await page.keyboard.press("+");
    await expect.poll(() => length(page)).toBe(60 * MINUTE_MS);

    await page.keyboard.press("p");
    await expect.poll(() => new URL(page.url()).searchParams.get("alert")).not.toBeNull();
    const first = new URL(page.url()).searchParams.get("alert");
    await page.keyboard.press("n");
    await expect.poll(() => new URL(page.url()).searchParams.get("alert")).not.toBe(first);
    await page.keyboard.press("p");
    await expect.poll(() => new URL(page.url()).searchParams.get("alert")).toBe(first);

    // Rows of the list by keys, and what is marked there is marked in the picture.
    await page.keyboard.press("j");
    await page.locator("li.bg-hover").waitFor();

    await page.keyboard.press("l");
    await expect.poll(() => new URL(page.url()).searchParams.get("range")).toMatch(/^\d+[mh]$/);
    expect(await page.getByRole("button", { name: "Follow live" }).getAttribute("aria-pressed")).toBe("true");
    await page.keyboard.press("l");
    await expect.poll(() => new URL(page.url()).searchParams.get("range")).toBeNull();
    await page.keyboard.press("0");
    await expect.poll(() => length(page)).toBe(32 * MINUTE_MS);
    await close();
  });

  test("the window of the overview can be dragged, an alert's bar chooses it, and a link to exactly this is copied", async () => {
    const start = `/axis?${between(EVENING_MS - 6 * 60 * MINUTE_MS, EVENING_MS + 6 * 60 * MINUTE_MS)}`;
    const context = { permissions: ["clipboard-read", "clipboard-write"] };
    const { page, close } = await openConsole(browser, server, start, { context });
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    const bar = (await picture(page).getByText(TITLE.slice(0, 20)).boundingBox())!;
    await page.mouse.click(bar.x + 10, bar.y + bar.height / 2);
    await expect.poll(() => new URL(page.url()).searchParams.get("alert")).toBe(alert);
    await page.getByRole("button", { name: `Remove the alert ${TITLE}` }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get("alert")).toBeNull();

    const overview = page.getByRole("img", { name: /in 7 days/ });
    const box = (await overview.boundingBox())!;
    const window = (await overview.locator("rect").last().boundingBox())!;
    const before = range(page);
    await page.mouse.move(window.x + window.width / 2, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(window.x + window.width / 2 - 100, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => range(page)[0]).toBeLessThan(before[0]! - 12 * 60 * MINUTE_MS);
    expect(length(page)).toBe(before[1]! - before[0]!);

    await page.getByRole("button", { name: "Copy a link to exactly this" }).click();
    await page.getByText("Copied a link to exactly this.").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(new URL(copied).searchParams.get("from")).toBe(at(range(page)[0]!));
    await close();
  });

  test("an alert that is gone is told so, and the rest of the screen goes on", async () => {
    const { page, close } = await openConsole(
      browser,
      server,
      `/axis?alert=alt_gone&${between(EVENING_MS - 30 * MINUTE_MS, EVENING_MS + 30 * MINUTE_MS)}`,
    );
    await page.getByRole("alert").waitFor();
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    await close();
  });

  test("what is pointed to in the picture is marked in the list, and the other way round", async () => {
    const { page, close } = await openConsole(browser, server, `/axis?alert=${alert}`);
    const row = words(page).locator("li", { hasText: "2 people at" });
    await row.waitFor();
    const mark = (await picture(page).getByText("2 people").boundingBox())!;
    await page.mouse.move(mark.x - 14, mark.y + mark.height / 2);
    await expect.poll(() => row.getAttribute("class")).toContain("bg-hover");
    await words(page).locator("li", { hasText: "viktor.horvat opened" }).hover();
    await page.locator(".ring-accent").waitFor();
    await close();
  });

  test("one place or person is followed through all lanes", async () => {
    const { page, close } = await openConsole(browser, server, `/axis?alert=${alert}`);
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    await page.keyboard.press("/");
    await page.getByRole("combobox").fill("viktor");
    await page.getByRole("option", { name: /viktor.horvat/ }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).searchParams.get("entity")).toBe("user:viktor.horvat");
    await page.getByText("1 of 1 event,", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Remove viktor.horvat" }).click();
    await page.getByText("of 8 events", { exact: false }).waitFor();
    await close();
  });

  test("events too many to read are counted by lane, and the list is of days", async () => {
    const { page, close } = await openConsole(browser, server, "/axis?range=7d");
    await page.getByText(/2,2\d\d events: zoom in to read/).waitFor();
    await expect.poll(() => drawnAs(page)).toBe("heat");
    await page.getByRole("region", { name: "Events in words" }).getByText(TITLE).first().waitFor();
    await words(page).getByRole("button", { name: TITLE }).first().click();
    await expect.poll(() => new URL(page.url()).searchParams.get("alert")).toBe(alert);
    await close();
  });

  test("a thousand marks are elements; with what lies beyond the edges they may be too many and are painted", async () => {
    const calmMs = MORNING_MS + 10 * MINUTE_MS;
    const calm = between(calmMs + 15 * MINUTE_MS, calmMs + 29 * MINUTE_MS);
    const { page, close } = await openConsole(browser, server, `/axis?${calm}`);
    await expect.poll(() => drawnAs(page)).toBe("svg");
    // Just below a thousand in view, and more than two thousand with the quarter beyond each edge, however times are rounded.
    await page.goto(`${server.address}/axis?${between(calmMs - 1.9 * MINUTE_MS, calmMs + 29 * MINUTE_MS)}`);
    await expect.poll(() => drawnAs(page)).toBe("canvas");
    const isPainted = await page.locator("canvas").evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value) => value !== 0);
    });
    expect(isPainted).toBe(true);
    await close();
  });

  test("a time without events says so, and how to see more", async () => {
    const { page, close } = await openConsole(
      browser,
      server,
      `/axis?${between(EVENING_MS + 120 * MINUTE_MS, EVENING_MS + 130 * MINUTE_MS)}`,
    );
    await page.getByText("Nothing happened here").waitFor();
    const before = length(page);
    await page.getByRole("complementary").getByRole("button", { name: "Zoom out" }).click();
    await expect.poll(() => length(page)).toBeGreaterThan(before);
    await close();
  });

  test("a key that may not read events is told which scope it lacks; one that may not read alerts sees events", async () => {
    const alertsOnly = await server.addKey({ scopes: ["alerts:read"] });
    const { page, close } = await openConsole(browser, server, "/axis", { key: alertsOnly.secret });
    await page.getByText("events:read").first().waitFor();
    await close();
    const eventsOnly = await server.addKey({ scopes: ["events:read"] });
    const other = await openConsole(
      browser,
      server,
      `/axis?${between(EVENING_MS - 30 * MINUTE_MS, EVENING_MS + 30 * MINUTE_MS)}`,
      { key: eventsOnly.secret },
    );
    await words(other.page).getByText("Loading dock was held open for 41 s").waitFor();
    expect(other.faults).toEqual([]);
    await other.close();
  });

  test("a service that fails is told in words, and asked again", async () => {
    const { page, close } = await openConsole(browser, server, "/settings");
    let isFailing = true;
    await page.route("**/v1/events/search", (route) =>
      isFailing
        ? route.fulfill({ status: 400, json: { error: { code: "validation_error", message: "query: took too long" } } })
        : route.continue(),
    );
    await page.keyboard.press("g");
    await page.keyboard.press("x");
    await page.getByText("Query: took too long.").waitFor();
    isFailing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText(/2,2\d\d events: zoom in to read/).waitFor();
    await close();
  });

  test("markup in events stays text", async () => {
    const atMs = EVENING_MS - 5 * 60 * MINUTE_MS;
    const nasty = '<img src=x onerror="alert(1)">';
    await server.intake.collect([
      draft("access_denied", atMs, "access", { user: nasty, door: nasty }, "high"),
      draft("constructor", atMs, "network", { message: nasty }, "high"),
    ]);
    const { page, faults, close } = await openConsole(
      browser,
      server,
      `/axis?${between(atMs - 10 * MINUTE_MS, atMs + 10 * MINUTE_MS)}`,
    );
    await words(page).getByText(nasty).first().waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(faults).toEqual([]);
    await close();
  });

  test("every state is accessible in both themes", async () => {
    const { page, close } = await openConsole(browser, server, `/axis?alert=${alert}`);
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("/");
    await page.getByRole("combobox").waitFor();
    await expectAccessible(page);
    await page.goto(`${server.address}/axis?range=7d`);
    await page.getByText(/2,2\d\d events: zoom in to read/).waitFor();
    await expectAccessible(page);
    await page.goto(`${server.address}/axis?${between(EVENING_MS + 120 * MINUTE_MS, EVENING_MS + 130 * MINUTE_MS)}`);
    await page.getByText("Nothing happened here").waitFor();
    await expectAccessible(page);
    await close();
  });

  test("on a telephone the list is read, and the picture scrolls within its own box", async () => {
    const { page, close } = await openConsole(browser, server, `/axis?alert=${alert}`, {
      width: WIDTHS.phone,
      height: 844,
    });
    await words(page).getByText("Loading dock was held open for 41 s").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(WIDTHS.phone);
    await expectAccessible(page);
    await close();
  });
});
