import type { CDPSession, Page } from "playwright-core";
import { escape } from "./states.ts";

// Where the focus goes, and how it looks. The keys are real; what they reach is noted in the page, because a question
// after each of thousands of keys would take minutes.

const COVER = "[data-covers-page]";
/** Many times what the longest screen has. */
const TABS_MAX = 1500;
const TABS_AT_ONCE = 30;
const RETURN_MS = 3000;

export type Cover = "page" | "sheet" | "popover" | "menu";

export async function coverOf(page: Page): Promise<Cover> {
  return page.evaluate((selector) => {
    const cover = [...document.querySelectorAll(selector)].at(-1);
    if (cover === undefined) return "page";
    if (cover.getAttribute("role") === "menu") return "menu";
    // A sheet stands in the window, and what lies under it is out of reach; a popover stands beside its button.
    return getComputedStyle(cover).position === "fixed" ? "sheet" : "popover";
  }, COVER);
}

interface FocusNotes {
  controls: Element[];
  readonly visited: Set<Element>;
  first: Element | undefined;
  /** The first control was reached a second time. */
  isRound: boolean;
  /** The last that had the focus outside of what covers the page. */
  outside: Element | undefined;
  before: Element | undefined;
}

interface NotesWindow {
  focusNotes: FocusNotes;
  controlsIn(root: ParentNode): Element[];
  describe(element: Element): string;
}

/** Installs what notes the focus; once for each page that is loaded. */
export async function noteFocus(page: Page): Promise<void> {
  await page.evaluate((cover) => {
    const here = globalThis as unknown as NotesWindow;
    const notes: FocusNotes = {
      controls: [],
      visited: new Set(),
      first: undefined,
      isRound: false,
      outside: undefined,
      before: undefined,
    };
    here.focusNotes = notes;
    here.describe = (element) =>
      `${element.tagName.toLowerCase()} ${(element.getAttribute("aria-label") ?? element.textContent ?? "").trim().slice(0, 60)}`;
    const COMPOSITES = "[role=menu], [role=listbox], [role=grid], [role=radiogroup]";
    here.controlsIn = (root) =>
      [
        ...root.querySelectorAll(
          "a[href], button, input, select, textarea, summary, [tabindex], [contenteditable=true]",
        ),
      ].filter((element) => {
        if (!(element instanceof HTMLElement || element instanceof SVGElement)) return false;
        if (element.hasAttribute("data-base-ui-focus-guard") || element.closest("[inert], [aria-hidden=true]"))
          return false;
        if (!element.checkVisibility({ visibilityProperty: true })) return false;
        if ((element as HTMLButtonElement).disabled === true) return false;
        // Arrows move within these.
        if (element.tabIndex < 0)
          return element.matches("a, button, input, select, textarea") && !element.closest(COMPOSITES);
        if (element instanceof HTMLInputElement && element.type === "radio" && !element.checked) {
          const group = [...document.querySelectorAll<HTMLInputElement>("input[type=radio]")].filter(
            ({ name }) => name === element.name,
          );
          return group[0] === element && !group.some(({ checked }) => checked);
        }
        return true;
      });
    document.addEventListener("focusin", ({ target }) => {
      if (!(target instanceof Element)) return;
      if (target.closest(cover) === null && !target.hasAttribute("data-base-ui-focus-guard")) notes.outside = target;
      if (notes.first === undefined) notes.first = target;
      else if (notes.first === target && notes.visited.size > 1) notes.isRound = true;
      notes.visited.add(target);
    });
  }, COVER);
}

async function pressTabs(keyboard: CDPSession, count: number): Promise<void> {
  const tab = { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 };
  await Promise.all(
    Array.from({ length: count }, () => [
      keyboard.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...tab }),
      keyboard.send("Input.dispatchKeyEvent", { type: "keyUp", ...tab }),
    ]).flat(),
  );
}

