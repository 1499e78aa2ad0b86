import type { ListenerStatus } from "./status.ts";

/** Something that receives for the collectors. */
export interface Listener {
  status(): ListenerStatus;
  close(): Promise<void>;
}

/** False where it had to be dropped: over TCP the sender is then made to wait. */
export type TakePayload = (address: string, payload: Uint8Array, port: number) => boolean;

export interface ListenOptions {
  readonly name: ListenerStatus["name"];
  readonly address: string;
  readonly port: number;
}

interface ListenPlace {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly addresses?: string;
}

/** A collector's port cannot be opened, for a reason that a person can act on. */
export class ListenFailure extends Error {
  /** `addresses` is the setting that the address comes from. */
  constructor(
    { name, address, port, addresses = "flows.addresses" }: ListenPlace,
    transport: string,
    cause: NodeJS.ErrnoException,
  ) {
    const setting = `${name}_port`;
    const flag = `--${setting.replaceAll("_", "-")}`;
    const where = `${transport} port ${port} on ${address}, for ${name} (setting ${setting})`;
    const remedy = `choose another with ${flag}, or close the collector with ${flag} off`;
    super(
      cause.code === "EADDRINUSE"
        ? `The ${where}, is taken.\nStop what listens there, ${remedy}.`
        : cause.code === "EACCES"
          ? `The ${where}, may not be opened by this user.\nTake one above 1023: ${remedy}.\nOr give the service the right to: CAP_NET_BIND_SERVICE; docs/operating.md says how, and how to redirect a port.`
          : `The ${where}, cannot be opened: ${cause.message}.\nSee the setting ${addresses}, or ${remedy}.`,
      { cause },
    );
    this.name = "ListenFailure";
  }
}
