import { queryOptions } from "@tanstack/react-query";
import { answered, api } from "./client.ts";

export const channelsQuery = queryOptions({
  queryKey: ["channels"],
  queryFn: async ({ signal }) => (await answered(api.GET("/v1/channels", { signal }))).data,
});

export type ChannelStatus = NonNullable<Awaited<ReturnType<NonNullable<(typeof channelsQuery)["queryFn"]>>>>[number];

export async function testChannel(channel: ChannelStatus["name"]) {
  return (await answered(api.POST("/v1/notifications/test", { body: { channel } }))).data;
}