/** Presses Tab until it has gone round. Tells which controls were not reached, and where it did not get away from. */
export async function tabFaults(page: Page, keyboard: CDPSession, cover: Cover): Promise<string[]> {
  const controls = await page.evaluate(
    ({ selector, isCovered }) => {
      const here = globalThis as unknown as NotesWindow;
      const notes = here.focusNotes;
      const root = isCovered ? [...document.querySelectorAll(selector)].at(-1)! : document;
      notes.controls = here.controlsIn(root);
      notes.visited.clear();
      notes.first = undefined;
      notes.isRound = false;
      // From the top: a list of thousands is the last of a screen, and nobody tabs through it.
      (notes.controls[0] as HTMLElement | undefined)?.focus();
      notes.first = notes.controls[0];
      if (notes.first !== undefined) notes.visited.add(notes.first);
      return notes.controls.length;
    },
    { selector: COVER, isCovered: cover !== "page" },
  );
  for (let pressed = 0; pressed < TABS_MAX; pressed += TABS_AT_ONCE) {
    await pressTabs(keyboard, Math.min(TABS_AT_ONCE, controls + 4));
    const isDone = await page.evaluate(() => {
      const { isRound, controls, visited } = (globalThis as unknown as NotesWindow).focusNotes;
      return isRound || controls.every((control) => visited.has(control) || !control.isConnected);
    });
    if (isDone) break;
  }
  return page.evaluate(
    ({ selector, cover: kind }) => {
      const { focusNotes: notes, describe } = globalThis as unknown as NotesWindow;
      const faults = notes.controls
        .filter(
          (control) =>
            control.isConnected && control.checkVisibility({ visibilityProperty: true }) && !notes.visited.has(control),
        )
        .map((control) => `Tab does not reach ${describe(control)}`);
      if (kind === "sheet") {
        const escaped = [...notes.visited].filter(
          (element) =>
            element.closest(selector) === null &&
            element !== document.body &&
            !element.hasAttribute("data-base-ui-focus-guard"),
        );
        faults.push(...escaped.map((element) => `Tab leaves the sheet for ${describe(element)}`));
      } else if (faults.length > 0 && !notes.isRound && document.activeElement !== null) {
        faults.push(`Tab stays at ${describe(document.activeElement)}`);
      }
      return faults;
    },
    { selector: COVER, cover },
  );
}

/** Focuses each control in turn. Tells which of them look the same as before, and which are covered by something else. */
export async function lookFaults(page: Page, cover: Cover): Promise<string[]> {
  // Who came by mouse sees no rings before touching a key.
  await page.keyboard.press("Shift");
  return page.evaluate(
    async ({ selector, isCovered }) => {
      const here = globalThis as unknown as NotesWindow;
      const root = isCovered ? [...document.querySelectorAll(selector)].at(-1)! : document;
      const LEVELS = 4;
      const lookOf = (element: Element) => {
        const looks: string[] = [];
        for (
          let each: Element | null = element, level = 0;
          each !== null && level < LEVELS;
          each = each.parentElement, level++
        ) {
          const { outlineStyle, outlineWidth, outlineColor, boxShadow, borderColor, backgroundColor } =
            getComputedStyle(each);
          const outline =
            outlineStyle === "none" || outlineWidth === "0px" ? "none" : `${outlineWidth} ${outlineColor}`;
          looks.push(`${outline} ${boxShadow} ${borderColor} ${level === 0 ? backgroundColor : ""}`);
        }
        return looks.join("|");
      };
      const isInSight = (element: Element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        const points = [0.5, 0.1, 0.9].flatMap((x) =>
          [0.5, 0.1, 0.9].map((y) => [left + (right - left) * x, top + (bottom - top) * y]),
        );
        return points.some(([x, y]) => {
          const seen = document.elementFromPoint(x!, y!);
          return (
            seen !== null &&
            (element.contains(seen) || seen.contains(element) || seen.closest("label")?.contains(element) === true)
          );
        });
      };
      const faults: string[] = [];
      for (const control of here.controlsIn(root)) {
        if (!control.isConnected) continue;
        (document.activeElement as HTMLElement | null)?.blur();
        const before = lookOf(control);
        (control as HTMLElement).focus();
        await Promise.resolve();
        if (document.activeElement !== control) continue;
        if (lookOf(control) === before) faults.push(`The focus cannot be seen on ${here.describe(control)}`);
        if (!isInSight(control)) faults.push(`Something covers ${here.describe(control)} while it has the focus`);
      }
      return faults;
    },
    { selector: COVER, isCovered: cover !== "page" },
  );
}

/** Arrows go through a menu. */
export async function menuFaults(page: Page): Promise<string[]> {
  const count = await page.getByRole("menuitem").count();
  const reached = new Set<string>();
  for (let index = 0; index <= count; index++) {
    await page.keyboard.press("ArrowDown");
    reached.add(await page.evaluate(() => document.activeElement?.textContent ?? ""));
  }
  const items = await page.getByRole("menuitem").allTextContents();
  return items.filter((item) => !reached.has(item)).map((item) => `The arrows do not reach ${item}`);
}

/** Closes what covers the page with Escape. Tells where the focus is then, if not where it was before that opened. */
export async function returnFaults(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    const { focusNotes: notes } = globalThis as unknown as NotesWindow;
    notes.before = notes.outside;
  });
  await escape(page);
  // The focus may return a frame after what had it is gone.
  const returned = page.waitForFunction(
    () => {
      const { before } = (globalThis as unknown as NotesWindow).focusNotes;
      const now = document.activeElement;
      // What a key has opened beside its button gives the focus to the button.
      return before === undefined || !before.isConnected || before === now || now?.ariaHasPopup != null;
    },
    null,
    { timeout: RETURN_MS },
  );
  return returned.then(
    () => [],
    () =>
      page.evaluate(() => {
        const { focusNotes: notes, describe } = globalThis as unknown as NotesWindow;
        const now = document.activeElement;
        const place = now === null || now === document.body ? "nothing" : describe(now);
        return [`The focus was on ${describe(notes.before!)}, and is on ${place} afterwards`];
      }),
  );
}
