import type { Page } from "playwright-core";

// Every screen, sheet, popover, menu and state of the console, and how a person gets there.

/** What the addresses of the states name. */
export interface Places {
  readonly alert: string;
  readonly event: string;
  readonly rule: string;
  readonly ownRule: string;
  readonly list: string;
}

export interface State {
  readonly name: string;
  readonly path: (places: Places) => string;
  /** From the screen to the state. */
  readonly reach?: (page: Page) => Promise<unknown>;
  /** Back to what the next state starts from; default: Escape until nothing covers the page. */
  readonly leave?: (page: Page) => Promise<unknown>;
}

const dialog = (page: Page) => page.getByRole("dialog").first().waitFor();
const menu = (page: Page) => page.getByRole("menu").waitFor();
const press =
  (...keys: string[]) =>
  async (page: Page) => {
    // Whoever presses keys has the focus somewhere, and wants it back.
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link").first().focus();
    for (const key of keys) await page.keyboard.press(key);
    await dialog(page);
  };
const button = (name: string | RegExp) => async (page: Page) => {
  await page.getByRole("button", { name }).first().click();
  await dialog(page);
};
const menuOf = (name: string | RegExp) => async (page: Page) => {
  await page.getByRole("button", { name }).first().click();
  await menu(page);
};
/** Keys act on the alert once it is there. */
const onAlert = (reach: (page: Page) => Promise<unknown>) => async (page: Page) => {
  await page.getByRole("button", { name: "Make an exception" }).waitFor();
  await reach(page);
};
const selected = (reach?: (page: Page) => Promise<unknown>) => async (page: Page) => {
  await page.locator("[role=row][aria-selected=true]").waitFor();
  if ((await page.getByRole("region", { name: "Selected alerts" }).count()) === 0) await page.keyboard.press("x");
  await page.getByRole("region", { name: "Selected alerts" }).waitFor();
  await reach?.(page);
};
const bulk = (name: string) => selected(button(new RegExp(`^${name}$`)));
/** Also ends the selection. */
const unselect = async (page: Page) => {
  await escape(page);
  await page.keyboard.press("Escape");
};
/** What was typed is thrown away. */
const withoutSaving = async (page: Page) => {
  await page.getByRole("button", { name: "Cancel" }).click();
  const question = page.getByRole("dialog", { name: "Leave without saving?" });
  if (await question.isVisible()) await question.getByRole("button", { name: "Leave" }).click();
};

export async function escape(page: Page): Promise<void> {
  const cover = page.locator("[data-covers-page]");
  for (let turn = 0; turn < 3 && (await cover.count()) > 0; turn++) {
    await page.keyboard.press("Escape");
    await page
      .waitForFunction(() => document.querySelector("[data-covers-page]") === null, null, { timeout: 1000 })
      .catch(() => {});
  }
}

const at = (path: string) => () => path;
const chosenAlert = ({ alert }: Places) => `/alerts?view=all&group=none&alert=${alert}`;

const SHELL: readonly State[] = [
  { name: "palette", path: at("/home"), reach: press("Control+k") },
  {
    name: "palette with choices",
    path: at("/home"),
    reach: async (page) => {
      await press("Control+k")(page);
      await page.keyboard.type("Loading");
      await page.getByRole("option", { name: /door/ }).waitFor();
    },
  },
  { name: "all keys", path: at("/home"), reach: press("?") },
  { name: "time and zone", path: at("/home"), reach: press("T") },
  {
    name: "time that is not understood",
    path: at("/home"),
    reach: async (page) => {
      await press("T")(page);
      await page.getByLabel("Type a time").fill("whenever");
      await page.keyboard.press("Enter");
      await page.getByText("Try 3h").waitFor();
    },
  },
  { name: "who I am", path: at("/home"), reach: menuOf(/signed in with the key/) },
  { name: "a page that is not there", path: at("/nowhere") },
];

const SCREENS: readonly State[] = [
  { name: "home", path: at("/home") },
  { name: "home, alerts as a table", path: at("/home"), reach: button("Alerts over time as a table") },
  { name: "home, traffic as a table", path: at("/home"), reach: button("Traffic over time as a table") },
  { name: "axis of an alert", path: ({ alert }) => `/axis?alert=${alert}` },
  { name: "axis of a week", path: at("/axis?range=7d") },
  { name: "axis, place or person", path: at("/axis?range=7d"), reach: press("/") },
  { name: "axis, days as a table", path: at("/axis?range=7d"), reach: button(/^Events and alerts in .* as a table/) },
  { name: "axis without events", path: at("/axis?from=2020-01-01T00:00:00Z&to=2020-01-01T01:00:00Z") },
  { name: "flows", path: at("/flows") },
  { name: "flows, traffic as a table", path: at("/flows"), reach: button("Traffic over time as a table") },
  { name: "flows, pairs as a table", path: at("/flows"), reach: button("Who sends to whom as a table") },
  { name: "flows without a match", path: at("/flows?port=1") },
  { name: "an address", path: at("/entity/address/10.20.3.240?range=7d") },
  { name: "a door", path: at("/entity/door/Loading%20dock?range=7d") },
  {
    name: "an address, traffic as a table",
    path: at("/entity/address/10.20.3.240?range=7d"),
    reach: button(/^Traffic of .* as a table/),
  },
  { name: "an entity that nobody has seen", path: at("/entity/user/nobody.at.all") },
];

