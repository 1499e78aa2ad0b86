import type { StoredView } from "../../data/views.ts";
import { Button } from "../ui/button.tsx";
import { Sheet } from "../ui/sheet.tsx";

interface DeleteViewSheetProps {
  readonly view: StoredView;
  readonly onDelete: () => void;
  readonly onClose: () => void;
}

/** Before a view of somebody else goes. */
export function DeleteViewSheet({ view, onDelete, onClose }: DeleteViewSheetProps) {
  return (
    <Sheet
      open
      onClose={onClose}
      title={`Delete “${view.name}”?`}
      footer={
        <>
          <Button look="danger" onClick={onDelete}>
            Delete for everybody
          </Button>
          <Button look="quiet" onClick={onClose}>
            Keep it
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">
        The view belongs to {view.owner}, who shares it with everybody. It cannot be brought back.
      </p>
    </Sheet>
  );
}
