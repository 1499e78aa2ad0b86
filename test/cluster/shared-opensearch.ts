import { inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    readonly openSearchStarter: string;
  }
}

/** The OpenSearch of this test run, or what the machine lacks for one. */
export type SharedOpenSearch = { readonly url: string } | { readonly missing: string };

/** The share of random cases that are tried with a real OpenSearch: each takes some requests. TOCSIN_TEST_RUNS=all tries all. */
export const RUNS_SHARE = process.env["TOCSIN_TEST_RUNS"] === "all" ? 1 : 0.2;

let prefixes = 0;

/** Starts it unless another file has. Each file keeps to its own prefixes. */
export async function sharedOpenSearch(): Promise<SharedOpenSearch> {
  const answer = await fetch(inject("openSearchStarter"));
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as SharedOpenSearch;
}

/** A prefix of indices that nobody else uses. */
export function ownPrefix(): string {
  return `t${process.pid.toString(36)}-${Date.now().toString(36)}-${prefixes++}`;
}
