// The address bar is the state of a screen, and reads as typed: /alerts?status=open&severity=critical,high. The router's own form
// would write each value as JSON.

export function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === "string" && value !== "") parameters.set(name, value);
  }
  // Commas and colons are legal in a query, and easier to read.
  const text = parameters.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
  return text === "" ? "" : `?${text}`;
}
