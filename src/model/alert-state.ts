// Status and resolution of an alert.

export const STATUSES = ["open", "acknowledged", "resolved"] as const;
export type Status = (typeof STATUSES)[number];
export const RESOLUTIONS = ["true_positive", "false_positive", "benign", "duplicate"] as const;
export type Resolution = (typeof RESOLUTIONS)[number];
