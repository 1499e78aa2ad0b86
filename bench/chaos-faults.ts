import { setTimeout as sleep } from "node:timers/promises";
import type { LocalCluster } from "../cluster/local-cluster.ts";
import { randomFrom } from "../src/demo/random.ts";

// Kills or pauses a random part of a cluster every few seconds. Never so many that nothing could work: one node of OpenSearch at a time,
// because two of three must live, and the primary of PostgreSQL only while its standby has every commit.

const PAUSE_MS_MIN = 1000;
const PAUSE_MS_MAX = 15_000;
const EVERY_MS_MIN = 3000;
const EVERY_MS_MAX = 8000;
const HEALTH_MS_MAX = 3000;

/** Those that are often out of the question are followed by the one that rarely is. */
const KINDS = ["opensearch", "postgres", "tocsin"] as const;
type Kind = (typeof KINDS)[number];

interface Victim {
  readonly kind: Kind;
  readonly name: string;
  kill(): unknown;
  pause(): void;
  resume(): void;
}

export interface FaultOptions {
  readonly cluster: LocalCluster;
  readonly seed: number;
  readonly isPausing: boolean;
  readonly tell: (message: string) => void;
}

export interface Faults {
  readonly counts: ReadonlyMap<Kind, number>;
  /** No further ones; whatever is paused goes on. */
  stop(): Promise<void>;
}

export function startFaults({ cluster, seed, isPausing, tell }: FaultOptions): Faults {
  const random = randomFrom(seed);
  const counts = new Map<Kind, number>();
  const paused = new Set<Victim>();
  const resuming = new Set<Promise<void>>();
  const over = new AbortController();
  const wait = (ms: number) => sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);

  const pauseFor = async (victim: Victim, ms: number) => {
    paused.add(victim);
    victim.pause();
    await wait(ms);
    victim.resume();
    paused.delete(victim);
  };
  /** Of this kind, or of the next one that has any. */
  const candidatesOf = async (first: Kind): Promise<readonly Victim[]> => {
    const at = KINDS.indexOf(first);
    for (const kind of [...KINDS.slice(at), ...KINDS.slice(0, at)]) {
      if (kind !== "tocsin" && [...paused].some((victim) => victim.kind === kind)) continue;
      const victims = await victimsOf(cluster, kind);
      const running = victims.filter(({ name }) => ![...paused].some((victim) => victim.name === name));
      if (running.length > 0) return running;
    }
    return [];
  };
  const run = async () => {
    for (;;) {
      await wait(random.between(EVERY_MS_MIN, EVERY_MS_MAX));
      if (over.signal.aborted) return;
      const candidates = await candidatesOf(random.pick(KINDS));
      if (candidates.length === 0) continue;
      const victim = random.pick(candidates);
      counts.set(victim.kind, (counts.get(victim.kind) ?? 0) + 1);
      if (isPausing) {
        const ms = random.between(PAUSE_MS_MIN, PAUSE_MS_MAX);
        tell(`pausing ${victim.name} for ${(ms / 1000).toFixed(1)} s`);
        const pausing = pauseFor(victim, ms);
        resuming.add(pausing);
        void pausing.then(() => resuming.delete(pausing));
      } else {
        tell(`killing ${victim.name}`);
        await victim.kill();
      }
    }
  };
  const running = run();
  return {
    counts,
    stop: async () => {
      over.abort();
      await running;
      await Promise.all(resuming);
    },
  };
}

async function victimsOf({ nodes, opensearch, postgres }: LocalCluster, kind: Kind): Promise<readonly Victim[]> {
  if (kind === "postgres") {
    const { primary, primaryName } = postgres;
    if (!primary || !postgres.isSynchronous) return [];
    return [
      {
        kind,
        name: primaryName,
        kill: () => primary.kill(),
        pause: () => primary.pause(),
        resume: () => primary.resume(),
      },
    ];
  }
  if (kind === "opensearch" && !(await isWhole(opensearch.urls))) return [];
  const parts = kind === "tocsin" ? nodes : opensearch.nodes;
  return parts
    .filter(({ pid }) => pid !== undefined)
    .map((part, nth) => ({
      kind,
      name: kind === "tocsin" ? part.name : `opensearch-${nth + 1}`,
      kill: () => part.kill(),
      pause: () => part.signal("SIGSTOP"),
      resume: () => part.signal("SIGCONT"),
    }));
}

/** Every node has joined, and each shard has a copy besides its primary. */
export async function isWhole(urls: readonly string[]): Promise<boolean> {
  for (const url of urls) {
    const health = await healthOf(url).catch(() => undefined);
    if (health?.status !== "green" || health.number_of_nodes !== urls.length) return false;
  }
  return true;
}

async function healthOf(url: string): Promise<{ readonly status: string; readonly number_of_nodes: number }> {
  const answer = await fetch(`${url}/_cluster/health`, { signal: AbortSignal.timeout(HEALTH_MS_MAX) });
  return (await answer.json()) as { status: string; number_of_nodes: number };
}
