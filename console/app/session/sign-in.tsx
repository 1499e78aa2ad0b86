import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Bell } from "../../components/ui/bell.tsx";
import { Button } from "../../components/ui/button.tsx";
import { CopyButton } from "../../components/ui/copy.tsx";
import { TextField } from "../../components/ui/fields.tsx";
import { ApiError } from "../../data/client.ts";
import { signIn } from "../../data/session.ts";

const COMMAND = "npx tocsin keys create --name me --scopes all --plan enterprise";

export function SignIn({ hasEnded = false }: { hasEnded?: boolean }) {
  const client = useQueryClient();
  const [key, setKey] = useState("");
  const enter = useMutation({ mutationFn: (text: string) => signIn(client, text) });
  return (
    <main className="grid h-full place-items-center p-4">
      <form
        className="w-[420px] max-w-full space-y-5 rounded-2xl border border-line bg-panel p-8 shadow-(--shadow)"
        onSubmit={(event) => {
          event.preventDefault();
          enter.mutate(key.trim());
        }}
      >
        <div className="flex items-center gap-3">
          <Bell className="size-11" />
          <div>
            <h1 className="text-lg font-semibold tracking-tight">Tocsin</h1>
            <p className="text-xs text-ink3">
              {hasEnded ? "Your session has ended. Sign in to go on where you were." : "Sign in to the console"}
            </p>
          </div>
        </div>
        <TextField
          label="API key"
          type="password"
          name="key"
          autoComplete="current-password"
          autoFocus
          required
          placeholder="tsn_…"
          value={key}
          onChange={({ target }) => setKey(target.value)}
          fault={enter.error === null ? undefined : refusal(enter.error)}
          className="mono h-10"
        />
        <Button look="primary" type="submit" disabled={enter.isPending} className="h-10 w-full justify-center">
          {enter.isPending ? "Signing in…" : "Sign in"}
        </Button>
        <div className="space-y-1 border-t border-line pt-4 text-xs text-ink3">
          <p>No key? Make one on the server:</p>
          <p className="flex items-center rounded-md bg-app py-1 pr-1 pl-2.5">
            <code className="mono min-w-0 flex-1 break-words text-ink2">{COMMAND}</code>
            <CopyButton text={COMMAND} label="Copy the command" />
          </p>
        </div>
      </form>
    </main>
  );
}

function refusal(error: Error): string {
  if (!(error instanceof ApiError)) return error.message;
  if (error.status === 401) return "This key does not exist, has expired or was revoked.";
  return error.faults[0]?.message ?? error.message;
}
