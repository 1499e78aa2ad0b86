import { describe, expect, test } from "vitest";
import type { SavedView } from "../../model/view.ts";
import type { ContractContext } from "./contract.ts";

const viewOf = (id: string, more: Partial<SavedView> = {}): SavedView => ({
  id: `view_${id}`,
  owner: "key_a",
  ownerName: "ann",
  screen: "alerts",
  name: `View ${id}`,
  search: "status=open&severity=critical,high",
  columns: ["title", "severity"],
  density: "compact",
  grouping: "rule",
  shared: false,
  position: 99,
  createdAt: 1,
  updatedAt: 2,
  revision: 1,
  ...more,
});

export function viewsContract({ store, reopen }: ContractContext): void {
  describe("views", () => {
    const roomy = { perKeyMax: 100, sharedMax: 100 };
    const views = () => store().views;
    const add = (id: string, more?: Partial<SavedView>) => views().add(viewOf(id, more), roomy);
    const listed = async (keyId: string, screen?: SavedView["screen"], page = 1, size = 100) =>
      (await views().list({ keyId, screen }, page, size)).views.map(({ id }) => id.slice(5)).join("");
    const positions = async () =>
      (await views().list({ keyId: "key_a" }, 1, 100)).views.map(({ position }) => position);
    const clear = async () => {
      for (const keyId of ["key_a", "key_b"]) {
        for (const { id } of (await views().list({ keyId }, 1, 100)).views) await views().remove(id);
      }
    };

    test("are read back unchanged, also after a restart, until they are removed", async () => {
      expect(await views().get("view_a")).toBeUndefined();
      const stored = { ...viewOf("a"), position: 0 };
      expect(await add("a")).toEqual(stored);
      expect(await views().get("view_a")).toEqual(stored);
      const edited = { ...stored, name: "Ännu en", columns: null, density: null, grouping: null, revision: 2 };
      expect(await views().put(edited, roomy)).toEqual(edited);
      await reopen();
      expect(await views().list({ keyId: "key_a" }, 1, 10)).toEqual({ total: 1, views: [edited] });
      expect(await views().remove("view_a")).toBe(true);
      expect(await views().remove("view_a")).toBe(false);
      expect(await views().get("view_a")).toBeUndefined();
    });

    test("a list has the key's own by screen and position, then those that others share", async () => {
      for (const id of "ab") await add(id);
      await add("c", { screen: "events" });
      await add("d", { position: 0 });
      await add("e", { owner: "key_b", shared: true });
      await add("f", { owner: "key_b" });
      await add("g", { owner: "key_b", shared: true, position: 0 });
      expect(await listed("key_a")).toBe("dabceg");
      expect(await listed("key_b")).toBe("gef");
      expect(await listed("key_c")).toBe("eg");
      expect(await listed("key_a", "events")).toBe("c");
      expect(await listed("key_a", "alerts")).toBe("dabeg");
      expect([await listed("key_a", undefined, 1, 4), await listed("key_a", undefined, 2, 4)]).toEqual(["dabc", "eg"]);
      expect(await listed("key_a", undefined, 3, 4)).toBe("");
      expect((await views().list({ keyId: "key_a" }, 3, 4)).total).toBe(6);
      await clear();
    });

    test("whatever moves one shifts the others of the same owner and screen", async () => {
      for (const id of "abcd") await add(id);
      await add("x", { screen: "events" });
      const c = (await views().get("view_c"))!;
      await views().put({ ...c, position: 0, revision: 2 }, roomy);
      expect(await listed("key_a", "alerts")).toBe("cabd");
      await views().put({ ...c, position: 50, revision: 3 }, roomy);
      expect(await listed("key_a", "alerts")).toBe("abdc");
      expect(await views().arrange("key_a", "alerts", ["view_d", "view_a"])).toBe(true);
      expect(await listed("key_a", "alerts")).toBe("dabc");
      await views().remove("view_a");
      expect(await listed("key_a", "alerts")).toBe("dbc");
      expect(await positions()).toEqual([0, 1, 2, 0]);
      expect((await views().get("view_d"))!.revision, "a move by others is no edit").toBe(1);
      await clear();
    });

    test("an order with a view of somebody else, of another screen or of nobody changes nothing", async () => {
      for (const id of "ab") await add(id);
      await add("c", { screen: "events" });
      await add("d", { owner: "key_b", shared: true });
      for (const wrong of ["view_c", "view_d", "view_none"]) {
        expect(await views().arrange("key_a", "alerts", ["view_b", wrong])).toBe(false);
      }
      expect(await listed("key_a", "alerts")).toBe("abd");
      await clear();
    });

    test("limits hold for the views of a key and for all that are shared", async () => {
      const limits = { perKeyMax: 2, sharedMax: 1 };
      const outcomes = await Promise.all(["a", "b", "c"].map((id) => views().add(viewOf(id), limits)));
      expect(outcomes.filter((outcome) => outcome === "key_full")).toHaveLength(1);
      const [a, b] = outcomes.filter((outcome) => typeof outcome === "object");
      expect(await views().put({ ...a!, shared: true, revision: 2 }, limits)).toMatchObject({ shared: true });
      expect(await views().put({ ...a!, shared: true, name: "again", revision: 3 }, limits)).toMatchObject({
        name: "again",
      });
      expect(await views().put({ ...b!, shared: true, revision: 2 }, limits)).toBe("shared_full");
      expect(await views().add(viewOf("d", { owner: "key_b", shared: true }), limits)).toBe("shared_full");
      expect(await views().add(viewOf("d", { owner: "key_b" }), limits)).toMatchObject({ position: 0 });
      await clear();
    });

    test("one of two concurrent edits is refused, and so is one of a removed view", async () => {
      const stored = (await add("a")) as SavedView;
      const edits = await Promise.all(["x", "y"].map((name) => views().put({ ...stored, name, revision: 2 }, roomy)));
      expect(
        edits.filter((edit) => edit === "changed"),
        "whichever came second",
      ).toHaveLength(1);
      expect(edits).toContainEqual(await views().get(stored.id));
      await views().remove(stored.id);
      expect(await views().put({ ...stored, revision: 3 }, roomy)).toBe("changed");
      expect(await views().get(stored.id)).toBeUndefined();
    });

    test("those of a removed owner go, except the shared ones", async () => {
      for (const id of "ab") await add(id);
      await add("c", { shared: true });
      await add("d", { owner: "key_b" });
      expect(await views().removeUnshared(["key_a", "key_none"])).toBe(2);
      expect(await listed("key_a")).toBe("c");
      expect(await positions()).toEqual([0]);
      expect(await listed("key_b")).toBe("dc");
      await clear();
    });
  });
}
