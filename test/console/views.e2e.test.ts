import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, expectAccessible, launchBrowser, openConsole, WIDTHS } from "./browser.ts";

interface View {
  id: string;
  name: string;
  search: string;
  columns: string[] | null;
  density: string | null;
  grouping: string | null;
  shared: boolean;
}

describeInBrowser("saved views", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });
  beforeEach(async () => {
    for (const { id } of await viewsOf()) await server.call("DELETE", `/v1/views/${id}`);
  });

  const viewsOf = async (screen?: string) =>
    (await server.call("GET", `/v1/views?per_page=100${screen === undefined ? "" : `&screen=${screen}`}`)).body
      .data as View[];
  const namesOf = async (screen: string) => (await viewsOf(screen)).map(({ name }) => name);
  const addView = async (screen: string, name: string, more: object = {}, key?: string) => {
    const body = { screen, name, search: "", ...more };
    const { status, text, body: answer } = await server.call("POST", "/v1/views", { body, ...(key && { key }) });
    expect(status, text).toBe(201);
    return answer.data as View;
  };
  const tabs = (page: Page) => page.getByRole("navigation", { name: "Views" });
  const tab = (page: Page, name: string) => tabs(page).getByRole("button", { name, exact: true });
  const open = (path: string, options: Parameters<typeof openConsole>[3] = {}) =>
    openConsole(browser, server, path, options);
  const choose = async (page: Page, view: string, item: string) => {
    await tabs(page)
      .getByRole("button", { name: `Change the view ${view}` })
      .click();
    await page.getByRole("menuitem", { name: item }).click();
  };
  const save = async (page: Page, name: string) => {
    await page.getByRole("button", { name: "Save these filters as a view" }).click();
    await page.getByRole("textbox", { name: "Name", exact: true }).fill(name);
    await page.keyboard.press("Enter");
    await page.getByText(`Saved “${name}”`).waitFor();
  };
  const address = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);

  test("a view of the alerts keeps filters, order, grouping and the height of rows", async () => {
    const { page, faults, close } = await open("/alerts?view=all&tag=vip&group=none&sort=event_count");
    await tab(page, "All open changed").or(tabs(page).getByText("All open")).first().waitFor();
    await page.getByRole("button", { name: "Display and export" }).click();
    await page.getByRole("menuitem", { name: "Compact rows" }).click();
    await save(page, "Guests");
    const [view] = await viewsOf("alerts");
    expect(view).toMatchObject({ name: "Guests", density: "compact", grouping: "none" });
    expect(Object.fromEntries(new URLSearchParams(view!.search))).toMatchObject({ tag: "vip", sort: "event_count" });
    // The view has its own height: another choice changes the view that is shown, not what the reader prefers.
    await page.getByRole("button", { name: "Display and export" }).click();
    await page.getByRole("menuitem", { name: /Compact rows/ }).click();
    await expect.poll(() => address(page)["density"]).toBe("comfortable");
    await choose(page, "Guests", "Save changes to this view");
    await page.getByText("Saved the changes to “Guests”").waitFor();
    expect((await viewsOf("alerts"))[0]!.density).toBe("comfortable");
    await page.keyboard.press("u");
    await page.getByText("“Guests” is as it was before").waitFor();
    expect((await viewsOf("alerts"))[0]!.density).toBe("compact");
    expect(faults).toEqual([]);
    await close();
  });

  test("the built-in five have no menu, so nothing of them can be deleted", async () => {
    const { page, close } = await open("/alerts");
    for (const name of ["To do", "Mine", "In hand", "All open", "Resolved"]) {
      await tabs(page).getByRole("button", { name }).first().click();
      expect(
        await tabs(page)
          .getByRole("button", { name: /^Change the view/ })
          .count(),
        name,
      ).toBe(0);
    }
    await close();
  });

  test.each([
    { screen: "events", filters: { source: "custom", columns: "type,raw.door", sort: "-raw.door" }, without: "source" },
    { screen: "flows", filters: { host: "10.0.0.7", split: "protocol" }, without: "host" },
    { screen: "axis", filters: { entity: "door:Loading dock", show: "everything" }, without: "entity" },
  ])(
    "a view of $screen is saved, linked to, changed, overwritten and deleted",
    async ({ screen, filters, without }) => {
      const { page, faults, close } = await open(`/${screen}?${new URLSearchParams(filters as never).toString()}`);
      await save(page, "Dock");
      const [view] = await viewsOf(screen);
      expect(view).toMatchObject({ name: "Dock", columns: screen === "events" ? ["type", "raw.door"] : null });
      expect(address(page)).toMatchObject({ ...filters, view: view!.id });
      // A link that names the view alone shows all of it.
      await page.goto(`${server.address}/${screen}?view=${view!.id}`);
      await expect.poll(() => address(page)).toMatchObject({ ...filters, view: view!.id });
      // The whole screen, and back.
      await tabs(page).getByRole("button").first().click();
      await expect.poll(() => address(page)["view"]).toBeUndefined();
      await tab(page, "Dock").click();
      await expect.poll(() => address(page)).toMatchObject({ ...filters, view: view!.id });
      await page
        .getByRole("button", { name: /^Remove / })
        .first()
        .click();
      await tab(page, "Dock * changed").waitFor();
      await choose(page, "Dock", "Save changes to this view");
      await page.getByText("Saved the changes to “Dock”").waitFor();
      expect(new URLSearchParams((await viewsOf(screen))[0]!.search).has(without)).toBe(false);
      await choose(page, "Dock", "Delete");
      await page.getByText("Deleted “Dock”").waitFor();
      expect(await viewsOf(screen)).toEqual([]);
      await page.keyboard.press("u");
      await page.getByText("“Dock” is back").waitFor();
      expect(await namesOf(screen)).toEqual(["Dock"]);
      expect(faults).toEqual([]);
      await close();
    },
  );

  test("a view is moved by drag, and by keyboard", async () => {
    for (const name of ["One", "Two", "Three"]) await addView("events", name, { search: `search=${name}` });
    const { page, close } = await open("/events");
    await tab(page, "Three").dragTo(tab(page, "One"));
    await expect.poll(() => namesOf("events")).toEqual(["Three", "One", "Two"]);
    await expect
      .poll(() => tabs(page).getByRole("button").allInnerTexts())
      .toEqual(["All events", "Three", "One", "Two", ""]);
    await tab(page, "One").focus();
    await page.keyboard.press("Enter");
    const menu = tabs(page).getByRole("button", { name: "Change the view One" });
    await menu.waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: "Move right" }).waitFor();
    await page.keyboard.type("Move r");
    await page.keyboard.press("Enter");
    await expect.poll(() => namesOf("events")).toEqual(["Three", "Two", "One"]);
    await page.getByText("“One” is number 3 of your views").waitFor();
    await close();
  });

  test("a shared view of somebody else can be chosen but not changed; whoever manages keys is asked first", async () => {
    const ann = await server.addKey({ name: "ann", scopes: ["events:read", "alerts:write"] });
    const shared = await addView("events", "From Ann", { search: "search=door", shared: true }, ann.secret);
    const reader = await server.addKey({ name: "reader", scopes: ["events:read"] });
    const reading = await open(`/events?view=${shared.id}`, { key: reader.secret });
    await tabs(reading.page).getByRole("button", { name: "Change the view From Ann" }).click();
    await reading.page.getByText("Shared by ann").waitFor();
    const deletion = reading.page.getByRole("menuitem", { name: /Delete/ });
    expect(await deletion.getAttribute("aria-disabled")).toBe("true");
    expect(await deletion.innerText()).toContain("It belongs to ann");
    expect(await reading.page.getByRole("menuitem", { name: "Move left" }).count()).toBe(0);
    await reading.close();
    const { page, close } = await open(`/events?view=${shared.id}`);
    await choose(page, "From Ann", "Delete…");
    await page.getByText("It cannot be brought back").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete for everybody" }).click();
    await page.getByText("Deleted “From Ann”").waitFor();
    expect(await viewsOf("events")).toEqual([]);
    await close();
  });

  test("a key with a hundred views is told so, and nothing typed is lost", async () => {
    const full = await server.addKey({ name: "full", scopes: ["events:read"] });
    for (let i = 0; i < 100; i++) await addView("flows", `View ${i}`, {}, full.secret);
    const { page, close } = await open("/events?search=door", { key: full.secret });
    await page.getByRole("button", { name: "Save these filters as a view" }).click();
    await page.getByRole("textbox", { name: "Name", exact: true }).fill("One more");
    await page.keyboard.press("Enter");
    await page.getByText("The key has 100 views, the maximum; delete one first.").waitFor();
    expect(await page.getByRole("textbox", { name: "Name", exact: true }).inputValue()).toBe("One more");
    await close();
  });

  test("a view that is gone is told, and the rest of the address stays", async () => {
    const { page, close } = await open("/flows?view=view_none&host=10.0.0.7");
    await page.getByText("This view is no longer there").waitFor();
    await expect.poll(() => address(page)).toEqual({ host: "10.0.0.7" });
    await close();
  });

  test.each([WIDTHS.desktop, WIDTHS.phone])(
    "views are accessible and do not widen the page at %i px",
    async (width) => {
      for (const screen of ["events", "flows", "axis"]) {
        for (let i = 1; i <= 8; i++) await addView(screen, `A view with a rather long name ${i}`, { search: "x=1" });
      }
      for (const screen of ["events", "flows", "axis"]) {
        const { page, close } = await open(`/${screen}`, { width });
        await tab(page, "A view with a rather long name 8").waitFor();
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        await expectAccessible(page);
        await close();
      }
    },
  );
});
