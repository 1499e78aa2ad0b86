import type { FlowPacket } from "../flow-packet.ts";
import { MAPPED_WORD, scaleCounter } from "../flow-records.ts";

// NetFlow v5: a header of 24 bytes and up to 30 records of 48 bytes, all in one fixed layout.

const V5_HEADER_BYTES = 24;
const V5_RECORD_BYTES = 48;
const INTERVAL_BITS = 0x3fff;

export function decodeV5(packet: FlowPacket, start: number, end: number): void {
  const { view, batch, exporter } = packet;
  const length = end - start;
  const count = length < V5_HEADER_BYTES ? 0 : view.getUint16(start + 2);
  if (length < V5_HEADER_BYTES || length < V5_HEADER_BYTES + count * V5_RECORD_BYTES) {
    const message = `a NetFlow v5 packet of ${length} bytes is shorter than its ${count} records`;
    exporter.drop("truncated", 1, message, packet.receivedMs);
    return;
  }
  const uptimeMs = view.getUint32(start + 4);
  packet.setClock(view.getUint32(start + 8) * 1000 + Math.floor(view.getUint32(start + 12) / 1e6), uptimeMs);
  const engine = exporter.domain(view.getUint16(start + 20), packet.port, packet.receivedMs);
  exporter.observe(engine, view.getUint32(start + 16), count);
  const rate = Math.max(1, view.getUint16(start + 22) & INTERVAL_BITS);
  exporter.samplingRate = rate;

  for (let index = 0, at = start + V5_HEADER_BYTES; index < count; index++, at += V5_RECORD_BYTES) {
    const row = batch.next();
    const words = row * 4;
    batch.exporter[row] = exporter.index;
    batch.version[row] = 5;
    batch.src[words] = 0;
    batch.src[words + 1] = 0;
    batch.src[words + 2] = MAPPED_WORD;
    batch.src[words + 3] = view.getUint32(at, true);
    batch.dst[words] = 0;
    batch.dst[words + 1] = 0;
    batch.dst[words + 2] = MAPPED_WORD;
    batch.dst[words + 3] = view.getUint32(at + 4, true);
    batch.packets[row * 2] = view.getUint32(at + 16);
    batch.packets[row * 2 + 1] = 0;
    batch.bytes[row * 2] = view.getUint32(at + 20);
    batch.bytes[row * 2 + 1] = 0;
    batch.ports[row] = view.getUint32(at + 32);
    batch.tcpFlags[row] = view.getUint8(at + 37);
    batch.protocol[row] = view.getUint8(at + 38);
    packet.setTimes(
      row,
      packet.exportMs + ((view.getUint32(at + 24) - uptimeMs) | 0),
      packet.exportMs + ((view.getUint32(at + 28) - uptimeMs) | 0),
    );
    if (rate !== 1) {
      scaleCounter(batch.bytes, row, rate);
      scaleCounter(batch.packets, row, rate);
    }
  }
  exporter.records += count;
  if (count > 0) exporter.lastRecordMs = packet.receivedMs;
}
