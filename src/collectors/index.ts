import type { ListenerStatus } from "./status.ts";

/** What each collector listens to. What a packet is, it says itself: any of them takes any of the protocols. */
export const COLLECTORS: Readonly<
  Record<ListenerStatus["name"], { readonly transports: readonly ListenerStatus["transport"][] }>
> = {
  netflow: { transports: ["udp"] },
  ipfix: { transports: ["udp", "tcp"] },
  sflow: { transports: ["udp"] },
};
