import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openTestServer, type TestServer } from "../api-server.ts";
import {
  describeInBrowser,
  everyLookFaults,
  expectAccessible,
  launchBrowser,
  openConsole,
  type ConsolePage,
} from "./browser.ts";
import type { PageOptions } from "./chromium.ts";

const MARKUP = `<img src=x onerror="alert(1)">`;

describeInBrowser("the rules screen", () => {
  let server: TestServer;
  let browser: Browser;
  const opened: ConsolePage[] = [];
  beforeAll(async () => {
    [server, browser] = await Promise.all([openTestServer(), launchBrowser()]);
    for (let i = 0; i < 6; i++) {
      await server.call("POST", "/v1/events", {
        body: { type: "app_login_failure", source: "custom", data: { user: "ada", host: "wiki", src_ip: "192.0.2.7" } },
      });
    }
  });
  afterEach(async () => {
    for (const { faults, close } of opened.splice(0)) {
      await close();
      expect(faults).toEqual([]);
    }
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  const open = async (path: string, options?: PageOptions) => {
    const one = await openConsole(browser, server, path, options);
    opened.push(one);
    return one.page;
  };
  const ruleNamed = async (name: string) => {
    const { body } = await server.call("GET", "/v1/rules?per_page=100");
    return body.data.find((rule: { name: string }) => rule.name === name);
  };
  const makeRule = async (name: string, more: object = {}) => {
    const { status, text, body } = await server.call("POST", "/v1/rules", {
      body: {
        name,
        description: "Somebody failed to log in",
        severity: "low",
        conditions: [{ field: "type", equals: "app_login_failure" }],
        actions: [{ alert: { channels: [] } }],
        ...more,
      },
    });
    expect(status, text).toBe(201);
    return body.data;
  };
  const search = (page: Page) => Object.fromEntries(new URL(page.url()).searchParams);
  const panel = (page: Page) => page.getByRole("complementary", { name: "Rule" });

  test("with the keyboard: find, open, switch, undo, try, close", async () => {
    const page = await open("/rules");
    await page.getByRole("table", { name: "Rules" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("badge");
    await page.keyboard.press("Enter");
    await page.waitForURL(/search=badge/);
    await page.getByText("access.badge_after_hours").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(/rule=access\.badge_at_many_doors/);
    await panel(page).getByRole("heading", { name: "access.badge_at_many_doors" }).waitFor();
    await panel(page)
      .getByText(/5 or more different values of/)
      .waitFor();
    await page.keyboard.press("s");
    await page.getByText("Switched access.badge_at_many_doors off.").waitFor();
    expect((await ruleNamed("access.badge_at_many_doors")).enabled).toBe(false);
    await page.keyboard.press("u");
    await page.getByText("Switched access.badge_at_many_doors on.").waitFor();
    expect((await ruleNamed("access.badge_at_many_doors")).enabled).toBe(true);
    await page.keyboard.press("t");
    await page.getByText("This would have made no alert last week.").waitFor();
    await page.keyboard.press("Escape");
    await panel(page).waitFor({ state: "detached" });
    expect(search(page)).toEqual({ search: "badge" });
  });

  test("an address opens the rule, the filters and the order", async () => {
    const page = await open("/rules?severity=critical&source=platform_access&sort=alerts&rule=network.brute_force");
    await panel(page).getByRole("heading", { name: "network.brute_force" }).waitFor();
    await page.getByText("site.denied_then_forced").waitFor();
    expect(await page.getByText("access.door_held", { exact: true }).count()).toBe(0);
    await page.getByRole("button", { name: "Remove watches doors" }).click();
    await page.getByText("network.honeypot_touched").waitFor();
    expect(search(page)).toMatchObject({ severity: "critical", sort: "alerts" });
    await page.goto(`${server.address}/rules?rule=${(await ruleNamed("talk.sip_scan")).id}`);
    await panel(page).getByRole("heading", { name: "talk.sip_scan" }).waitFor();
  });

  test("with the mouse: a new rule in the form, its faults at their fields, tried and saved", async () => {
    const page = await open("/rules");
    await page.getByRole("button", { name: "New rule" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Bad Name");
    await page.getByLabel("Description").fill("Somebody guesses passwords of the wiki");
    await page.getByLabel("Value of condition 1").fill("app_login_failure");
    await page.getByRole("button", { name: "Many within a time" }).click();
    await page.getByLabel("Within").fill("5 minutes");
    await page.getByLabel("Counted on its own for each").fill("raw.src_ip");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("2 things to mend").waitFor();
    expect(await page.getByLabel("Name", { exact: true }).getAttribute("aria-invalid")).toBe("true");
    expect(await page.getByLabel("Within").getAttribute("aria-invalid")).toBe("true");
    await expectAccessible(page);
    await page.getByLabel("Name", { exact: true }).fill("site.wiki_guessing");
    await page.getByLabel("Within").fill("10m");
    await page.getByRole("button", { name: "Try it" }).click();
    await page.getByText("This would have made 1 alert last week.").waitFor();
    await page.getByRole("link", { name: "192.0.2.7" }).first().waitFor();
    await expectAccessible(page);
    await page.getByLabel("email").check();
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText(/Created the rule site\.wiki_guessing\. But the channel email is not configured/).waitFor();
    await panel(page)
      .getByText(/The channel email is not configured/)
      .waitFor();
    expect(await ruleNamed("site.wiki_guessing")).toMatchObject({
      conditions: [{ field: "type", equals: "app_login_failure" }],
      window: "10m",
      threshold: { count: 5, group_by: "raw.src_ip" },
    });
  });

  test("sums, bounds, parts, steps and exceptions are written in the form, and a fault stands at its field", async () => {
    const page = await open("/rules?edit=new");
    await page.getByLabel("Name", { exact: true }).fill("site.much_traffic");
    await page.getByLabel("Description").fill("Much traffic");
    await page.getByLabel("Value of condition 1").fill("flow_summary");
    await page.getByRole("button", { name: "Many within a time" }).click();
    await page.getByLabel("Compares").selectOption("percentile");
    await page.getByLabel("Of the field").fill("raw.bytes");
    await page.getByLabel("Percentile", { exact: true }).fill("101");
    await page.getByLabel("Lower bound", { exact: true }).selectOption("gt");
    await page.getByLabel("Lower bound: value").fill("1000.5");
    await page.getByRole("button", { name: "Exception", exact: true }).click();
    const exception = page.getByRole("region", { name: "Exception 1" });
    await exception.getByLabel("Value of condition 1").fill("backup");
    await exception.getByLabel("Reason of exception 1").fill("the backup");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("alert").filter({ hasText: "100" }).first().waitFor();
    expect(await page.getByLabel("Percentile", { exact: true }).getAttribute("aria-invalid")).toBe("true");
    await page.getByLabel("Percentile", { exact: true }).fill("99");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("Created the rule site.much_traffic").waitFor();
    expect(await ruleNamed("site.much_traffic")).toMatchObject({
      threshold: { percentile: { of: "raw.bytes", rank: 99 }, gt: 1000.5 },
      exceptions: [{ reason: "the backup", conditions: [{ field: "type", equals: "backup" }] }],
    });
  });

  test("a sequence of a part and a step is written in the form", async () => {
    const page = await open("/rules?edit=new");
    await page.getByLabel("Name", { exact: true }).fill("site.guessed");
    await page.getByLabel("Description").fill("Guessed");
    await page.getByLabel("Value of condition 1").fill("login");
    await page.getByRole("button", { name: "One after another" }).click();
    await page.getByRole("button", { name: "Part", exact: true }).click();
    const part = page.getByRole("region", { name: "Part 1" });
    await part.getByLabel("Name of part 1").fill("guessing");
    await part.getByLabel("Value of condition 1").fill("login_failure");
    await part.getByLabel("At least", { exact: true }).fill("7");
    await part.getByLabel("Counted on its own for each").fill("raw.src_ip");
    await page.getByLabel("Step 1 is").selectOption("guessing");
    await page
      .getByRole("listitem")
      .filter({ has: page.getByLabel("Name of step 2") })
      .getByLabel("Value of condition 1")
      .fill("login_success");
    await page.getByLabel("All share the same").fill("raw.src_ip");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("Created the rule site.guessed").waitFor();
    expect(await ruleNamed("site.guessed")).toMatchObject({
      parts: [{ name: "guessing", window: "5m", threshold: { count: 7, group_by: "raw.src_ip" } }],
      sequence: [{ part: "guessing" }, { conditions: [{ field: "type", equals: "login_success" }] }],
      group_by: "raw.src_ip",
    });
  });

  test("a name that is taken is told at the name, and nothing that was typed is lost", async () => {
    await makeRule("site.taken");
    const page = await open("/rules?edit=new");
    await page.getByLabel("Name", { exact: true }).fill("site.taken");
    await page.getByLabel("Description").fill("Mine");
    await page.getByLabel("Value of condition 1").fill("x");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("is taken by another rule").first().waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("Mine");
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog", { name: "Leave without saving?" }).getByRole("button", { name: "Stay" }).click();
    expect(await page.getByLabel("Description").inputValue()).toBe("Mine");
  });

  test("a built-in rule is copied; form and YAML are two views of it, and comments stay", async () => {
    const page = await open("/rules?rule=talk.toll_fraud");
    await panel(page).getByRole("button", { name: "Copy and change" }).click();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("site.toll_fraud");
    await page.getByRole("button", { name: "YAML" }).click();
    const text = page.getByLabel("The rule as YAML");
    await text.click();
    // At the top: at the end, where the tests are, the editor indents new lines.
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("\n");
    await page.keyboard.press("ArrowUp");
    // Letters that are keys elsewhere are only letters here.
    await page.keyboard.type(
      "# njek by night\nexceptions: [{ reason: ours, conditions: [{ field: raw.from, equals: x }] }",
    );
    await page.getByText(/^Line \d+: /).waitFor();
    expect(await page.getByRole("button", { name: "Create the rule" }).isDisabled()).toBe(true);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Form" }).click();
    await page.getByText("The form cannot show this YAML").waitFor();
    await page.getByRole("button", { name: "Back to the YAML" }).click();
    await text.click();
    for (const key of ["Control+Home", "ArrowDown", "End"]) await page.keyboard.press(key);
    await page.keyboard.type("]");
    await page.getByRole("button", { name: "Form" }).click();
    await page.getByLabel("Severity").selectOption("medium");
    await page.getByRole("button", { name: "YAML" }).click();
    await page.getByText("# njek by night").waitFor();
    await page.getByText("severity: medium", { exact: true }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("Created the rule site.toll_fraud.").waitFor();
    expect(await ruleNamed("site.toll_fraud")).toMatchObject({
      severity: "medium",
      exceptions: [{ reason: "ours", conditions: [{ field: "raw.from", equals: "x" }] }],
      builtin: false,
      threshold: { count: 5, group_by: "raw.from", distinct: "raw.to" },
    });
  });

  test("the tests of a rule are shown and run, by a key and by a button, saved and not yet saved", async () => {
    const builtin = await open("/rules?rule=talk.toll_fraud");
    const tests = (page: Page) => page.getByRole("region", { name: "Tests" });
    await tests(builtin).getByRole("listitem").first().waitFor();
    const count = await tests(builtin).getByRole("listitem").count();
    await builtin.keyboard.press("r");
    await tests(builtin).getByText(`${count} of ${count} pass`).waitFor();
    await expectAccessible(builtin);

    const { id } = await makeRule("site.tested", {
      tests: [
        { name: `one is enough ${MARKUP}`, events: [{ type: "app_login_failure" }], alerts: 1 },
        { name: "two are one alert", events: [{ type: "app_login_failure", repeat: 2 }], alerts: 2 },
      ],
    });
    const page = await open(`/rules?edit=${id}`, { width: 390, height: 844 });
    await tests(page).getByRole("button", { name: "Run the tests" }).click();
    await tests(page).getByText("1 of 2 pass, 1 fails").waitFor();
    const [passed, failed] = [0, 1].map((index) => tests(page).getByRole("listitem").nth(index));
    await passed!.getByText("passes").waitFor();
    await passed!.getByText(MARKUP).waitFor();
    await failed!.getByText("2 alerts", { exact: true }).waitFor();
    await failed!.getByText(/^1 alert, titled "Somebody failed to log in"$/).waitFor();
    await expectAccessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    // The value of a condition is as wide as its field.
    const widthOf = async (label: string) => (await page.getByLabel(label).boundingBox())!.width;
    expect(await widthOf("Value of condition 1")).toBe(await widthOf("Field of condition 1"));
    await page.getByRole("button", { name: "Edit the tests" }).click();
    const text = page.getByLabel("The rule as YAML");
    await text.click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("  - { name: nothing, events: [], alert: 0 }\n");
    await tests(page).getByText("The rule has changed since they ran. Run them again.").waitFor();
    await tests(page).getByRole("button", { name: "Run the tests" }).click();
    await page.getByText("tests[2].alerts", { exact: true }).waitFor();
    await expectAccessible(page);
    await text.click();
    await page.keyboard.press("Control+End");
    for (const key of ["ArrowUp", "End", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"]) {
      await page.keyboard.press(key);
    }
    await page.keyboard.type("s");
    await tests(page).getByRole("button", { name: "Run the tests" }).click();
    await tests(page).getByText("2 of 3 pass, 1 fails").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the rule site.tested.").waitFor();
    const { body } = await server.call("GET", `/v1/rules/${id}`);
    expect(body.data.tests).toMatchObject([{}, { alerts: 2 }, { name: "nothing", events: [], alerts: 0 }]);
  });

  test("a first test is written for a rule that has none, and removed", async () => {
    const { id } = await makeRule("site.untested");
    const page = await open(`/rules?edit=${id}`);
    const tests = page.getByRole("region", { name: "Tests" });
    await tests.getByText(/^This rule has no tests/).waitFor();
    await page.getByRole("button", { name: "Test", exact: true }).click();
    await page.getByLabel("The rule as YAML").waitFor();
    await tests.getByRole("button", { name: "Run the tests" }).click();
    await tests.getByText("1 of 1 passes").waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the rule site.untested.").waitFor();
    expect((await server.call("GET", `/v1/rules/${id}`)).body.data.tests).toHaveLength(1);
    await page.goto(`${server.address}/rules?edit=${id}`);
    await page.getByRole("button", { name: "YAML" }).click();
    const text = page.getByLabel("The rule as YAML");
    await text.click();
    // What is typed takes the place of what is selected.
    await page.keyboard.press("Control+a");
    await page.keyboard.type(
      "{ name: site.untested, description: D, severity: low, enabled: true, conditions: [{ field: type, equals: x }], " +
        "actions: [{ alert: { channels: [] } }] }",
    );
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the rule site.untested.").last().waitFor();
    expect((await server.call("GET", `/v1/rules/${id}`)).body.data.tests).toEqual([]);
  });

  test("what the service refuses is shown at its line", async () => {
    await makeRule("site.lines");
    const page = await open(`/rules?edit=${(await ruleNamed("site.lines")).id}`);
    await page.getByRole("button", { name: "YAML" }).click();
    const text = page.getByLabel("The rule as YAML");
    await text.click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("window: soon\n");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText(/things? to mend/).waitFor();
    const marked = page.locator(".cm-lintRange-error");
    await marked.first().waitFor();
    expect((await marked.allInnerTexts()).join(" ")).toContain("window");
  });

  test("a rule that somebody else saved meanwhile is not overwritten unasked", async () => {
    const { id } = await makeRule("site.shared");
    const page = await open(`/rules?edit=${id}`);
    await page.getByLabel("Description").fill("Mine");
    const { body } = await server.call("GET", `/v1/rules/${id}`);
    await server.call("PUT", `/v1/rules/${id}`, { body: { ...body.data, description: "Theirs" } });
    await page.getByRole("button", { name: "Save" }).click();
    const sheet = page.getByRole("dialog", { name: "Somebody else changed this rule" });
    await sheet.waitFor();
    expect((await everyLookFaults(page)).join("\n\n")).toBe("");
    await sheet.getByRole("button", { name: "Keep mine" }).click();
    await sheet.waitFor({ state: "detached" });
    expect(await page.getByLabel("Description").inputValue()).toBe("Mine");
    expect((await ruleNamed("site.shared")).description).toBe("Theirs");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the rule site.shared.").waitFor();
    expect((await ruleNamed("site.shared")).description).toBe("Mine");
  });

  test("an exception is removed and put back; a rule is deleted after a question", async () => {
    const { id } = await makeRule("site.excepted");
    await server.call("POST", `/v1/rules/${id}/exceptions`, {
      body: { conditions: [{ field: "raw.user", equals: "ada" }], reason: `our own ${MARKUP}` },
    });
    const page = await open("/rules?rule=site.excepted");
    await panel(page).getByText(`our own ${MARKUP}`).waitFor();
    await panel(page).getByText("the person is ada").waitFor();
    await panel(page)
      .getByRole("button", { name: /^Remove the exception/ })
      .click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByText(/^Removed the exception/).waitFor();
    expect((await ruleNamed("site.excepted")).exceptions).toEqual([]);
    await page.keyboard.press("u");
    await panel(page).getByText(`our own ${MARKUP}`).waitFor();
    await panel(page).getByRole("button", { name: "What to do with the rule" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("dialog", { name: "Delete this rule?" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("Deleted the rule site.excepted.").waitFor();
    expect(await ruleNamed("site.excepted")).toBeUndefined();
  });

  test("rules are imported from Sigma: first what would happen, then it happens", async () => {
    const page = await open("/rules");
    await page.getByRole("button", { name: "Import" }).click();
    await page.getByLabel("YAML").fill(`title: Odd tool
level: high
logsource: { category: process_creation, product: windows }
detection:
  selection:
    Image|endswith: odd.exe
  condition: selection
---
title: Looks behind
level: low
logsource: { category: x }
detection:
  a:
    b|re: (?<=a)b
  condition: a
`);
    await page.getByRole("button", { name: "Show what it would create" }).click();
    await page.getByText("1 rule would be created").waitFor();
    await page.getByText("1 rule could not be translated").waitFor();
    expect(await ruleNamed("sigma.odd_tool")).toBeUndefined();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create 1 rule" }).click();
    await page.getByText(/^Created 1 rule\./).waitFor();
    expect(await ruleNamed("sigma.odd_tool")).toMatchObject({ enabled: true, severity: "high" });
  });

  test("watch lists: made, filled, searched, emptied and deleted", async () => {
    const page = await open("/rules?tab=lists");
    await page.getByText("No watch lists yet").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "New list" }).click();
    await page.getByLabel("Name", { exact: true }).fill("blocked");
    await page.getByRole("button", { name: "Create the list" }).click();
    await page.getByText("Nothing is on this list yet").waitFor();
    await page.getByLabel("Address, network or domain").fill("nothing at all");
    await page.keyboard.press("Enter");
    await page.getByText(/must be an address/).waitFor();
    await page.getByLabel("Address, network or domain").fill("192.0.2.17");
    await page.getByLabel("Note", { exact: true }).fill(MARKUP);
    await page.getByLabel("How long").selectOption("7");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText(MARKUP).waitFor();
    await page.getByRole("button", { name: "Paste many" }).click();
    await page.getByLabel("One entry a line").fill("198.51.100.0/24 # neighbours\n???\nbad.example.org");
    await page.getByRole("button", { name: "Add 3 entries" }).click();
    await page.getByText("Nothing was added yet: 1 line cannot be read.").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Add the other 2" }).click();
    await page.getByText("neighbours").waitFor();
    await page.getByLabel("Find entries by value or note").fill("bad.ex");
    await page.waitForURL(/entry=bad\.ex/);
    await page.getByText("neighbours").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Remove bad.example.org" }).click();
    await page.getByText("No entry matches").waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("u");
    await page.getByRole("button", { name: "Remove bad.example.org" }).waitFor();
    await expectAccessible(page);
    await makeRule("site.on_list", { conditions: [{ field: "enrichment.lists", equals: "blocked" }] });
    await page.getByRole("button", { name: "What to do with the list" }).click();
    await page.getByRole("menuitem", { name: "Delete the list" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(/site\.on_list/).waitFor();
    await page.getByRole("button", { name: "Delete it all the same" }).click();
    await page.getByText("Deleted the list blocked.").waitFor();
  });

  test("a key that may only read sees everything and can change nothing", async () => {
    const { secret } = await server.addKey({ name: "reader", scopes: ["rules:read"] });
    const page = await open("/rules?rule=network.brute_force", { key: secret });
    await panel(page).getByRole("heading", { name: "network.brute_force" }).waitFor();
    expect(await page.getByRole("button", { name: "New rule" }).isDisabled()).toBe(true);
    expect(
      await panel(page)
        .getByRole("button", { name: /Try it/ })
        .isDisabled(),
    ).toBe(true);
    const toggle = panel(page).getByRole("switch");
    expect(await toggle.getAttribute("title")).toBe("Your key lacks the scope rules:write.");
    await toggle.click({ force: true });
    expect((await ruleNamed("network.brute_force")).enabled).toBe(true);
    await page.goto(`${server.address}/rules?edit=new`);
    await page.getByText("Your key may not change rules").waitFor();
    await expectAccessible(page);
  });

  test("markup in a rule is text", async () => {
    await makeRule("site.markup", {
      description: `${MARKUP}\n\n${MARKUP}`,
      tags: [MARKUP],
      references: ["javascript:alert(1)", MARKUP],
      conditions: [{ field: `raw.${"<b>"}`, equals: MARKUP }],
    });
    const page = await open("/rules?rule=site.markup");
    await panel(page).getByText(MARKUP).first().waitFor();
    expect(await page.locator("main img, main b, a[href^=javascript]").count()).toBe(0);
    await panel(page).getByRole("button", { name: "Edit" }).click();
    await page.getByRole("button", { name: "YAML" }).click();
    await page.getByLabel("The rule as YAML").waitFor();
    expect(await page.locator("main img, main b").count()).toBe(0);
  });
});
