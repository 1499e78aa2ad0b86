import type { Logger } from "pino";
import {
  createSession,
  hashSessionId,
  SESSION_AGE_MS_MAX,
  SESSION_IDLE_MS,
  SESSION_TOUCH_MS,
  SESSIONS_MAX,
  SESSIONS_PER_KEY_MAX,
  type Session,
} from "../model/session.ts";
import type { SessionStore } from "../store/ports/session-store.ts";

const SWEEP_MS = 3_600_000;
const LIMITS = { perKeyMax: SESSIONS_PER_KEY_MAX, max: SESSIONS_MAX };

export interface SessionsOptions {
  readonly store: SessionStore;
  readonly log: Logger;
  readonly now: () => number;
}

/** Starts and ends sessions, notes their use and removes expired ones. */
export class Sessions {
  readonly #store: SessionStore;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #sweeper: NodeJS.Timeout;
  /** After a failed write, uses are not saved until then, so that not every request attempts it. */
  #saveAgainAt = 0;

  constructor({ store, log, now }: SessionsOptions) {
    this.#store = store;
    this.#log = log;
    this.#now = now;
    this.#sweeper = setInterval(() => void this.sweep(), SWEEP_MS).unref();
  }

  /** Starts a session of the key with this id and secret, which the caller has checked. */
  async start(key: { id: string; secret: string }): Promise<{ session: Session; id: string }> {
    const started = createSession(key, this.#now());
    await this.#store.add(started.session, LIMITS);
    return started;
  }

  /** The session as it is stored now. */
  find({ idHash }: Session): Promise<Session | undefined> {
    return this.#store.find(idHash);
  }

  /** True if it had not ended before. */
  end({ idHash }: Session): Promise<boolean> {
    return this.#store.remove(idHash);
  }

  /** Ends the session with this id, if there is one. */
  async endById(id: string): Promise<void> {
    const idHash = hashSessionId(id);
    if (idHash) await this.#store.remove(idHash);
  }

  /** A use that cannot be saved does not fail its request; the session may end too early. */
  async noteUse({ idHash, lastUsedAt }: Session): Promise<void> {
    const now = this.#now();
    if (now - lastUsedAt < SESSION_TOUCH_MS || now < this.#saveAgainAt) return;
    try {
      await this.#store.touch(idHash, now);
    } catch (error) {
      this.#saveAgainAt = now + SESSION_TOUCH_MS;
      this.#log.warn({ err: error }, "use of a session not saved; tried again in a minute");
    }
  }

  /** Removes expired sessions. Those of an ended key are refused already, and expire like the others. */
  async sweep(): Promise<void> {
    const now = this.#now();
    try {
      // An end is exclusive: at its last millisecond a session is still valid.
      await this.#store.removeBefore({ usedAt: now - SESSION_IDLE_MS + 1, createdAt: now - SESSION_AGE_MS_MAX + 1 });
    } catch (error) {
      this.#log.warn({ err: error }, "expired sessions not removed; tried again in an hour");
    }
  }

  close(): void {
    clearInterval(this.#sweeper);
  }
}
