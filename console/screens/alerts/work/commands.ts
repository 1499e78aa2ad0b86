/** What a person can do with the alert that is shown, by button or key. */
export interface AlertCommands {
  readonly acknowledge: () => void;
  readonly resolve: () => void;
  readonly reopen: () => void;
  readonly exception: () => void;
  readonly assign: () => void;
  readonly tag: () => void;
  readonly analyse: () => void;
  readonly onAxis: () => void;
  readonly openRule: () => void;
  readonly filterRule: () => void;
  readonly filterTag: (tag: string) => void;
  readonly copyLink: () => void;
  /** Resolves to false if it was not sent. */
  readonly comment: (text: string) => Promise<boolean>;
}
