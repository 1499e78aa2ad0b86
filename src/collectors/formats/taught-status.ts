// Status of the formats that the operator teaches, and the faults in their files.

/**
 * `refused`: the format is not in use as it is written; `test`: a test in the file fails; `overlap`: it reads the example of
 * another format.
 */
export const TAUGHT_FAULT_KINDS = ["refused", "test", "overlap"] as const;

export interface TaughtFault {
  readonly kind: (typeof TAUGHT_FAULT_KINDS)[number];
  /** Name in the folder; empty for the folder itself. */
  readonly file: string;
  readonly line: number;
  /** Path of the field; empty if the fault concerns the whole file. */
  readonly path: string;
  readonly message: string;
}

export interface TaughtFormatStatus {
  readonly name: string;
  readonly about: string;
  readonly file: string;
  readonly line: number;
  readonly readAtMs: number;
  /** True if the file has changed since and is spoiled. */
  readonly isKept: boolean;
  /** True if it takes the place of a shipped format of that name. */
  readonly replacesShipped: boolean;
}

export interface TaughtStatus {
  /** Null: none. */
  readonly folder: string | null;
  readonly formats: readonly TaughtFormatStatus[];
  readonly faults: readonly TaughtFault[];
}

/** `door.yaml:12: events[0].type: must be ...` */
export function describeTaughtFault({ file, line, path, message }: TaughtFault): string {
  const place = file === "" ? "" : `${file}:${line}: `;
  return `${place}${path === "" ? "" : `${path}: `}${message}`;
}