const ALERTS: readonly State[] = [
  { name: "queue", path: at("/alerts?view=all") },
  { name: "queue without groups", path: at("/alerts?view=all&group=none") },
  { name: "queue as a table", path: at("/alerts?view=all"), reach: button("Alerts over time as a table") },
  { name: "queue, order", path: at("/alerts?view=all"), reach: menuOf("By rule") },
  { name: "queue, display and export", path: at("/alerts?view=all"), reach: menuOf("Display and export") },
  { name: "queue, filters", path: at("/alerts?view=all"), reach: button("Choose filters") },
  { name: "queue, save a view", path: at("/alerts?view=all"), reach: button("Save these filters as a view") },
  { name: "queue without a match", path: at("/alerts?view=all&search=nowhere&severity=critical") },
  { name: "queue, some selected", path: at("/alerts?view=all&group=none"), reach: selected(), leave: unselect },
  { name: "resolve several", path: at("/alerts?view=all&group=none"), reach: bulk("Resolve"), leave: unselect },
  { name: "assign several", path: at("/alerts?view=all&group=none"), reach: bulk("Assign"), leave: unselect },
  { name: "comment on several", path: at("/alerts?view=all&group=none"), reach: bulk("Comment"), leave: unselect },
  { name: "tag several", path: at("/alerts?view=all&group=none"), reach: bulk("Tag"), leave: unselect },
  { name: "alert", path: chosenAlert },
  { name: "alert, more", path: chosenAlert, reach: onAlert(menuOf("More")) },
  { name: "acknowledge, asked who", path: chosenAlert, reach: onAlert(press("a")) },
  { name: "resolve", path: chosenAlert, reach: onAlert(press("r")) },
  {
    name: "exception",
    path: chosenAlert,
    reach: onAlert(async (page) => {
      await press("e")(page);
      await page
        .getByText(/would have silenced|last week|Choose at least/)
        .first()
        .waitFor();
    }),
  },
  { name: "assign", path: chosenAlert, reach: onAlert(press("i")) },
  {
    name: "tags",
    path: chosenAlert,
    reach: onAlert(async (page) => {
      await menuOf("More")(page);
      await page.getByRole("menuitem", { name: "Tags" }).click();
      await dialog(page);
    }),
  },
  {
    name: "comment",
    path: chosenAlert,
    reach: onAlert(async (page) => {
      await page.keyboard.press("c");
      await page.keyboard.type("See **the camera**");
    }),
    leave: (page) => page.getByRole("textbox", { name: "Comment" }).fill(""),
  },
  { name: "alert that is gone", path: at("/alerts?view=all&group=none&alert=alt_gone") },
];

const EVENTS: readonly State[] = [
  { name: "events", path: at("/events") },
  { name: "event of a link, opened", path: ({ event }) => `/events?event=${event}` },
  {
    name: "event, opened",
    path: at("/events?type=access_granted"),
    reach: async (page) => {
      await page.locator("[data-row]").first().waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("Space");
      await page.getByRole("list", { name: "What was sent" }).waitFor();
    },
  },
  { name: "events as a table", path: at("/events"), reach: button("Events over time as a table") },
  { name: "events, columns", path: at("/events"), reach: button(/Columns/) },
  { name: "events, export", path: at("/events"), reach: button("Export") },
  {
    name: "events, suggestions",
    path: at("/events"),
    reach: async (page) => {
      await page.getByRole("combobox", { name: "Filter events" }).fill("use");
      await page.getByRole("option").first().waitFor();
    },
    leave: (page) => page.getByRole("combobox", { name: "Filter events" }).fill(""),
  },
  {
    name: "events, live tail",
    path: at("/events?live=1"),
    reach: async (page) => {
      await page.mouse.move(5, 5);
      await page.getByText(/^(Live, |Paused while)/).waitFor();
    },
  },
  { name: "events without a match", path: at("/events?search=nowheretobefound") },
];

