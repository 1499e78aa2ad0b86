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
  const isUsed = remove.error instanceof ApiError && remove.error.status === 409;
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
          <Button look="danger" disabled={remove.isPending} onClick={() => remove.mutate(isUsed)}>
            {isUsed ? "Delete it all the same" : "Delete"}
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">
        <code className="mono text-ink">{list.name}</code> with its {count(list.entries, "entry", "entries")} is lost.
        Events that are stored keep its name.
      </p>
      {remove.error !== null && (
        <p role="alert" className="mt-3 text-sm text-critical">
          {remove.error.message}
        </p>
      )}
    </Sheet>
  );
}
