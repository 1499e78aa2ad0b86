/**
 * Ends the process at once, with this code, whatever its threads are doing. Node's own exit waits for what they have under way
 * in native code, and where that is an engine which answers a question, ends with SIGABRT when the answer is there. Another
 * program in the place of this one leaves nothing to wait for: to the disk it is a crash, to whoever watches it is the code.
 */
export function endProcess(code: number): never {
  // The log writes its last lines on this; it is not told of an end that Node does not make.
  process.emit("exit", code);
  try {
    process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${code})`], {});
  } finally {
    // A system that has no such call, or refuses it.
    process.exit(code);
  }
}
