/** Exit codes. docs/operating.md has the same list. */
export const EXIT_FAILED = 1;
export const EXIT_WRONG_USE = 2;

// Result codes of SQLite for failures of the file system.
const READ_ONLY = 8;
const IO_ERROR = 10;
const DISK_FULL = 13;
const CANNOT_OPEN = 14;

/** A failure that the user can act on: printed without a stack trace. */
export class CommandFailure extends Error {
  readonly exitCode: number;
  constructor(message: string, exitCode = EXIT_FAILED, options?: ErrorOptions) {
    super(message, options);
    this.name = "CommandFailure";
    this.exitCode = exitCode;
  }
}

/** The fields that identify errors of the system and the store, from any thread. */
interface KnownFailure {
  readonly name?: string;
  readonly message: string;
  readonly code?: string;
  readonly errcode?: number;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly reason?: string;
}

const CAUSES_MAX = 8;

/** Failures whose messages say what to do. */
const MESSAGES_FOR_PEOPLE = new Set([
  "DataFolderInUse",
  "DatabaseInUse",
  "ListenFailure",
  "UnusableOpenSearch",
  "MigrationRefused",
  "UnfinishedMigration",
]);
/** Failures of PostgreSQL whose messages are for the operator. */
const POSTGRES_FAILURES = new Set(["NewerSchema", "UnfitDatabase", "UnreadableSettingFile", "ConnectFailure"]);
const POSTGRES_REMEDY = ".\nCheck postgres.url, and that the server runs, is a primary and accepts this user.";

/** The error and its causes. */
function chainOf(error: unknown): KnownFailure[] {
  const chain: KnownFailure[] = [];
  for (let at = error; at instanceof Error && chain.length < CAUSES_MAX; at = at.cause) {
    const { details } = at as { details?: object };
    chain.push({ ...at, ...details, name: at.name, message: at.message });
  }
  return chain;
}

/** Turns failures that the user can fix into a CommandFailure with the remedy; returns any other error unchanged. */
export function explainFailure(error: unknown, { dataDir }: { dataDir: string }): unknown {
  const chain = chainOf(error);
  const refuse = (message: string, exitCode = EXIT_FAILED) => new CommandFailure(message, exitCode, { cause: error });
  const { name, message = "", code, syscall, address, port } = chain[0] ?? {};
  const damage = chain.find((known) => known.name === "DamagedFile");
  if (damage) return refuse(damage.message);
  const newer = chain.find((known) => known.name === "NewerFile");
  if (newer) return refuse(newer.message);
  const unfit = chain.find((known) => POSTGRES_FAILURES.has(known.name ?? ""));
  if (unfit) return refuse(`${unfit.message}${unfit.name === "ConnectFailure" ? POSTGRES_REMEDY : ""}`);
  if (MESSAGES_FOR_PEOPLE.has(name ?? "")) return refuse(message);
  if (name === "PlatformChanged") return refuse(message, EXIT_WRONG_USE);
  if (code === "EADDRINUSE") {
    return refuse(
      `Port ${port} on ${address} is in use.\nStop the program that uses it, or choose another port with --port (0: any free port).`,
    );
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return refuse(
      `This machine has no address ${address ?? "of that name"}.\nChoose another with --host, for example 127.0.0.1.`,
    );
  }
  if (code === "EACCES" && port !== undefined) {
    return refuse(`Port ${port} cannot be opened by this user.\nChoose one above 1023 with --port.`);
  }
  const sqlite = new Set(chain.map(({ errcode }) => (errcode === undefined ? undefined : errcode & 0xff)));
  const isWriteRefused = sqlite.has(CANNOT_OPEN) || sqlite.has(READ_ONLY);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS" || isWriteRefused) {
    return refuse(
      `The data folder ${dataDir} cannot be written.\nGrant this user write access, or use another folder with --data-dir.`,
    );
  }
  if (code === "ENAMETOOLONG" || (syscall === "mkdir" && (code === "ENOENT" || code === "EINVAL"))) {
    return refuse(`The data folder ${dataDir} cannot be created there (${code}).\nUse another one with --data-dir.`);
  }
  if (code === "ENOTDIR" || code === "EEXIST" || code === "ELOOP") {
    return refuse(`The data folder ${dataDir} is not a folder.\nUse another one with --data-dir.`);
  }
  if (sqlite.has(IO_ERROR)) {
    return refuse(
      `The disk of the data folder ${dataDir} is full, or cannot be read or written (disk I/O error).\n` +
        "Free some space, check the system log for disk errors, or use a folder on another disk with --data-dir.",
    );
  }
  if (
    code === "ENOSPC" ||
    sqlite.has(DISK_FULL) ||
    chain.some(({ reason }) => reason === "disk_full") ||
    isNoSpace(message)
  ) {
    return refuse(
      `The disk of the data folder ${dataDir} is full.\nFree some space, or use a folder on another disk with --data-dir.`,
    );
  }
  return error;
}

/** DuckDB reports a full disk only in the message. */
function isNoSpace(message: string): boolean {
  return /no space left on device/i.test(message);
}
