import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ago, dateTime } from "../../components/time/format.ts";
import { useNow } from "../../components/time/use-range.ts";
import { Button } from "../../components/ui/button.tsx";
import { Panel } from "../../components/ui/heading.tsx";
import { Menu } from "../../components/ui/menu.tsx";
import { IconButton } from "../../components/ui/button.tsx";
import { Empty, Failure, Skeleton } from "../../components/ui/states.tsx";
import { showToast } from "../../components/ui/toasts.tsx";
import { keysQuery, revokeKey, rotateKey, type ApiKey } from "../../data/keys.ts";
import { useMay, useSession } from "../../data/session.ts";
import { NewKeySheet, SCOPES_IN_ALL } from "./new-key-sheet.tsx";
import { RevokeSheet } from "./revoke-sheet.tsx";
import { SecretSheet } from "./secret-sheet.tsx";

const GRACE_SECONDS = 3600;

export function Keys() {
  const mayManage = useMay("keys:manage");
  if (!mayManage) {
    return (
      <Empty title="Your key may not manage keys">
        It needs the scope <code className="mono">keys:manage</code>. Ask who runs this service.
      </Empty>
    );
  }
  return <KeyList />;
}

type Open = { kind: "new" } | { kind: "secret"; secret: string; name: string } | { kind: "revoke"; key: ApiKey };

function KeyList() {
  const client = useQueryClient();
  const keys = useQuery(keysQuery);
  const [open, setOpen] = useState<Open>();
  const rotate = useMutation({
    mutationFn: (key: ApiKey) => rotateKey(key.id, GRACE_SECONDS),
    onSuccess: (secret, key) => {
      setOpen({ kind: "secret", secret, name: key.name });
      void client.invalidateQueries(keysQuery);
    },
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  const revoke = useMutation({
    mutationFn: (key: ApiKey) => revokeKey(key.id),
    onSuccess: (_, key) => {
      showToast(`Revoked the key ${key.name}.`);
      setOpen(undefined);
      void client.invalidateQueries(keysQuery);
    },
    onError: (error) => showToast(error.message, { isProblem: true }),
  });
  if (keys.error !== null && keys.data === undefined) {
    return <Failure error={keys.error} onRetry={() => void keys.refetch()} />;
  }
  return (
    <>
      <div className="flex items-center gap-4">
        <p className="text-sm text-ink2">People and programs use the service with a key. Its secret is shown once.</p>
        <Button look="primary" icon="plus" className="ml-auto" onClick={() => setOpen({ kind: "new" })}>
          New key
        </Button>
      </div>
      {keys.data === undefined ? (
        <Skeleton className="h-64" />
      ) : (
        <Panel isFlush>
          <KeyTable
            keys={keys.data}
            onRotate={(key) => rotate.mutate(key)}
            onRevoke={(key) => setOpen({ kind: "revoke", key })}
          />
        </Panel>
      )}
      {open?.kind === "new" && (
        <NewKeySheet
          onClose={() => setOpen(undefined)}
          onMade={(secret, name) => {
            setOpen({ kind: "secret", secret, name });
            void client.invalidateQueries(keysQuery);
          }}
        />
      )}
      {open?.kind === "secret" && (
        <SecretSheet name={open.name} secret={open.secret} onClose={() => setOpen(undefined)} />
      )}
      {open?.kind === "revoke" && (
        <RevokeSheet
          name={open.key.name}
          isPending={revoke.isPending}
          onRevoke={() => revoke.mutate(open.key)}
          onClose={() => setOpen(undefined)}
        />
      )}
    </>
  );
}

interface KeyTableProps {
  readonly keys: readonly ApiKey[];
  readonly onRotate: (key: ApiKey) => void;
  readonly onRevoke: (key: ApiKey) => void;
}

function KeyTable({ keys, onRotate, onRevoke }: KeyTableProps) {
  const nowMs = useNow();
  const { key: own } = useSession();
  const sorted = keys.toSorted((a, b) => Number(a.revoked_at !== null) - Number(b.revoked_at !== null));
  return (
    <div className="relative overflow-x-auto">
      <table className="w-full text-sm">
        <thead className="text-left text-2xs text-ink3">
          <tr className="border-b border-line [&>th]:px-4 [&>th]:py-2 [&>th]:font-medium">
            <th>Name</th>
            <th>Scopes</th>
            <th>Plan</th>
            <th>Last used</th>
            <th>Expires</th>
            <th>
              <span className="sr-only">What to do</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((key) => {
            const isRevoked = key.revoked_at !== null;
            return (
              <tr key={key.id} className="border-b border-line last:border-0 [&>td]:px-4 [&>td]:py-2">
                <td className={`font-medium whitespace-nowrap ${isRevoked ? "text-ink3 line-through" : ""}`}>
                  {key.name}
                  {key.id === own.id && <span className="ml-2 text-2xs font-normal text-ink3">you</span>}
                  {isRevoked && <span className="sr-only"> (revoked)</span>}
                </td>
                <td className="mono max-w-72 text-2xs text-ink2">
                  {key.scopes.length === SCOPES_IN_ALL ? "all scopes" : key.scopes.join(", ")}
                </td>
                <td className="text-ink2">{key.plan}</td>
                <td className="whitespace-nowrap text-ink2">
                  {key.last_used_at === null ? "never" : ago(key.last_used_at, nowMs)}
                </td>
                <td className="whitespace-nowrap text-ink2">
                  {isRevoked
                    ? `revoked ${ago(key.revoked_at!, nowMs)}`
                    : key.expires_at === null
                      ? "never"
                      : dateTime(key.expires_at)}
                </td>
                <td className="text-right">
                  {!isRevoked && (
                    <Menu
                      trigger={<IconButton icon="ellipsis" label={`What to do with the key ${key.name}`} />}
                      items={[
                        {
                          label: "New secret; the old one works for an hour",
                          icon: "refresh-cw",
                          onChoose: () => onRotate(key),
                        },
                        { label: "Revoke", icon: "trash-2", onChoose: () => onRevoke(key) },
                      ]}
                    />
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
