import { useEffect, useRef } from "react";
import { getPreferences } from "../data/preferences.ts";

// Every key of the console, in one table: it makes the handlers, the hints beside buttons and the sheet behind `?`.

export interface KeyBinding {
  /** As `KeyboardEvent.key`; two keys pressed one after the other are separated by a space. */
  readonly keys: readonly string[];
  readonly does: string;
}

export const KEYS = {
  everywhere: {
    palette: { keys: ["Control+k", "Meta+k"], does: "search, or go to a screen, person, door or address" },
    sheet: { keys: ["?"], does: "show all keys" },
    filter: { keys: ["/"], does: "filter" },
    time: { keys: ["T"], does: "choose the time" },
    home: { keys: ["g h"], does: "go to Home" },
    alerts: { keys: ["g a"], does: "go to Alerts" },
    axis: { keys: ["g x"], does: "go to the time axis" },
    events: { keys: ["g e"], does: "go to Events" },
    flows: { keys: ["g f"], does: "go to Flows" },
    rules: { keys: ["g r"], does: "go to Rules" },
    sources: { keys: ["g s"], does: "go to Sources" },
    letIn: { keys: ["."], does: "show what is new" },
    back: { keys: ["Escape"], does: "back, or close" },
  },
  list: {
    next: { keys: ["j", "ArrowDown"], does: "next row" },
    previous: { keys: ["k", "ArrowUp"], does: "previous row" },
    first: { keys: ["Home"], does: "first row" },
    last: { keys: ["End"], does: "last row" },
    extendDown: { keys: ["J", "Shift+ArrowDown"], does: "select the next row too" },
    extendUp: { keys: ["K", "Shift+ArrowUp"], does: "select the previous row too" },
    openGroup: { keys: ["o"], does: "open or close the group" },
    select: { keys: ["x"], does: "select the row" },
    selectAll: { keys: ["*"], does: "select all that match" },
    open: { keys: ["Enter"], does: "open" },
  },
  alert: {
    acknowledge: { keys: ["a"], does: "acknowledge, and assign to me" },
    resolve: { keys: ["r"], does: "resolve, then 1 to 4 for how" },
    undo: { keys: ["u"], does: "undo" },
    exception: { keys: ["e"], does: "make an exception" },
    comment: { keys: ["c"], does: "comment" },
    assign: { keys: ["i"], does: "assign" },
    onAxis: { keys: ["t"], does: "show on the time axis" },
    copyLink: { keys: ["y"], does: "copy a link" },
  },
  resolving: {
    first: { keys: ["1"], does: "a real attack" },
    second: { keys: ["2"], does: "a false positive" },
    third: { keys: ["3"], does: "harmless" },
    fourth: { keys: ["4"], does: "a duplicate" },
  },
  rules: {
    create: { keys: ["n"], does: "new rule" },
    edit: { keys: ["e"], does: "edit the rule, or a copy of a built-in one" },
    toggle: { keys: ["s"], does: "switch the rule on or off" },
    simulate: { keys: ["t"], does: "try the rule on the last 7 days" },
    test: { keys: ["r"], does: "run the tests of the rule" },
  },
  axis: {
    earlier: { keys: ["ArrowLeft"], does: "earlier" },
    later: { keys: ["ArrowRight"], does: "later" },
    zoomIn: { keys: ["+", "="], does: "zoom in" },
    zoomOut: { keys: ["-"], does: "zoom out" },
    fit: { keys: ["0"], does: "fit" },
    nextAlert: { keys: ["n"], does: "next alert" },
    previousAlert: { keys: ["p"], does: "previous alert" },
    follow: { keys: ["l"], does: "follow live" },
  },
  events: {
    expand: { keys: [" "], does: "open or close the event" },
    filterFor: { keys: ["f"], does: "filter for this value" },
    filterOut: { keys: ["F"], does: "filter this value out" },
    tail: { keys: ["l"], does: "live tail" },
  },
} as const satisfies Record<string, Record<string, KeyBinding>>;

export type KeyScope = keyof typeof KEYS;
export type KeyHandlers<Scope extends KeyScope> = Partial<Record<keyof (typeof KEYS)[Scope], () => void>>;

const KEY_NAMES: Readonly<Record<string, string>> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  Escape: "Esc",
  " ": "Space",
};

