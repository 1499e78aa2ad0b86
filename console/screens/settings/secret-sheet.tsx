import { Button } from "../../components/ui/button.tsx";
import { CopyButton } from "../../components/ui/copy.tsx";
import { Sheet } from "../../components/ui/sheet.tsx";

interface SecretSheetProps {
  readonly name: string;
  readonly secret: string;
  readonly onClose: () => void;
}

/** The only time that a secret is on the screen. */
export function SecretSheet({ name, secret, onClose }: SecretSheetProps) {
  return (
    <Sheet
      open
      onClose={onClose}
      title={`The key ${name}`}
      footer={
        <Button look="primary" className="ml-auto" onClick={onClose}>
          I have copied it
        </Button>
      }
    >
      <p className="mb-3 text-sm text-ink2">Copy it now: the service keeps only a hash and cannot show it again.</p>
      <div className="flex items-center rounded-md border border-line2 bg-app py-2 pr-2 pl-3">
        <code className="mono min-w-0 flex-1 text-sm break-all">{secret}</code>
        <CopyButton text={secret} label="Copy the key" />
      </div>
    </Sheet>
  );
}
