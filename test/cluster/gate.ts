import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

// A connection to an engine that a test can cut, stall, or have lose answers.

export interface Gate {
  readonly url: string;
  /** Answers to bulk requests that are lost after the engine has executed them. */
  lostAnswers: number;
  /** Closes all connections and refuses new ones. */
  cut(): void;
  /** Passes nothing on, as a paused node would. */
  stall(): void;
  /** Ends a cut, or passes on what was held back. */
  open(): void;
  close(): void;
}

export async function openGate(target: string): Promise<Gate> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let state: "open" | "cut" | "stalled" = "open";
  const server = createServer((near) => {
    if (state === "cut") return void near.destroy();
    const far = connect(Number(port), hostname);
    let isBulk = false;
    near.on("data", (part) => {
      isBulk = part.includes("POST /_bulk") || (isBulk && !part.includes("HTTP/1.1"));
      far.write(part);
    });
    far.on("data", (part) => {
      if (isBulk && gate.lostAnswers > 0) {
        gate.lostAnswers--;
        near.destroy();
      } else near.write(part);
    });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      if (state === "stalled") socket.pause();
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const each = (work: (socket: Socket) => void) => {
    for (const socket of sockets) work(socket);
  };
  const gate: Gate = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lostAnswers: 0,
    cut: () => {
      state = "cut";
      each((socket) => socket.destroy());
    },
    stall: () => {
      state = "stalled";
      each((socket) => socket.pause());
    },
    open: () => {
      state = "open";
      each((socket) => socket.resume());
    },
    close: () => {
      each((socket) => socket.destroy());
      server.close();
    },
  };
  return gate;
}
