/** What a command can end with. docs/operating.md has the same list. */
export const EXIT_FAILED = 1;
export const EXIT_WRONG_USE = 2;

// Result codes of SQLite, which stands between us and the file system.
const READ_ONLY = 8;
const DISK_FULL = 13;
const CANNOT_OPEN = 14;

/** The command cannot do what it was asked to, for a reason a person can act on: shown without a stack. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode = EXIT_FAILED, options?: ErrorOptions) {
    super(message, options);
    this.name = "CommandFailure";
    this.exitCode = exitCode;
  }
}

/** The failures of a machine that a person can mend, in words that say how; anything else stays what it is. */
export function explainFailure(error: unknown, { dataDir }: { dataDir: string }): unknown {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  const refuse = (message: string, exitCode = EXIT_FAILED) => new CommandFailure(message, exitCode, { cause: error });
  const { name, address, port, reason } = error as { name?: string; address?: string; port?: number; reason?: string };
  if (name === "DataFolderInUse" || name === "ListenFailure") return refuse((error as Error).message);
  if (name === "PlatformChanged") return refuse((error as Error).message, EXIT_WRONG_USE);
  if (code === "EADDRINUSE") {
    return refuse(
      `Port ${port} on ${address} is taken.\nStop what listens there, or choose another with --port (0: any free one).`,
    );
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return refuse(
      `This machine has no address ${address ?? "of that name"}.\nChoose one it has with --host, for example 127.0.0.1.`,
    );
  }
  if (code === "EACCES" && port !== undefined) {
    return refuse(`Port ${port} may not be opened by this user.\nChoose one above 1023 with --port.`);
  }
  const sqlite = code === "ERR_SQLITE_ERROR" ? (error as { errcode: number }).errcode & 0xff : undefined;
  if (code === "EACCES" || code === "EPERM" || code === "EROFS" || sqlite === CANNOT_OPEN || sqlite === READ_ONLY) {
    return refuse(
      `The data folder ${dataDir} cannot be written.\nGive this user the right to, or use another folder with --data-dir.`,
    );
  }
  if (code === "ENAMETOOLONG" || (syscall === "mkdir" && (code === "ENOENT" || code === "EINVAL"))) {
    return refuse(`The data folder ${dataDir} cannot be made there (${code}).\nUse another one with --data-dir.`);
  }
  if (code === "ENOTDIR" || code === "EEXIST" || code === "ELOOP") {
    return refuse(`The data folder ${dataDir} is not a folder.\nUse another one with --data-dir.`);
  }
  if (code === "ENOSPC" || sqlite === DISK_FULL || (name === "StoreUnavailable" && reason === "disk_full")) {
    return refuse(
      `The disk of the data folder ${dataDir} is full.\nMake room, or use a folder on another disk with --data-dir.`,
    );
  }
  return error;
}
