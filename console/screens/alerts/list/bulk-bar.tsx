import { keyLabel, KEYS } from "../../../app/keys.ts";
import { Button, IconButton } from "../../../components/ui/button.tsx";
import { exact } from "../../../text/numbers.ts";

export interface BulkCommands {
  readonly acknowledge: () => void;
  readonly assign: () => void;
  readonly comment: () => void;
  readonly tag: () => void;
  readonly resolve: () => void;
  readonly reopen: () => void;
}

interface BulkBarProps {
  readonly selected: number;
  readonly total: number;
  readonly isAll: boolean;
  readonly refusal: string | undefined;
  readonly commands: BulkCommands;
  readonly onSelectAll: () => void;
  readonly onClear: () => void;
}

const hint = (name: "acknowledge" | "assign" | "comment" | "resolve") => keyLabel(KEYS.alert[name].keys[0]);

/** What can be done with the rows that are selected. */
export function BulkBar({ selected, total, isAll, refusal, commands, onSelectAll, onClear }: BulkBarProps) {
  const allowed = { disabled: refusal !== undefined, title: refusal, className: "px-2!" };
  return (
    <section
      aria-label="Selected alerts"
      className="flex flex-wrap items-center gap-1 border-t border-line bg-raised px-4 py-1.5 text-sm"
    >
      <span role="status" className="mr-1 font-semibold whitespace-nowrap">
        {isAll ? `All ${exact(selected)} that match` : `${exact(selected)} selected`}
      </span>
      <Button look="primary" hint={hint("acknowledge")} {...allowed} onClick={commands.acknowledge}>
        Acknowledge
      </Button>
      <Button hint={hint("resolve")} {...allowed} onClick={commands.resolve}>
        Resolve
      </Button>
      <Button hint={hint("assign")} {...allowed} onClick={commands.assign}>
        Assign
      </Button>
      <Button hint={hint("comment")} {...allowed} onClick={commands.comment}>
        Comment
      </Button>
      <Button {...allowed} onClick={commands.tag}>
        Tag
      </Button>
      <Button {...allowed} onClick={commands.reopen}>
        Reopen
      </Button>
      {!isAll && total > selected && (
        <Button
          look="quiet"
          className="px-2!"
          title="Select all that match"
          hint={keyLabel(KEYS.list.selectAll.keys[0])}
          onClick={onSelectAll}
        >
          All {exact(total)}
        </Button>
      )}
      <IconButton icon="x" label="Select none" className="ml-auto" onClick={onClear} />
    </section>
  );
}
