import { setFlagsFromString } from "node:v8";

// Gives memory back when the work is over. V8 has a collection for that, in small steps, for a heap to which little is
// added. A thread that nobody asks adds nothing at all, which V8 takes for knowing nothing, and waits: the garbage of the
// last work would stay for as long as the rest lasts. So it is told, once for each rest and for a few seconds: as long as
// it is told, it collects far more often than is good for any work.

const LOOK_MS = 1000;
/** More processor time than this within a look is work. */
const QUIET_MS_MAX = 100;
/** Looks in a row without work that make a rest. */
const REST_LOOKS = 4;
/** Looks within which every thread gets to its collection; main.mjs has it look every 4 s. */
const SAVING_LOOKS = 6;
/** More than all the collections take within a look: work has come meanwhile. */
const COLLECTING_MS_MAX = 500;

/** Watches for as long as the process lives, and does not keep it alive. */
export function saveMemoryAtRest(): void {
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
