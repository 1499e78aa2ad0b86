import { queryOptions, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { answered, api, ApiError, type Schemas } from "./client.ts";

// Who is signed in. The browser keeps an HttpOnly cookie; the key itself is sent once and kept nowhere.

export type Session = Schemas["Session"];
export type Scope = Session["key"]["scopes"][number];

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async ({ signal }): Promise<Session | null> => {
    try {
      return (await answered(api.GET("/v1/session", { signal }))).data;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
});

export async function signIn(client: QueryClient, key: string): Promise<void> {
  const { data } = await answered(api.POST("/v1/session", { body: { key } }));
  client.setQueryData(sessionQuery.queryKey, data);
  // What was refused while nobody was signed in is asked again; what is shown stays.
  await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
}

/** Leaves the page, and with it everything that it showed. */
export async function signOut(): Promise<void> {
  await answered(api.DELETE("/v1/session"));
  location.assign("/");
}

/** The latest session; it stays while the sign-in covers a page whose session has ended. */
export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error("nobody has signed in");
  return session;
}

export function useMay(scope: Scope): boolean {
  return useSession().key.scopes.includes(scope);
}
