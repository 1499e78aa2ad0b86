import { z } from "zod";
import { idMaker } from "../lib/id.ts";
import { unreachable } from "../lib/unreachable.ts";
import type { ApiKey } from "../model/key.ts";
import { PER_PAGE_DEFAULT } from "../model/page.ts";
import {
  displayOf,
  newViewSchema,
  screenSchema,
  SHARED_VIEWS_MAX,
  viewPatchSchema,
  viewResponse,
  viewSchema,
  VIEWS_PER_KEY_MAX,
  type SavedView,
} from "../model/view.ts";
import type { ViewRefusal, ViewStore } from "../store/ports/view-store.ts";
import { endpoint, type Endpoint } from "./endpoint.ts";
import { invalid, Problem } from "./problems.ts";
import { pageParameter, perPageParameter } from "./query-parameters.ts";
import { data, listResponse, paginate } from "./response.ts";

// Saved views of the console.

export interface ViewEndpointOptions {
  readonly views: ViewStore;
  readonly now: () => number;
}

const LIMITS = { perKeyMax: VIEWS_PER_KEY_MAX, sharedMax: SHARED_VIEWS_MAX };
/** Attempts to apply a change to a view that others change at the same time. */
const ATTEMPTS_MAX = 5;

const EXAMPLE = {
  id: "view_019a84f2c0d17a3e8b5d4e6f7a8b9c0d",
  screen: "alerts",
  name: "Doors at night",
  search: "status=open&source=platform_access&group=rule",
  columns: ["severity", "title", "last_event_at"],
  density: "compact",
  grouping: "rule",
  shared: false,
  position: 0,
  owner: "ann",
  own: true,
  editable: true,
  created_at: "2026-11-15T08:30:00.000Z",
  updated_at: "2026-11-15T08:30:00.000Z",
};
const { screen, name, search, columns, density, grouping } = EXAMPLE;
const BODY_EXAMPLE = { screen, name, search, columns, density, grouping };

const idParams = z.object({ id: z.string() });
const EDIT_RULES =
  "A key can change its own views; a key with `keys:manage` also those that others share. " +
  "To share a view, or to change a shared one, the key needs `alerts:write` or `keys:manage`.";

