import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Button } from "../../../components/ui/button.tsx";
import { Sheet } from "../../../components/ui/sheet.tsx";
import { showToast } from "../../../components/ui/toasts.tsx";
import { ApiError } from "../../../data/client.ts";
import { deleteList, refreshLists, type WatchListDetail } from "../../../data/lists.ts";
import { count } from "../../../text/numbers.ts";

interface DeleteListSheetProps {
  readonly list: WatchListDetail;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteListSheet({ list, onClose, onDeleted }: DeleteListSheetProps) {
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: (force: boolean) => deleteList(list.name, force),
    onSuccess: () => {
      showToast(`Deleted the list ${list.name}.`);
      onDeleted();
      void refreshLists(client);
    },
  });
  /** Refused because of the rules that use it. */
  const refusal = remove.error instanceof ApiError && remove.error.status === 409 ? remove.error : undefined;
  return (
    <Sheet
      open
      onClose={onClose}
      title="Delete this list?"
      footer={
        <>
          <Button className="ml-auto" onClick={onClose}>
            Keep it
          </Button>
          <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate(refusal !== undefined)}>
            {refusal !== undefined ? "Delete it all the same" : "Delete"}
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">
        <code className="mono text-ink">{list.name}</code> with its {count(list.entries, "entry", "entries")} is lost.
        Events that are stored keep its name.
      </p>
      {remove.error !== null && (
        <div role="alert" className="mt-3 space-y-1 text-sm">
          {refusal !== undefined ? (
            <>
              {refusal.faults.map(({ message }) => (
                <p key={message}>It {message}.</p>
              ))}
              <p className="text-ink2">Without the list, that condition never holds.</p>
            </>
          ) : (
            <p className="text-critical">{remove.error.message}</p>
          )}
        </div>
      )}
    </Sheet>
  );
}
