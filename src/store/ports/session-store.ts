import type { Session } from "../../model/session.ts";

export interface SessionLimits {
  readonly perKeyMax: number;
  readonly max: number;
}

/** Sessions end with their key: removing a key removes them too. */
export interface SessionStore {
  /**
   * Cheap enough for every request. Never older than the last change of this process, and at most a second older than that of
   * another.
   */
  find(idHash: Uint8Array): Promise<Session | undefined>;
  /**
   * Adds a session. In the same transaction it removes what exceeds the limits: of the key, the sessions created first; of
   * all, those that were used least recently.
   */
  add(session: Session, limits: SessionLimits): Promise<void>;
  /** Notes a use. A use that was noted just before a power failure may be lost. Unknown sessions are ignored. */
  touch(idHash: Uint8Array, at: number): Promise<void>;
  /** True if there was such a session. */
  remove(idHash: Uint8Array): Promise<boolean>;
  /** Removes sessions that were last used, or created, before these times. Returns their number. */
  removeBefore(times: { readonly usedAt: number; readonly createdAt: number }): Promise<number>;
}
