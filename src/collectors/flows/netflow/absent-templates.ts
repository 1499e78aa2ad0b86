/** Absent templates that one observation domain remembers. */
const ABSENT_TEMPLATES_MAX = 32;

export interface AbsentTemplate {
  /** Refused, evicted, expired or withdrawn; undefined if the exporter has never described the template. */
  reason: string | undefined;
  /** Times of the first and the last data for the template; 0 if there was none. */
  sinceMs: number;
  lastMs: number;
  droppedSets: number;
  droppedBytes: number;
}

/** Templates that an observation domain does not have, by id: data needs them, or they were refused or removed. */
export class AbsentTemplates {
  readonly #templates = new Map<number, AbsentTemplate>();

  get size(): number {
    return this.#templates.size;
  }

  entries(): Iterable<[number, AbsentTemplate]> {
    return this.#templates;
  }

  /** Records that data arrived for a template that is not there. */
  noteMissing(templateId: number, nowMs: number): void {
    const absent = this.#findOrAdd(templateId);
    if (absent.lastMs === 0) absent.sinceMs = nowMs;
    absent.lastMs = nowMs;
  }

  setReason(templateId: number, reason: string): void {
    this.#findOrAdd(templateId).reason = reason;
  }

  /** Records that data for an absent template was dropped. */
  noteDropped(templateId: number, bytes: number): void {
    const absent = this.#findOrAdd(templateId);
    absent.droppedSets++;
    absent.droppedBytes += bytes;
  }

  /** Removes and returns the entry of a template that is available now. */
  take(templateId: number): AbsentTemplate | undefined {
    const absent = this.#templates.get(templateId);
    this.#templates.delete(templateId);
    return absent;
  }

  #findOrAdd(templateId: number): AbsentTemplate {
    const known = this.#templates.get(templateId);
    if (known) return known;
    if (this.#templates.size >= ABSENT_TEMPLATES_MAX) {
      // Templates that no data needs go first.
      const unneeded = this.#templates.entries().find(([, { lastMs }]) => lastMs === 0);
      this.#templates.delete(unneeded?.[0] ?? this.#templates.keys().next().value!);
    }
    const absent = { reason: undefined, sinceMs: 0, lastMs: 0, droppedSets: 0, droppedBytes: 0 };
    this.#templates.set(templateId, absent);
    return absent;
  }
}
