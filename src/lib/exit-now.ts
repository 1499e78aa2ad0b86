/**
 * Ends the process at once with this code, whatever its threads are doing. Node's own exit waits for their native calls and,
 * if one is a database query, ends with SIGABRT once it completes. Replacing the process image leaves nothing to wait for:
 * to the disk it is a crash, to a supervisor an exit with this code.
 */
export function exitNow(code: number): never {
  // The log writes its last lines on this event, which Node does not emit here.
  process.emit("exit", code);
  try {
    process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${code})`], {});
  } finally {
    // The system has no execve, or refuses it.
    process.exit(code);
  }
}
