import type { ListenerStatus } from "./flows/flow-status.ts";

/** An open port of a collector. */
export interface CollectorListener {
  status(): ListenerStatus;
  close(): Promise<void>;
}

/** Returns false if the payload was dropped; over TCP, back-pressure then makes the sender wait. */
export type ReceivePayload = (address: string, payload: Uint8Array, port: number) => boolean;

export interface ListenOptions {
  readonly name: ListenerStatus["name"];
  readonly address: string;
  readonly port: number;
}

interface ListenEndpoint {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly addresses?: string;
}

/** A collector's port cannot be opened. The message says what to do. */
export class ListenFailure extends Error {
  /** `addresses` names the setting that the address comes from. */
  constructor(
    { name, address, port, addresses = "flows.addresses" }: ListenEndpoint,
    transport: string,
    cause: NodeJS.ErrnoException,
  ) {
    const setting = `${name}_port`;
    const flag = `--${setting.replaceAll("_", "-")}`;
    const where = `${transport} port ${port} on ${address}, for ${name} (setting ${setting})`;
    const remedy = `choose another with ${flag}, or close the collector with ${flag} off`;
    super(
      cause.code === "EADDRINUSE"
        ? `The ${where}, is already in use.\nStop the program that listens there, ${remedy}.`
        : cause.code === "EACCES"
          ? `The ${where}, needs a privilege that this user lacks.\nUse a port above 1023: ${remedy}.\nOr grant the service CAP_NET_BIND_SERVICE, or redirect the port: see docs/operating.md.`
          : `The ${where}, cannot be opened: ${cause.message}.\nCheck the setting ${addresses}, or ${remedy}.`,
      { cause },
    );
    this.name = "ListenFailure";
  }
}
