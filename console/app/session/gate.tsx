import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";
import { Failure } from "../../components/ui/states.tsx";
import { SessionContext, sessionQuery } from "../../data/session.ts";
import { startStream } from "../../data/stream.ts";
import { SignIn } from "./sign-in.tsx";

/** Shows the page to who is signed in. When a session ends, the sign-in covers the page, whose state stays. */
export function SessionGate({ children }: { children: ReactNode }) {
  const session = useQuery(sessionQuery);
  const [latest, setLatest] = useState(session.data ?? null);
  if (session.data && session.data !== latest) setLatest(session.data);
  useEffect(() => {
    if (session.data?.key.scopes.includes("alerts:read")) startStream();
  }, [session.data]);

  if (session.isPending) return null;
  if (session.isError && latest === null) {
    return <Failure error={session.error} onRetry={() => void session.refetch()} />;
  }
  if (latest === null) return <SignIn />;
  const hasEnded = !session.data;
  return (
    <SessionContext value={latest}>
      <div inert={hasEnded} className="h-full">
        {children}
      </div>
      {hasEnded && (
        <div className="fixed inset-0 z-50 bg-app/80" data-covers-page>
          <SignIn hasEnded />
        </div>
      )}
    </SessionContext>
  );
}
