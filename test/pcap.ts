import { Bytes } from "../src/collectors/flows/packets.fixture.ts";

// Made-up captures, which exporters read instead of a network interface.

export interface CapturedFrame {
  readonly atMs: number;
  readonly frame: Uint8Array;
}

/** A file in tcpdump's format, with Ethernet frames. */
export function pcap(frames: readonly CapturedFrame[]): Uint8Array {
  const bytes = new Bytes().put(0xa1b2c3d4, 4).put(2, 2).put(4, 2).zeros(8).put(65_535, 4).put(1, 4);
  for (const { atMs, frame } of frames) {
    bytes
      .put(Math.floor(atMs / 1000), 4)
      .put((atMs % 1000) * 1000, 4)
      .put(frame.length, 4)
      .put(frame.length, 4);
    bytes.append(frame);
  }
  return bytes.build();
}
