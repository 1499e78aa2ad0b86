import { readShipped } from "./described/shipped.ts";
import { LineFormats } from "./line-formats.ts";

let known: LineFormats | undefined;

/** The formats that come with the service. Reads and validates their descriptions, so threads get them by `descriptions`. */
export function knownFormats(): LineFormats {
  return (known ??= new LineFormats({ shipped: readShipped(), taught: [] }));
}
