import { describe, expect, test } from "vitest";
import type { Session } from "../../model/session.ts";
import type { ContractContext } from "./contract.ts";

const hashOf = (byte: number) => new Uint8Array(32).fill(byte);
const sessionOf = (byte: number, more: Partial<Session> = {}): Session => ({
  idHash: hashOf(byte),
  keyId: "key_a",
  secretHash: hashOf(200),
  createdAt: byte,
  lastUsedAt: byte,
  ...more,
});

export function sessionsContract({ store, reopen }: ContractContext): void {
  describe("sessions", () => {
    const roomy = { perKeyMax: 100, max: 100 };
    const add = (session: Session, limits = roomy) => store().sessions.add(session, limits);
    const kept = async (...bytes: number[]) => {
      const found = await Promise.all(bytes.map((byte) => store().sessions.find(hashOf(byte))));
      return bytes.filter((_, i) => found[i] !== undefined);
    };
    const clear = () => store().sessions.removeBefore({ usedAt: 1e6, createdAt: 1e6 });

    test("are found as they were stored, also after a restart, until they are removed", async () => {
      const session = sessionOf(1);
      expect(await store().sessions.find(session.idHash)).toBeUndefined();
      await add(session);
      expect(await store().sessions.find(session.idHash)).toEqual(session);
      await store().sessions.touch(session.idHash, 7);
      await store().sessions.touch(hashOf(99), 7);
      expect(await store().sessions.find(session.idHash)).toEqual({ ...session, lastUsedAt: 7 });
      await reopen();
      expect(await store().sessions.find(session.idHash)).toEqual({ ...session, lastUsedAt: 7 });
      expect(await store().sessions.remove(session.idHash)).toBe(true);
      expect(await store().sessions.find(session.idHash)).toBeUndefined();
      expect(await store().sessions.remove(session.idHash)).toBe(false);
    });

    test("past the limit of a key, its oldest ends, and those of others stay", async () => {
      await add(sessionOf(1, { keyId: "key_b" }));
      for (const byte of [2, 3, 4]) await add(sessionOf(byte), { perKeyMax: 2, max: 100 });
      expect(await kept(1, 2, 3, 4)).toEqual([1, 3, 4]);
      await clear();
    });

    test("past the limit of all, the one used least recently ends, and never the new one", async () => {
      await add(sessionOf(1, { keyId: "key_b", lastUsedAt: 50 }));
      await add(sessionOf(2, { keyId: "key_c" }));
      await add(sessionOf(3), { perKeyMax: 100, max: 2 });
      expect(await kept(1, 2, 3)).toEqual([1, 3]);
      await store().sessions.touch(hashOf(3), 50);
      await add(sessionOf(4, { lastUsedAt: 50 }), { perKeyMax: 1, max: 1 });
      expect(await kept(1, 2, 3, 4)).toEqual([4]);
      await clear();
    });

    test("that are too old or unused for too long are removed together", async () => {
      await add(sessionOf(1, { createdAt: 10, lastUsedAt: 30 }));
      await add(sessionOf(2, { createdAt: 20, lastUsedAt: 29 }));
      await add(sessionOf(3, { createdAt: 20, lastUsedAt: 30 }));
      expect(await store().sessions.removeBefore({ usedAt: 30, createdAt: 11 })).toBe(2);
      expect(await kept(1, 2, 3)).toEqual([3]);
      await clear();
    });

    test("are removed with their key", async () => {
      await add(sessionOf(1, { keyId: "key_b" }));
      await add(sessionOf(2));
      expect(await kept(1, 2)).toEqual([1, 2]);
      await store().keys.remove(["key_a"]);
      expect(await kept(1, 2)).toEqual([1]);
      await clear();
    });
  });
}
