const REDRAW_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;
const BAR_CELLS = 20;

/**
 * Shows on standard error how far a long copy is: rows, rows a second and the time left. One line that is redrawn on a
 * terminal; otherwise a line at the start and end of each step and every ten seconds.
 */
export function startCopyProgress(stream: NodeJS.WriteStream = process.stderr) {
  let label = "";
  let startedAt = 0;
  let startedWith = 0;
  let shownAt = 0;
  let isEnded = true;
  const show = (done: number, total: number, now: number) => {
    shownAt = now;
    const seconds = (now - startedAt) / 1000;
    const rate = seconds > 0 ? (done - startedWith) / seconds : 0;
    const rows = `${done.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}`;
    const speed = rate > 0 ? `, ${Math.round(rate).toLocaleString("en-US")}/s` : "";
    const left = rate > 0 && done < total ? `, ${durationOf((total - done) / rate)} left` : "";
    if (!stream.isTTY) {
      stream.write(`${label}: ${rows}${speed}${left}\n`);
      return;
    }
    const filled = Math.round((total === 0 ? 1 : Math.min(1, done / total)) * BAR_CELLS);
    const bar = "█".repeat(filled) + "░".repeat(BAR_CELLS - filled);
    // Clears the rest of a longer line before.
    stream.write(`\r${label} ${bar} ${rows}${speed}${left}\u001B[K`);
  };
  const end = () => {
    if (stream.isTTY && label !== "") stream.write("\n");
  };
  return {
    report(step: string, done: number, total: number): void {
      const now = performance.now();
      if (step !== label) {
        end();
        label = step;
        startedAt = now;
        startedWith = done;
        isEnded = false;
        return show(done, total, now);
      }
      const isLast = done >= total;
      if (isEnded || (!isLast && now - shownAt < (stream.isTTY ? REDRAW_EVERY_MS : LINE_EVERY_MS))) return;
      isEnded = isLast;
      show(done, total, now);
    },
    end,
  };
}

function durationOf(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
