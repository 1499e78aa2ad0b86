import { queryOptions } from "@tanstack/react-query";
import { answered, api, type Schemas } from "./client.ts";

export type ApiKey = Schemas["Key"];
export type NewKey = Schemas["NewKey"];

export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: async ({ signal }) => (await answered(api.GET("/v1/keys", { signal }))).data,
});

/** Returns the secret, which the service shows this once. */
export async function createKey(body: NewKey): Promise<string> {
  return (await answered(api.POST("/v1/keys", { body }))).data.key;
}

export async function rotateKey(id: string, graceSeconds: number): Promise<string> {
  const body = { grace_seconds: graceSeconds };
  return (await answered(api.POST("/v1/keys/{id}/rotate", { params: { path: { id } }, body }))).data.key;
}

export async function revokeKey(id: string): Promise<void> {
  await answered(api.DELETE("/v1/keys/{id}", { params: { path: { id } } }));
}