export function viewEndpoints({ views, now }: ViewEndpointOptions): Endpoint[] {
  const nextId = idMaker("view_", now);

  /** The view, if the key can see it. Views of others that are not shared do not exist for it. */
  const find = async (id: string, key: ApiKey): Promise<SavedView> => {
    const view = await views.get(id);
    if (!view || !(view.shared || isOwn(view, key))) throw new Problem("not_found", `view ${id} does not exist`);
    return view;
  };
  const findEditable = async (id: string, key: ApiKey): Promise<SavedView> => {
    const view = await find(id, key);
    if (mayEdit(view, key)) return view;
    throw new Problem("forbidden", `view ${id} belongs to ${view.ownerName}; the key lacks the scope keys:manage`);
  };
  const change = async (id: string, key: ApiKey, alter: (view: SavedView) => SavedView): Promise<SavedView> => {
    for (let attempt = 1; ; attempt++) {
      const view = await findEditable(id, key);
      const altered = alter(view);
      if (altered.shared) requireSharing(key);
      const stored = await views.put({ ...altered, updatedAt: now(), revision: view.revision + 1 }, LIMITS);
      if (typeof stored !== "string") return stored;
      if (stored !== "changed" || attempt === ATTEMPTS_MAX) throw refused(stored, id);
    }
  };

  return [
    endpoint({
      method: "GET",
      path: "/v1/views",
      operationId: "listViews",
      tag: "Views",
      summary: "List saved views",
      description:
        "The key's own views first, by screen and position, then the views that others share, by screen and age. Any valid key may call it.",
      scopes: [],
      query: z.strictObject({ screen: screenSchema.optional(), page: pageParameter, per_page: perPageParameter }),
      responses: {
        200: { description: "one page of views", data: z.array(viewSchema), paginated: true, example: [EXAMPLE] },
      },
      handle: async ({ query: { screen, page = 1, per_page = PER_PAGE_DEFAULT }, key }) => {
        const { total, views: shown } = await views.list({ keyId: key.id, screen }, page, per_page);
        return listResponse(
          shown.map((view) => JSON.stringify(viewFor(view, key))),
          paginate(total, page, per_page),
        );
      },
    }),
    endpoint({
      method: "POST",
      path: "/v1/views",
      operationId: "createView",
      tag: "Views",
      summary: "Save a view",
      description:
        "Without `position`, the view comes last among the key's views of the screen. Any valid key may save views that it does not share; " +
        "to share one, it needs `alerts:write` or `keys:manage`. " +
        `A key can have ${VIEWS_PER_KEY_MAX} views, and all keys together ${SHARED_VIEWS_MAX} shared ones; more are refused with 409.`,
      scopes: [],
      body: newViewSchema,
      example: BODY_EXAMPLE,
      responses: { 201: { description: "the view", data: viewSchema, example: EXAMPLE } },
      problems: ["conflict"],
      headers: { 201: ["Location"] },
      handle: async ({ body, key }) => {
        if (body.shared) requireSharing(key);
        const at = now();
        const id = nextId();
        const owned = { id, owner: key.id, ownerName: key.name, createdAt: at, updatedAt: at, revision: 1 };
        const { position = VIEWS_PER_KEY_MAX } = body;
        const stored = await views.add({ ...body, ...displayOf(body), ...owned, position }, LIMITS);
        if (typeof stored === "string") throw refused(stored, id);
        return data(viewFor(stored, key), 201, { Location: `/v1/views/${id}` });
      },
    }),
    endpoint({
      method: "PUT",
      path: "/v1/views/order",
      operationId: "arrangeViews",
      tag: "Views",
      summary: "Arrange the key's views of a screen",
      description:
        "Puts the named views first, in this order. The key's other views of the screen keep their order behind them.",
      scopes: [],
      body: z
        .strictObject({
          screen: screenSchema,
          ids: z
            .array(z.string())
            .min(1)
            .max(VIEWS_PER_KEY_MAX)
            .refine((ids) => new Set(ids).size === ids.length, "must not name a view twice"),
        })
        .meta({ id: "ViewOrder" }),
      example: { screen: "alerts", ids: [EXAMPLE.id] },
      responses: {
        200: {
          description: "the key's views of the screen, in their new order",
          data: z.array(viewSchema),
          example: [EXAMPLE],
        },
      },
      handle: async ({ body, key }) => {
        const isArranged = await views.arrange(key.id, body.screen, body.ids);
        const { views: all } = await views.list({ keyId: key.id, screen: body.screen }, 1, VIEWS_PER_KEY_MAX);
        const own = all.filter((view) => isOwn(view, key));
        if (isArranged) return data(own.map((view) => viewFor(view, key)));
        const known = new Set(own.map(({ id }) => id));
        const faults = body.ids.flatMap((id, i) =>
          known.has(id) ? [] : [{ field: `ids[${i}]`, message: `is not a view of this key for ${body.screen}` }],
        );
        throw invalid(faults);
      },
    }),
    endpoint({
      method: "GET",
      path: "/v1/views/:id",
      operationId: "getView",
      tag: "Views",
      summary: "Get a saved view",
      description: "Any valid key may call it, for its own views and for shared ones.",
      scopes: [],
      params: idParams,
      responses: { 200: { description: "the view", data: viewSchema, example: EXAMPLE } },
      problems: ["not_found"],
      handle: async ({ params, key }) => data(viewFor(await find(params.id, key), key)),
    }),
    endpoint({
      method: "PUT",
      path: "/v1/views/:id",
      operationId: "replaceView",
      tag: "Views",
      summary: "Replace a saved view",
      description: `Omitted fields get their defaults, except \`position\`, which stays. \`screen\` cannot be changed. ${EDIT_RULES}`,
      scopes: [],
      params: idParams,
      body: newViewSchema,
      example: BODY_EXAMPLE,
      responses: { 200: { description: "the view", data: viewSchema, example: EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const replaced = await change(params.id, key, (view) => {
          if (body.screen !== view.screen) {
            throw invalid([{ field: "screen", message: `cannot be changed from ${view.screen}; save a new view` }]);
          }
          return { ...view, ...body, ...displayOf(body), position: body.position ?? view.position };
        });
        return data(viewFor(replaced, key));
      },
    }),
    endpoint({
      method: "PATCH",
      path: "/v1/views/:id",
      operationId: "patchView",
      tag: "Views",
      summary: "Change fields of a saved view",
      description: EDIT_RULES,
      scopes: [],
      params: idParams,
      body: viewPatchSchema,
      example: { name: "Doors at night", position: 0 },
      responses: { 200: { description: "the view", data: viewSchema, example: EXAMPLE } },
      problems: ["not_found", "conflict"],
      handle: async ({ params, body, key }) => {
        const patched = await change(params.id, key, (view) => ({ ...view, ...withoutUndefined(body) }));
        return data(viewFor(patched, key));
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/v1/views/:id",
      operationId: "deleteView",
      tag: "Views",
      summary: "Delete a saved view",
      description: "A key can delete its own views; a key with `keys:manage` also those that others share.",
      scopes: [],
      params: idParams,
      responses: {
        200: {
          description: "the view is deleted",
          data: z.object({ id: z.string(), deleted: z.literal(true) }),
          example: { id: EXAMPLE.id, deleted: true },
        },
      },
      problems: ["not_found"],
      handle: async ({ params: { id }, key }) => {
        await findEditable(id, key);
        if (!(await views.remove(id))) throw new Problem("not_found", `view ${id} does not exist`);
        return data({ id, deleted: true });
      },
    }),
  ];
}

function isOwn({ owner }: SavedView, { id }: ApiKey): boolean {
  return owner === id;
}

function mayEdit(view: SavedView, key: ApiKey): boolean {
  return isOwn(view, key) || key.scopes.includes("keys:manage");
}

function viewFor(view: SavedView, key: ApiKey) {
  return viewResponse(view, { own: isOwn(view, key), editable: mayEdit(view, key) });
}

/** A shared view appears on everybody's screen, so a key that only reads or only sends data cannot share one. */
function requireSharing({ scopes }: ApiKey): void {
  if (scopes.includes("alerts:write") || scopes.includes("keys:manage")) return;
  throw new Problem("forbidden", "the key lacks the scope alerts:write or keys:manage, which a shared view needs");
}

function refused(refusal: ViewRefusal, id: string): Problem {
  switch (refusal) {
    case "key_full":
      return new Problem("conflict", `the key has ${VIEWS_PER_KEY_MAX} views, the maximum; delete one first`);
    case "shared_full":
      return new Problem("conflict", `${SHARED_VIEWS_MAX} views are shared, the maximum; unshare or delete one first`);
    case "changed":
      return new Problem("conflict", `view ${id} was changed in the meantime; try again`);
    default:
      return unreachable(refusal);
  }
}

type Defined<Fields> = { [Name in keyof Fields]: Exclude<Fields[Name], undefined> };

function withoutUndefined<Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<Fields>;
}
