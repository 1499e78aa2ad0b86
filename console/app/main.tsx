import { CSPProvider } from "@base-ui/react/csp-provider";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "../styles/base.css";
import { ApiError } from "../data/client.ts";
import { sessionQuery } from "../data/session.ts";
import { listenForKeys } from "./keys.ts";
import { router } from "./router.tsx";

/** A refused key ends the session: the sign-in covers the page. */
function noteRefusal(error: Error): void {
  if (error instanceof ApiError && error.status === 401) client.setQueryData(sessionQuery.queryKey, null);
}

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: noteRefusal }),
  mutationCache: new MutationCache({ onError: noteRefusal }),
  defaultOptions: {
    queries: {
      staleTime: 15_000,
      refetchOnWindowFocus: false,
      // What cannot be asked now is said, not held back in silence; the browser's word on the network is a guess anyway.
      networkMode: "always",
      refetchOnReconnect: true,
      // A refusal stays one; what is out of reach may come back.
      retry: (failures, error) => !(error instanceof ApiError && error.status < 500) && failures < 2,
    },
    mutations: { retry: false, networkMode: "always" },
  },
});

listenForKeys();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
