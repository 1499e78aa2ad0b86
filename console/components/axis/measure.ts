// Widths of text as the browser draws it.

const FONTS = {
  label: '500 11px "Inter Variable"',
  mono: '600 10.5px "JetBrains Mono Variable"',
  title: '550 11.5px "Inter Variable"',
} as const;
const KNOWN_MAX = 5000;

const known = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;

export function measureText(text: string, style: keyof typeof FONTS): number {
  const key = `${style} ${text}`;
  let width = known.get(key);
  if (width === undefined) {
    context ??= document.createElement("canvas").getContext("2d");
    if (context === null) return text.length * 6.5;
    context.font = FONTS[style];
    width = context.measureText(text).width;
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(key, width);
  }
  return width;
}
