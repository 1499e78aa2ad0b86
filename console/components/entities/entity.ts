import type { IconName } from "../ui/icons.tsx";

// The things that events are about. Wherever one is shown, it leads to its page.

export const ENTITY_KINDS = ["address", "user", "door", "camera", "device", "phone"] as const;
export type EntityKind = (typeof ENTITY_KINDS)[number];

export interface Entity {
  readonly kind: EntityKind;
  readonly value: string;
}

/** The fields of `raw` that name one. */
export const ENTITY_FIELDS: Readonly<Record<EntityKind, readonly string[]>> = {
  address: ["src_ip", "dst_ip", "local_ip", "device_ip"],
  user: ["user"],
  door: ["door"],
  camera: ["camera"],
  device: ["src_mac", "dst_mac", "host", "src_host", "dst_host", "device", "device_mac"],
  phone: ["from", "to"],
};

export const ENTITY_ICON: Record<EntityKind, IconName> = {
  address: "globe",
  user: "user-round",
  door: "door-open",
  camera: "camera",
  device: "laptop",
  phone: "phone",
};

export const ENTITY_WORD: Record<EntityKind, string> = {
  address: "address",
  user: "person",
  door: "door",
  camera: "camera",
  device: "device",
  phone: "number",
};
