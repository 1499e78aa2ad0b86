import { queryOptions, type QueryClient } from "@tanstack/react-query";
import { answered, api, type Schemas } from "./client.ts";

// Saved views: named searches of a screen, own or shared.

export type StoredView = Schemas["View"];
export type ViewScreen = StoredView["screen"];
export type NewView = Schemas["NewView"];
export type ViewPatch = Schemas["ViewPatch"];

const PAGE_SIZE = 100;
/** The views of a key and all that others share. */
const PAGES_MAX = 11;

export const viewsQuery = (screen: ViewScreen) =>
  queryOptions({
    queryKey: ["views", screen],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const views: StoredView[] = [];
      for (let page = 1; page <= PAGES_MAX; page++) {
        const query = { screen, page, per_page: PAGE_SIZE };
        const { data, pagination } = await answered(api.GET("/v1/views", { params: { query }, signal }));
        views.push(...data);
        if (page * PAGE_SIZE >= pagination.total) break;
      }
      return views;
    },
  });

const refresh = (client: QueryClient) => client.invalidateQueries({ queryKey: ["views"] });

export async function saveView(client: QueryClient, view: NewView): Promise<StoredView> {
  const { data } = await answered(api.POST("/v1/views", { body: view }));
  await refresh(client);
  return data;
}

export async function changeView(client: QueryClient, id: string, patch: ViewPatch): Promise<void> {
  await answered(api.PATCH("/v1/views/{id}", { params: { path: { id } }, body: patch }));
  await refresh(client);
}

export async function deleteView(client: QueryClient, id: string): Promise<void> {
  await answered(api.DELETE("/v1/views/{id}", { params: { path: { id } } }));
  await refresh(client);
}

/** Puts the reader's own views into this order. */
export async function arrangeViews(client: QueryClient, screen: ViewScreen, ids: string[]): Promise<void> {
  await answered(api.PUT("/v1/views/order", { body: { screen, ids } }));
  await refresh(client);
}
