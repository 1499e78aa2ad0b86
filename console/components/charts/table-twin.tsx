import { useRef, useState, type ReactNode } from "react";
import { IconButton } from "../ui/button.tsx";
import { Sheet } from "../ui/sheet.tsx";

// Every chart as text: a table behind a button beside the picture, for people who do not see the picture and for those who want the
// numbers. Choosing a row does what choosing its place in the picture does, without a mouse.

export interface TwinRow {
  readonly id: string | number;
  readonly name: string;
  readonly cells: readonly string[];
  /** Does what the picture does at this place; the sheet closes. */
  readonly choose?: (() => void) | undefined;
}

interface TableProps {
  /** What the picture shows: `Alerts over time`. */
  readonly title: string;
  /** The heading of the rows' names, then one for each cell. */
  readonly columns: readonly [string, ...string[]];
  /** Asked for when the table opens. */
  readonly rows: () => readonly TwinRow[];
  readonly note?: string | undefined;
}

/** A picture with its table. */
export function TableTwin({ children, ...table }: TableProps & { readonly children: ReactNode }) {
  return (
    <div className="flex items-start gap-1">
      <div className="min-w-0 flex-1">{children}</div>
      <TableButton {...table} />
    </div>
  );
}

export function TableButton({ className = "size-6", ...table }: TableProps & { readonly className?: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <IconButton
        icon="table"
        size={13}
        label={`${table.title} as a table`}
        className={className}
        onClick={() => setOpen(true)}
      />
      {isOpen && <TableSheet {...table} onClose={() => setOpen(false)} />}
    </>
  );
}

function TableSheet({ title, columns, rows: read, note, onClose }: TableProps & { readonly onClose: () => void }) {
  const region = useRef<HTMLDivElement>(null);
  const rows = read();
  return (
    <Sheet open onClose={onClose} title={title} initialFocus={region}>
      {note !== undefined && <p className="mb-3 text-xs text-ink3">{note}</p>}
      <div
        ref={region}
        role="region"
        aria-label={`${title} as a table`}
        // It scrolls, also by keys.
        tabIndex={0}
        className="max-h-[60vh] scroll-pt-8 overflow-auto rounded-md border border-line"
      >
        {rows.length === 0 ? (
          <p className="p-3 text-sm text-ink2">Nothing in this time.</p>
        ) : (
          <table className="w-full text-xs">
            <thead className="sticky top-0 bg-raised text-left text-ink3">
              <tr>
                {columns.map((column, index) => (
                  <th
                    key={column}
                    scope="col"
                    className={`px-3 py-1.5 font-medium whitespace-nowrap ${index === 0 ? "" : "text-right"}`}
                  >
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id} className="border-t border-line">
                  <th scope="row" className="px-3 py-0.5 text-left font-normal whitespace-nowrap">
                    <RowName row={row} onClose={onClose} />
                  </th>
                  {row.cells.map((cell, index) => (
                    <td key={columns[index + 1]} className="px-3 py-0.5 text-right text-ink2 whitespace-nowrap">
                      {cell}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
    </Sheet>
  );
}

function RowName({ row, onClose }: { row: TwinRow; onClose: () => void }) {
  if (row.choose === undefined) return <span className="inline-flex min-h-6 items-center">{row.name}</span>;
  return (
    <button
      type="button"
      title="Show only this"
      onClick={() => {
        onClose();
        row.choose!();
      }}
      className="min-h-6 text-accent hover:underline"
    >
      {row.name}
    </button>
  );
}
