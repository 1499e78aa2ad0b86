import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { answered, api, type Schemas } from "./client.ts";

// Questions about network flows. Times are milliseconds, as the flows' part of the API has them.

export type Flow = Schemas["Flow"];
export type FlowSplit = Schemas["FlowSplit"];
export type TalkerDimension = Schemas["ListTopTalkersDim"];

export interface FlowFilter {
  readonly host?: string | undefined;
  readonly src_ip?: string | undefined;
  readonly dst_ip?: string | undefined;
  readonly port?: number | undefined;
  readonly protocol?: number | undefined;
  readonly exporter?: string | undefined;
}

export interface FlowRange {
  readonly from: number;
  readonly to: number;
}

const PAGE = 200;
/** The service skips to an offset: beyond this, a narrower question is kinder to both. */
export const FLOWS_MAX = 10_000;

/** Parameters that are undefined are left out of the address. */
const set = <Values extends object>(values: Values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values;

export const trafficQuery = (filter: FlowFilter, range: FlowRange, split: FlowSplit | undefined) =>
  queryOptions({
    queryKey: ["flows", "traffic", filter, range, split],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const query = set({ ...filter, ...range, split, compare: "previous" as const, limit: 8 });
      return answered(api.GET("/api/v1/flows/timeseries", { params: { query }, signal }));
    },
  });

export const talkersQuery = (filter: FlowFilter, range: FlowRange, dim: TalkerDimension, limit: number) =>
  queryOptions({
    queryKey: ["flows", "talkers", filter, range, dim, limit],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => {
      const query = set({ ...filter, ...range, dim, limit });
      return answered(api.GET("/api/v1/flows/top-talkers", { params: { query }, signal }));
    },
  });

export const flowsQuery = (filter: FlowFilter, range: FlowRange) =>
  infiniteQueryOptions({
    queryKey: ["flows", "list", filter, range],
    placeholderData: keepPreviousData,
    initialPageParam: 0,
    queryFn: ({ signal, pageParam }) => {
      const query = set({ ...filter, ...range, offset: pageParam, limit: PAGE });
      return answered(api.GET("/api/v1/flows", { params: { query }, signal }));
    },
    getNextPageParam: ({ offset, flows, total }) => {
      const next = offset + flows.length;
      return flows.length > 0 && next < Math.min(total, FLOWS_MAX) ? next : undefined;
    },
  });
