import { createSocket } from "node:dgram";
import type { AddressInfo } from "node:net";

const PTR = 12;

export interface DnsServer {
  readonly address: string;
  /** The queried names, in order. */
  readonly asked: string[];
  /** Answers: a name, null for NXDOMAIN, "fail" for SERVFAIL, undefined for none. */
  readonly names: Map<string, string | null | "fail" | undefined>;
  close(): void;
}

/** A DNS server on loopback that answers PTR queries; names without an entry do not exist. */
export async function startDns(): Promise<DnsServer> {
  const socket = createSocket("udp4");
  const asked: string[] = [];
  const names: DnsServer["names"] = new Map();
  socket.on("message", (question, sender) => {
    const labels: string[] = [];
    let at = 12;
    while (question[at]! > 0) {
      labels.push(question.toString("latin1", at + 1, at + 1 + question[at]!));
      at += 1 + question[at]!;
    }
    const queried = labels.join(".");
    if (question.readUInt16BE(at + 1) !== PTR) throw new Error("this server answers PTR queries only");
    asked.push(queried);
    const name = names.has(queried) ? names.get(queried) : null;
    if (name === undefined) return;
    const code = name === "fail" ? 2 : name === null ? 3 : 0;
    const answers = code === 0 ? 1 : 0;
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(0x8180 | code, 2);
    header.writeUInt16BE(answers, 6);
    header.writeUInt32BE(0, 8);
    const parts = [header, question.subarray(12, at + 5)];
    if (answers) {
      const target = Buffer.concat([
        ...name!.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, "latin1")])),
        Buffer.from([0]),
      ]);
      const record = Buffer.alloc(12);
      record.writeUInt16BE(0xc00c, 0);
      record.writeUInt16BE(PTR, 2);
      record.writeUInt16BE(1, 4);
      record.writeUInt32BE(60, 6);
      record.writeUInt16BE(target.length, 10);
      parts.push(record, target);
    }
    socket.send(Buffer.concat(parts), sender.port, sender.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    asked,
    names,
    close: () => void socket.close(),
  };
}
