// Numbers as people read them: 1.2 M, 884 kB/s. The exact one is shown on hover.

const whole = new Intl.NumberFormat("en");

export const exact = (value: number) => whole.format(value);

function scaled(value: number, units: readonly string[]): string {
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= 1000 && unit < units.length - 1) {
    rest /= 1000;
    unit++;
  }
  // A trickle, such as 0.012 B/s: rounded to nothing, every tick of its chart would be 0.
  if (rest !== 0 && Math.abs(rest) < 1) return withUnit(String(Number(rest.toFixed(4))), units[unit]!);
  const digits = unit === 0 || Math.abs(rest) >= 100 ? 0 : 1;
  const text = rest.toFixed(digits).replace(/\.0$/, "");
  return withUnit(text, units[unit]!);
}

const withUnit = (text: string, unit: string) => (unit === "" ? text : `${text} ${unit}`);

export const short = (value: number) => scaled(value, ["", "k", "M", "G"]);
export const bytes = (value: number) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);
export const bytesPerSecond = (value: number) => `${bytes(value)}/s`;
export const percent = (share: number) => `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`;

/** `1 event`, `3 events`. */
export const count = (value: number, one: string, many = `${one}s`) => `${exact(value)} ${value === 1 ? one : many}`;