const RULES: readonly State[] = [
  { name: "rules", path: at("/rules") },
  { name: "rules, add a filter", path: at("/rules"), reach: menuOf("Add a filter") },
  { name: "rules, import", path: at("/rules"), reach: button("Import") },
  { name: "rules without a match", path: at("/rules?search=nothing+at+all") },
  { name: "rule", path: ({ rule }) => `/rules?rule=${rule}` },
  {
    name: "rule, tried",
    path: ({ ownRule }) => `/rules?rule=${ownRule}`,
    reach: async (page) => {
      await page.getByRole("button", { name: /Try it/ }).click();
      await page.getByText(/would have made/).waitFor();
    },
  },
  {
    name: "rule, what to do",
    path: ({ ownRule }) => `/rules?rule=${ownRule}`,
    reach: menuOf("What to do with the rule"),
  },
  {
    name: "rule, delete",
    path: ({ ownRule }) => `/rules?rule=${ownRule}`,
    reach: async (page) => {
      await menuOf("What to do with the rule")(page);
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await dialog(page);
    },
  },
  {
    name: "rule, remove an exception",
    path: ({ ownRule }) => `/rules?rule=${ownRule}`,
    reach: button(/^Remove the exception/),
  },
  { name: "rule that is gone", path: at("/rules?rule=no.such") },
  { name: "rule editor, form", path: at("/rules?edit=new") },
  {
    name: "rule editor, faults",
    path: at("/rules?edit=new"),
    reach: async (page) => {
      await page.getByLabel("Name", { exact: true }).fill("Bad Name");
      await page.getByRole("button", { name: "Create the rule" }).click();
      await page.getByText(/things? to mend/).waitFor();
    },
    leave: withoutSaving,
  },
  {
    name: "rule editor, YAML and simulation",
    path: ({ ownRule }) => `/rules?edit=${ownRule}`,
    reach: async (page) => {
      await page.getByRole("button", { name: "YAML" }).click();
      await page.getByLabel("The rule as YAML").waitFor();
      await page.getByRole("button", { name: "Try it" }).click();
      await page.getByText(/would have made/).waitFor();
    },
    leave: withoutSaving,
  },
  {
    name: "rule editor, leaving",
    path: ({ ownRule }) => `/rules?edit=${ownRule}`,
    reach: async (page) => {
      await page.getByLabel("Description").fill("Other words");
      await page.getByRole("button", { name: "Cancel" }).click();
      await dialog(page);
    },
    leave: (page) => page.getByRole("dialog").getByRole("button", { name: "Leave" }).click(),
  },
  { name: "watch lists", path: at("/rules?tab=lists") },
  { name: "watch list", path: ({ list }) => `/rules?tab=lists&list=${list}` },
  { name: "new watch list", path: at("/rules?tab=lists"), reach: button("New list") },
  {
    name: "watch list, many entries",
    path: ({ list }) => `/rules?tab=lists&list=${list}`,
    reach: button("Paste many"),
  },
  {
    name: "watch list, delete",
    path: ({ list }) => `/rules?tab=lists&list=${list}`,
    reach: async (page) => {
      await menuOf("What to do with the list")(page);
      await page.getByRole("menuitem", { name: "Delete the list" }).click();
      await dialog(page);
    },
  },
];

const SOURCES_AND_SETTINGS: readonly State[] = [
  { name: "sources", path: at("/sources") },
  {
    name: "source, opened",
    path: at("/sources"),
    reach: async (page) => {
      const row = page.getByRole("main").locator("button[aria-expanded]").first();
      if ((await row.getAttribute("aria-expanded")) === "false") await row.click();
      await page.getByText("last hour", { exact: true }).waitFor();
    },
  },
  { name: "connect, what is it", path: at("/sources?connect=choose"), reach: dialog, leave: escape },
  { name: "connect syslog", path: at("/sources?connect=rsyslog"), reach: dialog },
  { name: "connect flows", path: at("/sources?connect=unifi-flows"), reach: dialog },
  { name: "keys", path: at("/settings?section=keys") },
  { name: "key, what to do", path: at("/settings?section=keys"), reach: menuOf(/^What to do with the key/) },
  { name: "new key", path: at("/settings?section=keys"), reach: button("New key") },
  {
    name: "new key, shown once",
    path: at("/settings?section=keys"),
    reach: async (page) => {
      await button("New key")(page);
      await page.getByLabel("Name").fill("night shift");
      await page.getByRole("button", { name: "Create the key" }).click();
      await page.getByRole("button", { name: "I have copied it" }).waitFor();
    },
  },
  {
    name: "key, revoke",
    path: at("/settings?section=keys"),
    reach: async (page) => {
      await menuOf(/^What to do with the key night/)(page);
      await page.getByRole("menuitem", { name: "Revoke" }).click();
      await dialog(page);
    },
  },
  ...["channels", "storage", "usage", "appearance", "about"].map((section) => ({
    name: `settings, ${section}`,
    path: at(`/settings?section=${section}`),
  })),
];

export const STATES: readonly State[] = [...SHELL, ...SCREENS, ...ALERTS, ...EVENTS, ...RULES, ...SOURCES_AND_SETTINGS];