/** How a key is written in a hint: letters as on the keyboard, so a capital needs Shift. */
export function keyLabel(keys: string): string {
  if (keys in KEY_NAMES) return KEY_NAMES[keys]!;
  return keys
    .replace("Control+", "Ctrl ")
    .replace(/Shift\+(\w+)/, (_, key: string) => `⇧ ${KEY_NAMES[key] ?? key}`)
    .split(" ")
    .map((key) => (/^[A-Z]$/.test(key) ? `⇧ ${key}` : key.length === 1 ? key.toUpperCase() : key))
    .join(" ");
}

const SECOND_KEY_MS = 1200;

/** Where the key was pressed; the target of an event from a shadow root is only its host. */
function isTyping(event: KeyboardEvent): boolean {
  const target = event.composedPath()[0];
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) &&
    !(target instanceof HTMLInputElement && ["checkbox", "radio", "button"].includes(target.type))
  );
}

/** Enter and Space already mean something on what has the focus. */
function isPressing(event: KeyboardEvent): boolean {
  const target = event.target instanceof Element ? event.target : null;
  return (
    (event.key === "Enter" || event.key === " ") && target?.closest("button, a[href], summary, [role=option]") != null
  );
}

function pressed(event: KeyboardEvent): string {
  if (event.ctrlKey) return `Control+${event.key.toLowerCase()}`;
  if (event.metaKey) return `Meta+${event.key.toLowerCase()}`;
  if (event.shiftKey && event.key.startsWith("Arrow")) return `Shift+${event.key}`;
  return event.key;
}

interface Listener {
  readonly scope: KeyScope;
  /** The keys of a sheet, which covers the page: the page's own keys rest meanwhile. */
  readonly inSheet: boolean;
  readonly handlers: () => Record<string, (() => void) | undefined>;
}

/** The latest first, but the keys of every screen last: a part's own meaning of a key wins. */
const listeners: Listener[] = [];
const inOrder = () => listeners.toSorted((a, b) => Number(a.scope === "everywhere") - Number(b.scope === "everywhere"));
let firstKey: { key: string; atMs: number } | undefined;

function handlerOf(keys: string): (() => void) | undefined {
  const isCovered = document.querySelector("[data-covers-page]") !== null;
  const isChord = /^(Control|Meta)\+/.test(keys);
  for (const { scope, inSheet, handlers } of inOrder()) {
    if (isCovered && !inSheet && !isChord) continue;
    const bindings: Record<string, KeyBinding> = KEYS[scope];
    const current = handlers();
    for (const [name, binding] of Object.entries(bindings)) {
      if (current[name] !== undefined && binding.keys.includes(keys)) return current[name];
    }
  }
  return undefined;
}

const isFirstOfTwo = (key: string) =>
  Object.values(KEYS).some((bindings) =>
    Object.values(bindings).some((binding: KeyBinding) => binding.keys.some((keys) => keys.startsWith(`${key} `))),
  );

/** Called once, at the start. */
export function listenForKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing || isPressing(event)) return;
    const key = pressed(event);
    const isChord = /^(Control|Meta)\+/.test(key);
    // Only characters can be typed, or said, by mistake: arrows, Enter and Escape work without them.
    const isCharacter = event.key.length === 1 && !isChord;
    const mayAct = isChord || (!isTyping(event) && (getPreferences().shortcuts === "on" || !isCharacter));
    if (!mayAct) return;
    const isSecond = firstKey !== undefined && event.timeStamp - firstKey.atMs < SECOND_KEY_MS;
    const keys = isSecond ? `${firstKey!.key} ${key}` : key;
    firstKey = isFirstOfTwo(key) && !isSecond ? { key, atMs: event.timeStamp } : undefined;
    const handler = handlerOf(keys);
    if (handler === undefined) return;
    event.preventDefault();
    handler();
  });
}

interface KeyOptions {
  readonly enabled?: boolean;
  readonly inSheet?: boolean;
}

/** Handles the keys of a scope while the component is shown. */
export function useKeys<Scope extends KeyScope>(
  scope: Scope,
  handlers: KeyHandlers<Scope>,
  { enabled = true, inSheet = false }: KeyOptions = {},
): void {
  const current = useRef(handlers);
  useEffect(() => {
    current.current = handlers;
  });
  useEffect(() => {
    if (!enabled) return;
    const listener: Listener = { scope, inSheet, handlers: () => current.current as Record<string, () => void> };
    listeners.unshift(listener);
    return () => {
      listeners.splice(listeners.indexOf(listener), 1);
    };
  }, [scope, enabled, inSheet]);
}
