import type { ListenerStatus } from "./status.ts";

/** Something that receives for the collectors. */
export interface Listener {
  status(): ListenerStatus;
  close(): Promise<void>;
}

/** False where it had to be dropped: over TCP the sender is then made to wait. */
export type TakePayload = (address: string, payload: Uint8Array) => boolean;

export interface ListenOptions {
  readonly name: ListenerStatus["name"];
  readonly address: string;
  readonly port: number;
}

/** A collector's port cannot be opened, for a reason that a person can act on. */
export class ListenFailure extends Error {
  constructor({ name, address, port }: ListenOptions, transport: string, cause: NodeJS.ErrnoException) {
    const setting = `${name}_port`;
    const where = `${transport} port ${port} on ${address}, for ${name} (setting ${setting})`;
    const remedy = `choose another with --${setting.replace("_", "-")}, or close the collector with --${setting.replace("_", "-")} off`;
    super(
      cause.code === "EADDRINUSE"
        ? `The ${where}, is taken.\nStop what listens there, ${remedy}.`
        : cause.code === "EACCES"
          ? `The ${where}, may not be opened by this user.\nTake one above 1023: ${remedy}.`
          : `The ${where}, cannot be opened: ${cause.message}.\nSee the setting flows.addresses, or ${remedy}.`,
      { cause },
    );
    this.name = "ListenFailure";
  }
}
