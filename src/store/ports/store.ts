import type { TimeRange } from "../../model/query.ts";
import type { AlertStore } from "./alert-store.ts";
import type { AnalysisStore } from "./analysis-store.ts";
import type { DetectionStore } from "./detection-store.ts";
import type { EventEngine } from "./event-engine.ts";
import type { ExportStore } from "./export-store.ts";
import type { FlowEngine } from "./flow-engine.ts";
import type { KeyStore } from "./key-store.ts";
import type { Fence, LeaseStore } from "./lease-store.ts";
import type { ListStore } from "./list-store.ts";
import type { NotificationStore } from "./notification-store.ts";
import type { ReputationStore } from "./reputation-store.ts";
import type { RetentionStore } from "./retention-store.ts";
import type { RuleStore } from "./rule-store.ts";
import type { SessionStore } from "./session-store.ts";
import type { ViewStore } from "./view-store.ts";

// The store's interface to the rest of the service. store/testing/contract.ts states the same as tests.

/** Provided by a transactional database. */
export interface CaseDatabase {
  readonly alerts: AlertStore;
  readonly rules: RuleStore;
  readonly detection: DetectionStore;
  readonly notifications: NotificationStore;
  readonly analysis: AnalysisStore;
  readonly keys: KeyStore;
  readonly sessions: SessionStore;
  readonly views: ViewStore;
  readonly exports: ExportStore;
  readonly lists: ListStore;
  readonly reputations: ReputationStore;
  readonly retention: RetentionStore;
  readonly leases: LeaseStore;
}

/** A day that holds fewer rows than were stored, or cannot be read. */
export interface MissingDay {
  readonly kind: "events" | "flows";
  readonly day: number;
  /** As far as known. */
  readonly rows: number;
  /** Why the day cannot be read. Undefined if rows of it were lost. */
  readonly why?: string | undefined;
}

/** Room for data. */
export interface StorageSpace {
  readonly totalBytes: number;
  /** Available to the service. */
  readonly freeBytes: number;
  /** What the stored data occupies. */
  readonly usedBytes: number;
}

/** What a case database provides to the store that is composed with it. */
export interface CasePart extends Omit<CaseDatabase, "retention"> {
  readonly retention: Pick<RetentionStore, "notes" | "save">;
  /** Alerts that were resolved before this time, and all alerts. */
  dueAlerts(beforeMs: number): Promise<{ readonly rows: number; readonly total: number }>;
  /** Queries refused because there were too many others. */
  refused(): Promise<number>;
  /** Rejects with the reason when the database does not answer. */
  check(): Promise<void>;
}

/** Cases for whoever works under a lease: once it is over, every change rejects with LeaseLost, and nothing changes. */
export type FencedCases = Pick<CasePart, "alerts" | "detection" | "notifications" | "exports" | "retention">;

/** A store that several equal nodes share. What one of them does at a time is decided by leases. */
export interface SharedStore {
  /** The name of this node. Two nodes never have the same. */
  readonly node: string;
  /** The same store for whoever works under the lease, see FencedCases. Data is removed only under the lease, too. */
  under(fence: Fence): Store;
}

/** What the engines for large data provide to the store that is composed with them. */
export interface DataPart {
  readonly events: EventEngine;
  readonly flows: FlowEngine;
  /** Rows before this time, and all rows. */
  rowsBefore(kind: MissingDay["kind"], beforeMs: number): Promise<{ readonly rows: number; readonly total: number }>;
  refused(): Promise<number>;
  missing(kind: MissingDay["kind"], range?: TimeRange): Promise<readonly MissingDay[]>;
  space(): Promise<StorageSpace>;
  check(): Promise<void>;
}

/** A case database together with the engines for large data. */
export interface Store extends CaseDatabase {
  readonly events: EventEngine;
  readonly flows: FlowEngine;
  /** Undefined if no other node uses the store. */
  readonly shared?: SharedStore | undefined;
  /** Days in this range that lack rows: an answer over the range is incomplete. */
  missing(kind: MissingDay["kind"], range?: TimeRange): Promise<readonly MissingDay[]>;
  /** May be up to a minute old. */
  space(): Promise<StorageSpace>;
  /** Rejects with the reason when the store does not answer. */
  check(): Promise<void>;
  /** Finishes accepted work, then releases everything. */
  close(): Promise<void>;
}
