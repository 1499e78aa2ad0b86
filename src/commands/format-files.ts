import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { LocatedDescription } from "../collectors/formats/described/description-checks.ts";
import type { TaughtFault } from "../collectors/formats/taught-status.ts";
import type { LineFormats } from "../collectors/formats/line-formats.ts";
import { CommandFailure, EXIT_WRONG_USE } from "./command-failure.ts";
import { readText } from "./rule-files.ts";
import { plain, print } from "./terminal.ts";

// The input of commands about taught formats: files, and all YAML files of folders.

const FILES_MAX = 1000;

export interface ReadFormatFiles {
  readonly taught: readonly LocatedDescription[];
  readonly formats: LineFormats;
  readonly faults: readonly TaughtFault[];
}

/** Reads files as the service reads those of collectors.formats_dir. */
export async function readFormatFiles(paths: readonly string[]): Promise<ReadFormatFiles> {
  const { readDescriptions } = await import("../collectors/formats/described/read-descriptions.ts");
  const { usableFormats } = await import("../collectors/formats/described/description-checks.ts");
  const { LineFormats } = await import("../collectors/formats/line-formats.ts");
  const { readShipped } = await import("../collectors/formats/described/shipped.ts");
  const names = [...new Set(paths.flatMap(namesAt))];
  if (names.length > FILES_MAX) throw new CommandFailure(`More than ${FILES_MAX} files at once.`, EXIT_WRONG_USE);
  const read = names.map((file) => ({ file, ...readDescriptions(readText(file)) }));
  const faults = read.flatMap(({ file, faults: found }) =>
    found.map((fault): TaughtFault => ({ kind: "refused", file, ...fault })),
  );
  const { usable, faults: unusable } = usableFormats(
    read.flatMap(({ file, formats }) => formats.map((format) => ({ file, ...format }))),
  );
  const formats = new LineFormats({ shipped: readShipped(), taught: usable.map(({ description }) => description) });
  return { taught: usable, formats, faults: [...faults, ...unusable] };
}

function namesAt(path: string): string[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) throw new CommandFailure(`There is no file or folder ${path}.`, EXIT_WRONG_USE);
  if (!stats.isDirectory()) return [path];
  const found = readdirSync(path).filter((name) => /^[^.].*\.ya?ml$/i.test(name));
  if (found.length === 0) throw new CommandFailure(`There is no .yaml or .yml file in ${path}.`, EXIT_WRONG_USE);
  return found.sort().map((name) => join(path, name));
}

export function printFormatFaults(faults: readonly Omit<TaughtFault, "kind">[]): void {
  for (const { file, line, path, message } of faults) {
    print(`${file}:${line}: ${path === "" ? "" : `${path}: `}${plain(message)}`);
  }
}
