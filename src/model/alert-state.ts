// How far a person is with an alert, and what came of it.

export const STATUSES = ["open", "acknowledged", "resolved"] as const;
export type Status = (typeof STATUSES)[number];
export const RESOLUTIONS = ["true_positive", "false_positive", "benign", "duplicate"] as const;
export type Resolution = (typeof RESOLUTIONS)[number];
