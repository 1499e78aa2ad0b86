import { Button } from "../../components/ui/button.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";

interface RevokeSheetProps {
  readonly name: string;
  readonly isPending: boolean;
  readonly onRevoke: () => void;
  readonly onClose: () => void;
}

export function RevokeSheet({ name, isPending, onRevoke, onClose }: RevokeSheetProps) {
  return (
    <Sheet
      open
      onClose={onClose}
      title={`Revoke the key ${name}?`}
      footer={
        <>
          <Button className="ml-auto" onClick={onClose}>
            Keep it
          </Button>
          <Button look="danger" disabled={isPending} onClick={onRevoke}>
            Revoke
          </Button>
        </>
      }
    >
      <p className="text-sm text-ink2">
        It stops working at once, everywhere, and so do the sessions that were opened with it. This cannot be undone.
      </p>
    </Sheet>
  );
}
