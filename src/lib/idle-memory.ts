import { setFlagsFromString } from "node:v8";

// Releases memory when the process becomes idle. V8's memory reducer runs for a heap with a low allocation rate. A thread
// that allocates nothing gives V8 no rate at all, so the garbage of the last work would stay for the whole idle period.
// V8's memory saver mode triggers the reducer; it is on for a few seconds per idle period only, because it collects far too
// often for a busy process.

const LOOK_MS = 1000;
/** CPU time per interval up to which the process counts as idle. */
const QUIET_MS_MAX = 100;
/** Consecutive quiet intervals that make an idle period. */
const REST_LOOKS = 4;
/** Intervals within which every thread collects; main.mjs sets the delay of the reducer to 4 s. */
const SAVING_LOOKS = 6;
/** CPU time per interval beyond that of the collections: new work has arrived. */
const COLLECTING_MS_MAX = 500;

/** Samples the CPU time for the lifetime of the process, without keeping it alive. */
export function releaseIdleMemory(): void {
  let used = process.cpuUsage();
  let hasWorked = true;
  let quietLooks = 0;
  let savingLooks = 0;
  const look = () => {
    const { user, system } = process.cpuUsage(used);
    used = process.cpuUsage();
    const usedMs = (user + system) / 1000;
    if (savingLooks > 0) {
      savingLooks = usedMs > COLLECTING_MS_MAX ? 0 : savingLooks - 1;
      if (savingLooks > 0) return;
      setFlagsFromString("--no-memory-saver-mode");
      hasWorked = usedMs > COLLECTING_MS_MAX;
      quietLooks = 0;
      return;
    }
    const isQuiet = usedMs < QUIET_MS_MAX;
    hasWorked ||= !isQuiet;
    quietLooks = isQuiet ? quietLooks + 1 : 0;
    if (!hasWorked || quietLooks < REST_LOOKS) return;
    savingLooks = SAVING_LOOKS;
    setFlagsFromString("--memory-saver-mode");
  };
  setInterval(look, LOOK_MS).unref();
}
