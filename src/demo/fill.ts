import type { Rule } from "../model/rule.ts";
import type { EventDraft, Severity } from "../model/event.ts";
import type { StoredEvent } from "../store/ports/event-engine.ts";
import type { Store } from "../store/ports/store.ts";
import { demoEvents } from "./demo.ts";
import { demoFlows, type DemoFlowsOptions } from "./demo-flows.ts";
import { randomFrom } from "./random.ts";
import { openDemoReplay } from "./replay.ts";
import { administrators, makeSite } from "./site.ts";

// Fills a store with the demo: events, the alerts that they raised at the time, and flows.

const GROUP_EVENTS = 500;

/** The time of a store that is being filled. Arrival times are part of event ids, so each event arrives when it happened. */
export class DemoClock {
  #nowMs: number;
  constructor(startMs: number) {
    this.#nowMs = startMs;
  }
  readonly now = (): number => this.#nowMs;
  set(ms: number): void {
    this.#nowMs = ms;
  }
}

export interface DemoOptions {
  /** Opened with the time of `clock`. */
  readonly store: Store;
  readonly clock: DemoClock;
  readonly rules: readonly Rule[];
  readonly platform: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  readonly events: number;
  /** About how many, from `flowsFrom` on. */
  readonly flows: number;
  readonly flowsFrom: number;
  readonly analyseFrom: Severity | "off";
  readonly onProgress?: (events: number) => void;
}

export interface DemoCounts {
  readonly events: number;
  readonly alerts: number;
  readonly flows: number;
}

/** The same options give the same demo, except for the random part of ids. */
export async function fillDemo(options: DemoOptions): Promise<DemoCounts> {
  const { store, clock, rules, platform, seed, from, to, analyseFrom, onProgress = () => undefined } = options;
  const team = administrators(makeSite(randomFrom(seed))).map(({ user }) => `${user}@example.com`);
  const replay = await openDemoReplay({ store, rules, seed, to, team, analyseFrom });
  let done = 0;
  let replaying: Promise<void> = Promise.resolve();
  for (const group of inGroups(demoEvents({ seed, from, to, count: options.events, platform }))) {
    // The store commits a group while the rules run over the one before.
    const [stored] = await Promise.all([appendAt(store, clock, group), replaying]);
    replaying = replay.process(stored);
    done += group.length;
    onProgress(done);
  }
  await replaying;
  clock.set(to);
  await replay.finish();
  const question = { seed, from: options.flowsFrom, to, eventsFrom: from, rows: options.flows };
  const flows = options.flows > 0 ? await appendFlows(store, question) : 0;
  return { events: done, alerts: replay.raised, flows };
}

/** The store commits the group at once, although each event has its own time of arrival. */
async function appendAt(store: Store, clock: DemoClock, group: readonly EventDraft[]): Promise<StoredEvent[]> {
  const appended = group.map((draft) => {
    clock.set(draft.timestampMs);
    return store.events.append([{ draft }]);
  });
  return (await Promise.all(appended)).flat();
}

/** Appends one day at a time, with ids unique to this run: a second run adds the flows again. */
async function appendFlows(store: Store, question: DemoFlowsOptions): Promise<number> {
  const run = `demo-${question.to}-${process.pid}`;
  let rows = 0;
  let day = 0;
  for (const batch of demoFlows(question)) {
    await store.flows.append(batch, `${run}-${day++}`);
    rows += batch.count;
  }
  return rows;
}

function* inGroups(drafts: Iterable<EventDraft>): Generator<EventDraft[]> {
  let group: EventDraft[] = [];
  for (const draft of drafts) {
    group.push(draft);
    if (group.length < GROUP_EVENTS) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
