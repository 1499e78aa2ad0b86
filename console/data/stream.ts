import { useEffect, useSyncExternalStore } from "react";
import type { Alert } from "./client.ts";

// One stream of alerts for all tabs of the browser: the tab that holds a lock reads it and passes on what comes. Locks and channels
// need a secure context; on plain HTTP under another name than localhost each tab has its own.

export type LiveState = "connecting" | "live" | "offline";
type AlertListener = (alert: Alert) => void;
/** Alerts may have been missed: what is shown has to be asked for again. */
type GapListener = () => void;

type Message = { kind: "alert"; alert: Alert } | { kind: "state"; state: LiveState } | { kind: "gap" };

const RETRY_MS = 3000;

const alertListeners = new Set<AlertListener>();
const gapListeners = new Set<GapListener>();
const stateListeners = new Set<() => void>();
let state: LiveState = "connecting";
/** As the stream tells it; a browser without a network knows better, and may keep the connection open for minutes. */
let streamState: LiveState = "connecting";
/** The service was reached before: now it is out of reach, not slow to answer for the first time. */
let wasLive = false;
let isStarted = false;

function settle(): void {
  const next = navigator.onLine ? streamState : "offline";
  if (next === state) return;
  state = next;
  for (const listener of stateListeners) listener();
}

function receive(message: Message): void {
  switch (message.kind) {
    case "alert":
      for (const listener of alertListeners) listener(message.alert);
      return;
    case "gap":
      for (const listener of gapListeners) listener();
      return;
    case "state":
      streamState = message.state;
      settle();
      return;
    default:
      message satisfies never;
  }
}

function read(send: (message: Message) => void): void {
  const source = new EventSource("/v1/stream?kinds=alerts");
  let wasOpen = false;
  let hasId = false;
  source.addEventListener("open", () => {
    send({ kind: "state", state: "live" });
    // The browser resumes by the id of the last message, so nothing is missed in a break, unless none had come yet.
    if (wasOpen && !hasId) send({ kind: "gap" });
    wasOpen = true;
    wasLive = true;
  });
  source.addEventListener("alert", (event) => {
    hasId = true;
    send({ kind: "alert", alert: JSON.parse(event.data as string) as Alert });
  });
  source.addEventListener("error", () => {
    send({ kind: "state", state: wasLive ? "offline" : "connecting" });
    // The browser gives up for good after a refusal, for example while the service restarts.
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => {
      read(send);
      send({ kind: "gap" });
    }, RETRY_MS);
  });
}

/** Called once, after signing in. */
export function startStream(): void {
  if (isStarted) return;
  isStarted = true;
  addEventListener("offline", settle);
  addEventListener("online", settle);
  if (!("locks" in navigator) || !("BroadcastChannel" in window)) {
    read(receive);
    return;
  }
  const channel = new BroadcastChannel("tocsin-alerts");
  channel.addEventListener("message", ({ data }) => {
    if (data === "state?") channel.postMessage({ kind: "state", state: streamState } satisfies Message);
    else receive(data as Message);
  });
  channel.postMessage("state?");
  void navigator.locks.request("tocsin-alerts", () => {
    read((message) => {
      receive(message);
      channel.postMessage(message);
    });
    // Held until the tab closes; then another tab takes over.
    return new Promise<never>(() => {});
  });
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => {
      stateListeners.add(listener);
      return () => stateListeners.delete(listener);
    },
    () => state,
  );
}

export function useAlertStream(onAlert: AlertListener, onGap: GapListener): void {
  useEffect(() => {
    alertListeners.add(onAlert);
    gapListeners.add(onGap);
    return () => {
      alertListeners.delete(onAlert);
      gapListeners.delete(onGap);
    };
  }, [onAlert, onGap]);
}
