import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import { describeInBrowser, everyLookFaults, expectAccessible, launchBrowser, openConsole, WIDTHS } from "./browser.ts";

describeInBrowser("the alerts screen", () => {
  let server: TestServer;
  let browser: Browser;
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** A rule of its own, so that tests do not see each other's alerts. Each value of raw.door is an alert. */
  async function addRule(name: string, severity = "high"): Promise<string> {
    const rule = {
      name,
      title: "{{raw.door}} was forced",
      description: "A door was opened without being unlocked.\n\nSend somebody.",
      severity,
      source: "custom",
      conditions: [{ field: "type", equals: name }],
      dedup: { by: "raw.door" },
      actions: [{ alert: { channels: [] } }],
    };
    const { status, text, body } = await server.call("POST", "/v1/rules", { body: rule });
    expect(status, text).toBe(201);
    return body.data.id as string;
  }

  const alertsOf = async (rule: string) => {
    const { body } = await server.call("GET", `/v1/alerts?rule_name=${rule}&limit=100`);
    return body.data as { id: string; status: string; title: string; tags: string[]; assignee: string | null }[];
  };

  const countOf = async (rule: string) =>
    (await server.call("GET", `/v1/alerts?rule_name=${rule}&limit=1`)).body.pagination.total as number;

  async function raise(rule: string, doors: readonly string[]): Promise<void> {
    const before = await countOf(rule);
    const timestamp = new Date().toISOString();
    const events = doors.map((door) => ({ type: rule, source: "custom", severity: "low", timestamp, data: { door } }));
    const { body, text } = await server.call("POST", "/v1/events/batch", { body: events });
    expect(body.data.accepted, text).toBe(doors.length);
    await expect.poll(() => countOf(rule)).toBe(before + doors.length);
  }

  const doors = (count: number, word = "Door") => Array.from({ length: count }, (_, i) => `${word} ${i + 1}`);
  const open = (path: string, options: Parameters<typeof openConsole>[3] = {}) =>
    openConsole(browser, server, path, options);
  const row = (page: Page, title: string) => page.getByRole("row").filter({ hasText: title });
  const panel = (page: Page) => page.getByRole("complementary", { name: "The chosen alert" });
  const cursorTop = async (page: Page) => (await page.locator("[role=row][aria-selected=true]").boundingBox())?.y;

  test("the main path by keyboard: move, open a group, acknowledge, undo, resolve", async () => {
    await addRule("test.keyboard");
    await raise("test.keyboard", doors(3));
    const { page, faults, close } = await open("/alerts?view=all&rule_name=test.keyboard");
    await page.locator("[role=row][aria-selected=true]").waitFor();
    // Three alerts of one rule are one row until it is opened.
    expect(await page.getByRole("row").count()).toBe(1);
    await page.keyboard.press("o");
    await row(page, "Door 3 was forced").last().waitFor();
    await page.keyboard.press("j");
    await panel(page).getByRole("heading", { level: 2 }).first().waitFor();
    await page.keyboard.press("a");
    // The test's key is not named after a person: it is asked once.
    await page.getByLabel("Your e-mail address").fill("eva@example.com");
    await page.keyboard.press("Enter");
    await page.getByText("Acknowledged the alert for eva@example.com").waitFor();
    await expect
      .poll(async () => (await alertsOf("test.keyboard")).filter(({ status }) => status === "acknowledged").length)
      .toBe(1);
    await page.keyboard.press("u");
    await page.getByText("Taken back").waitFor();
    await expect
      .poll(async () =>
        (await alertsOf("test.keyboard")).every(({ status, assignee }) => status === "open" && assignee === null),
      )
      .toBe(true);
    await page.keyboard.press("r");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("3");
    await page.keyboard.press("Enter");
    await page.getByText("Resolved the alert as harmless").waitFor();
    // It no longer matches, and stays, struck, until the view is left.
    await page.getByText("(no longer in this view: resolved)").waitFor({ state: "attached" });
    expect(faults).toEqual([]);
    await close();
  });

  test("the main path by mouse: choose, comment, resolve as a false positive with an exception", async () => {
    const ruleId = await addRule("test.mouse");
    await raise("test.mouse", ["Dock", "Gate"]);
    const { page, faults, close } = await open("/alerts?view=all&rule_name=test.mouse&group=none");
    await row(page, "Dock was forced").click();
    await panel(page).getByRole("heading", { name: "Dock was forced" }).waitFor();
    await panel(page).getByText("type = test.mouse").waitFor();
    await page
      .getByRole("textbox", { name: "Comment" })
      .fill("See **the camera**, [bad](javascript:alert(1)) ![x](http://192.0.2.1/x.png)");
    await page.getByRole("button", { name: "Send" }).click();
    await panel(page).locator("strong", { hasText: "the camera" }).waitFor();
    expect(await panel(page).locator("img").count()).toBe(0);
    expect(await panel(page).getByRole("link", { name: "bad" }).count()).toBe(0);
    await panel(page).getByRole("button", { name: "Make an exception" }).click();
    const sheet = page.getByRole("dialog");
    expect(await sheet.getByRole("checkbox", { name: "door = Dock" }).isChecked()).toBe(true);
    await sheet.getByText("It would have silenced 1 of 2 alerts last week.").waitFor();
    await sheet.getByRole("button", { name: "Resolve and make the exception" }).click();
    await page.getByText("Resolved the alert as a false positive, with an exception").waitFor();
    const { body } = await server.call("GET", `/v1/rules/${ruleId}`);
    expect(body.data.exceptions).toMatchObject([{ conditions: [{ field: "raw.door", equals: "Dock" }] }]);
    const inDays = (Date.parse(body.data.exceptions[0].expires_at) - Date.now()) / 86_400_000;
    expect(Math.round(inDays)).toBe(30);
    // Undoing takes the exception away too.
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back").waitFor();
    expect((await server.call("GET", `/v1/rules/${ruleId}`)).body.data.exceptions).toEqual([]);
    expect(faults).toEqual([]);
    await close();
  });

  test.each(["rule", "none"])(
    "fifty alerts arrive while a row is read, grouped by %s: no pixel moves",
    async (group) => {
      // A name of its own for each try: the rule of the first would still be there.
      const name = `test.live_${group}_${Date.now().toString(36)}`;
      await addRule(name);
      await addRule(`${name}_other`, "critical");
      await raise(name, doors(30, "Before"));
      await raise(`${name}_other`, ["Other"]);
      const { page, faults, close } = await open(`/alerts?view=all&rule_name=${name},${name}_other&group=${group}`);
      await row(page, "Other was forced").waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("o");
      for (let n = 0; n < 4; n++) await page.keyboard.press("j");
      const before = await cursorTop(page);
      const cursorRow = page.locator("[role=row][aria-selected=true]").filter({ hasText: "was forced" });
      await cursorRow.waitFor();
      const words = await cursorRow.innerText();
      await raise(name, doors(50, "During"));
      await page.getByRole("button", { name: "50 new alerts" }).waitFor();
      expect(await page.title()).toBe("(50) Alerts · Tocsin");
      expect(await cursorTop(page)).toBe(before);
      await page.keyboard.press(".");
      await page.getByRole("button", { name: "50 new alerts" }).waitFor({ state: "detached" });
      await expect.poll(() => cursorTop(page)).toBe(before);
      // Its age may have become a minute.
      const title = (text: string) => text.split("\n")[0];
      expect(title(await page.locator("[role=row][aria-selected=true]").innerText())).toBe(title(words));
      await page.getByRole("grid").evaluate((grid) => grid.scrollTo(0, 0));
      await row(page, "During 50 was forced").first().waitFor();
      expect(faults).toEqual([]);
      await close();
    },
  );

  test.each(["rule", "none"])(
    "the cursor's row stays at its pixel in a list shorter than the screen too, grouped by %s",
    async (group) => {
      const name = `test.short_${group}_${Date.now().toString(36)}`;
      await addRule(name);
      await raise(name, doors(3, "Before"));
      const { page, close } = await open(`/alerts?view=all&rule_name=${name}&group=${group}`);
      await page.locator("[role=row][aria-selected=true]").waitFor();
      if (group === "rule") await page.keyboard.press("o");
      await row(page, "Before 3 was forced").waitFor();
      await page.keyboard.press("End");
      const before = await cursorTop(page);
      await raise(name, doors(2, "During"));
      await page.getByRole("button", { name: "2 new alerts" }).waitFor();
      await page.keyboard.press(".");
      await page.getByRole("button", { name: "2 new alerts" }).waitFor({ state: "detached" });
      const grid = page.getByRole("grid");
      await expect.poll(() => grid.evaluate((element) => element.scrollTop)).toBe(2 * 56);
      expect(await cursorTop(page)).toBe(before);
      // The room below the rows is gone once it is out of sight.
      await grid.evaluate((element) => element.scrollTo(0, 0));
      await row(page, "During 2 was forced").waitFor();
      await expect.poll(() => grid.evaluate((element) => element.scrollHeight - element.clientHeight)).toBe(0);
      await close();
    },
  );

  test("two browsers resolve one alert: one wins, the other is told, and loses nothing that was typed", async () => {
    await addRule("test.conflict");
    await raise("test.conflict", ["Dock"]);
    const path = "/alerts?view=all&rule_name=test.conflict&group=none";
    const noah = await server.addKey({ name: "noah" });
    const [first, second] = await Promise.all([open(path, { key: noah.secret }), open(path)]);
    const sheets = [first, second].map(({ page }) => page.getByRole("dialog", { name: "Resolve the alert" }));
    for (const [index, { page }] of [first, second].entries()) {
      await panel(page).getByRole("button", { name: "Resolve" }).click();
      await sheets[index]!.getByLabel("Comment").fill(["the plumber", "the cleaner"][index]!);
    }
    await sheets[1]!.getByLabel("What was done").fill("called her");
    await sheets[0]!.getByRole("radio", { name: /harmless/i }).check();
    await sheets[0]!.getByRole("button", { name: "Resolve", exact: true }).click();
    await first.page.getByText("Resolved the alert as harmless").waitFor();
    await sheets[1]!.getByRole("button", { name: "Resolve", exact: true }).click();
    await second.page.getByText(/^Resolved \d+ s ago by noah; nothing was changed$/).waitFor();
    expect(await sheets[1]!.getByLabel("Comment").inputValue()).toBe("the cleaner");
    expect(await sheets[1]!.getByLabel("What was done").inputValue()).toBe("called her");
    expect((await everyLookFaults(second.page)).join("\n\n")).toBe("");
    await second.page.keyboard.press("Escape");
    // The loser sees the alert as it is now.
    await panel(second.page).getByText("It was harmless").waitFor();
    const { body } = await server.call("GET", `/v1/alerts/${(await alertsOf("test.conflict"))[0]!.id}`);
    expect(body.data).toMatchObject({ status: "resolved", resolution: "benign" });
    await first.close();
    await second.close();
  });

  test("keys act on the alert that is shown, also where the way back has brought it", async () => {
    await addRule("test.shown");
    await raise("test.shown", ["Dock", "Gate"]);
    const { page, close } = await open("/alerts?view=all&rule_name=test.shown&group=none&sort=created_at");
    await page.locator("[role=row][aria-selected=true]").waitFor();
    const dock = (await alertsOf("test.shown")).find(({ title }) => title.startsWith("Dock"))!;
    await page.evaluate(
      (id) => history.pushState({}, "", `${location.pathname}${location.search}&alert=${id}`),
      dock.id,
    );
    await panel(page).getByRole("heading", { name: "Dock was forced" }).waitFor();
    await page.keyboard.press("r");
    await page.getByRole("dialog").getByText("Dock was forced").waitFor();
    await close();
  });

  test("an alert that was read before is shown again alone", async () => {
    await addRule("test.again");
    await raise("test.again", ["Dock", "Gate"]);
    const { page, close } = await open("/alerts?view=all&rule_name=test.again&group=none");
    for (const door of ["Dock", "Gate"]) await row(page, `${door} was forced`).waitFor();
    const titles = panel(page).getByRole("heading", { name: /was forced/ });
    await titles.waitFor();
    for (const key of ["j", "k", "j"]) {
      await page.keyboard.press(key);
      const words = await page.locator("[role=row][aria-selected=true]").innerText();
      await panel(page)
        .getByRole("heading", { name: /\w+ was forced/.exec(words)![0] })
        .first()
        .waitFor();
    }
    expect(await titles.count()).toBe(1);
    await close();
  });

  test("all that match are selected beyond the page, and tagged at once", async () => {
    await addRule("test.bulk");
    await raise("test.bulk", doors(120, "Many"));
    const { page, close } = await open("/alerts?view=all&rule_name=test.bulk&group=none");
    await page.locator("[role=row][aria-selected=true]").waitFor();
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    await page.keyboard.press("*");
    await page.getByText("All 120 that match").waitFor();
    await page.getByRole("button", { name: "Tag", exact: true }).click();
    await page.getByLabel("New tags").fill("cleaner");
    await page.keyboard.press("Enter");
    await page.getByText("Tagged 120 alerts cleaner").waitFor();
    const { body } = await server.call("GET", "/v1/alerts?tag=cleaner&limit=1");
    expect(body.pagination.total).toBe(120);
    await close();
  });

  test("an own change is not taken back over somebody else's", async () => {
    await addRule("test.not_taken_back");
    await raise("test.not_taken_back", ["Gate"]);
    const path = "/alerts?view=all&rule_name=test.not_taken_back&group=none";
    const noah = await server.addKey({ name: "noah" });
    const [mine, theirs] = await Promise.all([open(path), open(path, { key: noah.secret })]);
    const alert = async () => (await alertsOf("test.not_taken_back"))[0]!;
    // Noah is about to decide when the other acknowledges.
    const sheet = theirs.page.getByRole("dialog", { name: "Resolve the alert" });
    await panel(theirs.page).getByRole("button", { name: "Resolve" }).click();
    await sheet.getByRole("radio", { name: /harmless/i }).check();
    await panel(mine.page).getByRole("heading", { level: 2 }).first().waitFor();
    await mine.page.keyboard.press("a");
    await mine.page.getByLabel("Your e-mail address").fill("eva@example.com");
    await mine.page.keyboard.press("Enter");
    await mine.page.getByText("Acknowledged the alert for eva@example.com").waitFor();
    await sheet.getByRole("button", { name: "Resolve", exact: true }).click();
    await theirs.page.getByText("Resolved the alert as harmless").waitFor();
    await mine.page.getByRole("button", { name: "Undo", exact: true }).click();
    await mine.page.getByText(/^Nothing was taken back: the alert was changed \d+ s ago by noah$/).waitFor();
    await expectAccessible(mine.page);
    expect(await alert()).toMatchObject({ status: "resolved", resolution: "benign", assignee: "eva@example.com" });
    await panel(mine.page).getByText("It was harmless").waitFor();
    await mine.close();
    await theirs.close();
  });

  test("a change of many is taken back whole, except where somebody was faster", async () => {
    await addRule("test.taken_back");
    await raise("test.taken_back", doors(4, "Undone"));
    const before = await alertsOf("test.taken_back");
    const [first, second, third] = before.map(({ id }) => id);
    await server.call("POST", `/v1/alerts/${first}/acknowledge`, { body: { assignee: "ann@example.com" } });
    await server.call("PATCH", `/v1/alerts/${second}/tags`, { body: { add: ["night"] } });
    const handled = await alertsOf("test.taken_back");
    const { page, close } = await open("/alerts?view=all&rule_name=test.taken_back&group=none");
    await page.locator("[role=row][aria-selected=true]").waitFor();
    await page.keyboard.press("*");
    await page.getByText("All 4 that match").waitFor();
    await page.keyboard.press("r");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("3");
    await page.getByRole("dialog").getByLabel("Comment").fill("a drill");
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /^Resolve/ })
      .click();
    await page.getByText("Resolved 4 alerts as harmless").waitFor();
    await server.call("POST", `/v1/alerts/${third}/reopen`, { body: {} });
    await page.getByRole("button", { name: "Undo", exact: true }).click();
    await page
      .getByText(
        "Taken back for 3 alerts; 1 stays as it is, because somebody has changed it since. The comment stays in the timeline",
      )
      .waitFor();
    const same = ({ id, status, assignee, tags }: (typeof handled)[number]) => ({ id, status, assignee, tags });
    expect((await alertsOf("test.taken_back")).map(same)).toEqual(handled.map(same));
    await close();
  });

  test("a list is read page by page, and keeps few of them", async () => {
    await addRule("test.pages");
    await raise("test.pages", doors(120, "Many"));
    const { page, close } = await open("/alerts?view=all&rule_name=test.pages&group=none&sort=created_at");
    const grid = page.getByRole("grid");
    await row(page, "Many 120 was forced").waitFor();
    await expect
      .poll(async () => {
        await grid.evaluate((element) => element.scrollTo(0, element.scrollHeight));
        return row(page, "Many 1 was forced").count();
      })
      .toBe(1);
    expect(await grid.getAttribute("aria-rowcount")).toBe("120");
    expect(await page.getByRole("row").count()).toBeLessThan(50);
    await close();
  });

  test("a view is saved, renamed, found again by its address, and deleted", async () => {
    await addRule("test.views");
    await raise("test.views", doors(3, "Viewed"));
    const { page, close } = await open("/alerts?view=all");
    await page.locator("[role=row][aria-selected=true]").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("rule:test.views Viewed");
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).search).toBe("?view=all&rule_name=test.views&search=Viewed");
    await page.getByRole("button", { name: "Save these filters as a view" }).click();
    await page.getByRole("textbox", { name: "Name", exact: true }).fill("Cleaners");
    await page.getByRole("checkbox", { name: "Everybody sees it" }).check();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const views = page.getByRole("navigation", { name: "Views" });
    await views.getByRole("button", { name: /Cleaners 3/ }).waitFor();
    expect(new URL(page.url()).searchParams.get("view")).toMatch(/^view_/);
    await views.getByRole("button", { name: "Change the view Cleaners" }).click();
    await page.getByRole("menuitem", { name: "Rename or share" }).click();
    await page.getByRole("textbox", { name: "Name", exact: true }).fill("Night shift");
    await page.keyboard.press("Enter");
    await views
      .getByRole("button", { name: /Night shift/ })
      .first()
      .waitFor();
    await page.reload();
    await page.locator("[role=row][aria-selected=true]").waitFor();
    await views.getByRole("button", { name: "Change the view Night shift" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByText("Deleted “Night shift”").waitFor();
    expect((await server.call("GET", "/v1/views?screen=alerts")).body.data).toEqual([]);
    await close();
  });

  test("a key that may only read sees why nothing can be done", async () => {
    const reader = await server.addKey({ name: "reader", scopes: ["alerts:read"] });
    const { page, close } = await open("/alerts?view=all", { key: reader.secret });
    const button = panel(page).getByRole("button", { name: "Resolve" });
    await button.waitFor();
    expect(await button.isDisabled()).toBe(true);
    expect(await button.getAttribute("title")).toBe("Your key lacks the scope alerts:write.");
    await page.keyboard.press("a");
    await page.getByText("Your key lacks the scope alerts:write.").waitFor();
    await close();
  });

  test("writes are refused in words while the service is out of reach, and what is shown stays", async () => {
    await addRule("test.offline");
    await raise("test.offline", ["Dock"]);
    const { page, close } = await open("/alerts?view=all&rule_name=test.offline");
    await panel(page).getByRole("heading", { name: "Dock was forced" }).waitFor();
    await page.context().setOffline(true);
    await panel(page).getByRole("textbox", { name: "Comment" }).fill("hello");
    await page.keyboard.press("Control+Enter");
    await page.getByText("The service cannot be reached. Nothing was changed.").waitFor();
    expect(await panel(page).getByRole("textbox", { name: "Comment" }).inputValue()).toBe("hello");
    await row(page, "Dock was forced").waitFor();
    await close();
  });

  test.each(["rule", "none"])("an empty list says what would fill it, grouped by %s", async (group) => {
    await addRule(`test.empty_${group}`);
    await raise(`test.empty_${group}`, ["Dock"]);
    const { page, close } = await open(`/alerts?view=all&rule_name=test.empty_${group}&group=${group}&search=nowhere`);
    await page.getByText("Nothing matches").waitFor();
    await page.getByRole("button", { name: /without words “nowhere”/ }).click();
    await row(page, "was forced").first().waitFor();
    await close();
  });

  test("on a phone an alert covers the queue, and goes back to it", async () => {
    await addRule("test.phone");
    await raise("test.phone", ["Dock", "Gate"]);
    const { page, close } = await open("/alerts?view=all&rule_name=test.phone&group=none", { width: WIDTHS.phone });
    await row(page, "Gate was forced").click();
    await panel(page).getByRole("heading", { name: "Gate was forced" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Back to the queue" }).click();
    await panel(page).waitFor({ state: "detached" });
    await page.getByRole("checkbox", { name: "Select Gate was forced" }).click();
    await page.getByText("1 selected").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(WIDTHS.phone);
    await expectAccessible(page);
    await close();
  });

  test("markup in a name is text", async () => {
    await addRule("test.payload");
    const name = '<img src=x onerror="alert(1)">\u202Eevil';
    await raise("test.payload", [name]);
    const { page, faults, close } = await open("/alerts?view=all&rule_name=test.payload");
    await panel(page).getByRole("heading", { level: 2 }).first().waitFor();
    expect(await panel(page).getByRole("heading", { level: 2 }).first().innerText()).toContain("<img src=x");
    expect(await page.locator("img").count()).toBe(0);
    expect(faults).toEqual([]);
    await close();
  });
});
