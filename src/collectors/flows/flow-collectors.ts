import type { ListenerStatus } from "./flow-status.ts";

/** Transports of each collector. Packets identify their own protocol: every collector accepts every protocol. */
export const COLLECTORS: Readonly<
  Record<ListenerStatus["name"], { readonly transports: readonly ListenerStatus["transport"][] }>
> = {
  netflow: { transports: ["udp"] },
  ipfix: { transports: ["udp", "tcp"] },
  sflow: { transports: ["udp"] },
};
